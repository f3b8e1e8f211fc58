//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// inNamespace tells a test binary that it may mount what it likes: nobody else sees it.
const inNamespace = "TIERD_TEST_NAMESPACE"

// TestFullDisks runs testdata/fulldisk/*.txt on real disks that are full. A disk is a file system
// in memory, which a process may mount in a namespace of its own; where the system gives it none,
// the scripts go as far as /dev/full does, on which every write finds the disk full. Besides the
// commands of TestScripts there are
//
//	disk NAME SIZE   makes a disk of this size, or gives the one that is there this size
//	fill FILE        writes a file that takes all the room that is left
//
// and the condition [small-disks] tells whether they work.
func TestFullDisks(t *testing.T) {
	t.Parallel()
	alone := os.Getenv(inNamespace) != ""
	if !alone {
		out, err := namespaced("^TestFullDisks$")
		if err == nil || !errors.Is(err, errNoNamespace) {
			if t.Log(out); err != nil {
				t.Error(err)
			}
			return
		}
		t.Log(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/fulldisk",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               shortSocket,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exit": exit, "disk": disk,
			"fill": fill},
		Condition: func(cond string) (bool, error) {
			if cond != "small-disks" {
				return false, fmt.Errorf("no condition is called %s", cond)
			}
			return alone, nil
		},
	})
}

var errNoNamespace = errors.New("the system gives no mount namespace")

// namespaced runs the tests of this binary that the pattern names, in a mount namespace.
func namespaced(tests string) (out string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	mapped := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
	}
	var refused error
	for _, attr := range []*syscall.SysProcAttr{
		{Cloneflags: unix.CLONE_NEWNS}, // root's
		{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWUSER, UidMappings: mapped(os.Getuid()),
			GidMappings: mapped(os.Getgid())},
	} {
		try := exec.Command(self, "-test.run=^$") // it may be refused what a mount needs, too
		try.SysProcAttr = attr
		try.Env = append(os.Environ(), inNamespace+"=try")
		if said, err := try.CombinedOutput(); err != nil {
			refused = errors.Join(refused, fmt.Errorf("%w: %s", err, said))
			continue
		}
		cmd := exec.Command(self, "-test.run="+tests, "-test.v")
		cmd.SysProcAttr = attr
		cmd.Env = append(os.Environ(), inNamespace+"=yes")
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
	return "", fmt.Errorf("%w: %w", errNoNamespace, refused)
}

// private keeps what is mounted from everybody else, and tries a mount where it is asked to.
func private() error {
	if os.Getenv(inNamespace) == "" {
		return nil
	}
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if err != nil || os.Getenv(inNamespace) != "try" {
		return err
	}
	dir, err := os.MkdirTemp("", "tierd-disk-")
	if err != nil {
		return err
	}
	if err = unix.Mount("disk", dir, "tmpfs", 0, "size=4k"); err == nil {
		err = unix.Unmount(dir, 0)
	}
	return errors.Join(err, os.Remove(dir))
}

func disk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: disk NAME SIZE")
	}
	dir, flags := ts.MkAbs(args[0]), uintptr(0)
	if _, err := os.Stat(dir); err == nil {
		flags = unix.MS_REMOUNT
	} else {
		ts.Check(os.Mkdir(dir, 0o700))
		ts.Defer(func() { ts.Check(unix.Unmount(dir, unix.MNT_DETACH)) })
	}
	ts.Check(unix.Mount("disk", dir, "tmpfs", flags, "size="+args[1]))
}

func fill(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: fill FILE")
	}
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	// In large pieces first: the last ones take what these leave.
	for _, bytes := range []int{1 << 20, 4 << 10, 1} {
		for err = nil; err == nil; {
			_, err = f.WriteString(strings.Repeat("x", bytes))
		}
		if !errors.Is(err, unix.ENOSPC) {
			ts.Fatalf("%v", err)
		}
	}
	ts.Check(f.Close())
}
