//go:build unix

package logdir_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/tier"
)

// brokerDirEnv makes the test binary hold the lock of a directory the way a Java program does,
// until its standard input ends.
const brokerDirEnv = "LOGDIR_TEST_BROKER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(brokerDirEnv); dir != "" {
		os.Exit(holdLikeJava(dir))
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// holdLikeJava locks with F_SETLK, as java.nio's FileChannel.tryLock does.
func holdLikeJava(dir string) int {
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return 1
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lock); err != nil {
		_, _ = os.Stdout.WriteString("busy\n")
		return 0
	}
	_, _ = os.Stdout.WriteString("held\n")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return 0
}

// startBroker starts a process that locks dir. It returns what the process says, and a function
// that ends it.
func startBroker(t *testing.T, dir string) (says string, stop func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), brokerDirEnv+"="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	says, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Error(err)
	}
	return says, func() {
		t.Helper()
		if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
			t.Error(err)
		}
	}
}

// TestFileLockExcludesABroker wants the lock to be the one that a broker takes, both ways.
func TestFileLockExcludesABroker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock := logdir.NewFileLock(dir)
	if held, err := lock.TryLock(); held || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v, %v", held, err)
	}
	says, stop := startBroker(t, dir)
	if says != "held\n" {
		t.Fatal(says)
	}
	if held, err := lock.TryLock(); held || err != nil || lock.Held() {
		t.Errorf("beside a broker: %v, %v", held, err)
	}
	stop()
	if held, err := lock.TryLock(); !held || err != nil || !lock.Held() {
		t.Errorf("after the broker: %v, %v", held, err)
	}
	// Another descriptor of the file that is closed must not give the lock away.
	f, err := os.Open(filepath.Join(dir, ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	says, stop = startBroker(t, dir)
	stop()
	if says != "busy\n" {
		t.Errorf("a broker beside tierd is %s", says)
	}
	for range 2 {
		if err := lock.Unlock(); err != nil || lock.Held() {
			t.Errorf("unlocking: %v", err)
		}
	}
	says, stop = startBroker(t, dir)
	stop()
	if says != "held\n" {
		t.Errorf("a broker after tierd is %s", says)
	}
}

// TestALookTakesNoLock: it says whether the lock could be had, and no broker finds it taken.
func TestALookTakesNoLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	look := logdir.NewFileLockLook(dir)
	if held, err := look.TryLock(); held || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v, %v", held, err)
	}
	for range 2 {
		says, stop := startBroker(t, dir)
		if says != "held\n" {
			t.Errorf("a broker beside a look is %s", says)
		}
		if held, err := look.TryLock(); held || err != nil || look.Held() {
			t.Errorf("beside a broker: %v, %v", held, err)
		}
		stop()
		if held, err := look.TryLock(); !held || err != nil || !look.Held() {
			t.Errorf("after the broker: %v, %v", held, err)
		}
	}
	lock := logdir.NewFileLock(dir)
	if held, err := lock.TryLock(); !held || err != nil || look.Held() {
		t.Errorf("beside a look: %v, %v", held, err)
	}
	if err := errors.Join(look.Unlock(), lock.Unlock()); err != nil {
		t.Error(err)
	}
}

// TestFileLockOfAnotherFile puts another file in the place of the locked one: a broker would lock
// that one, so nothing is held any more.
func TestFileLockOfAnotherFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, ".lock")
	make := func() {
		t.Helper()
		if err := os.WriteFile(name+".new", nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	make()
	lock := logdir.NewFileLock(dir)
	if held, err := lock.TryLock(); !held || err != nil {
		t.Fatalf("%v, %v", held, err)
	}
	make()
	if lock.Held() {
		t.Error("the lock of a file without a name counts")
	}
	if held, err := lock.TryLock(); !held || err != nil || !lock.Held() {
		t.Errorf("the new file: %v, %v", held, err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if lock.Held() {
		t.Error("the lock of a removed file counts")
	}
	if err := os.WriteFile(filepath.Join(dir, "elsewhere"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("elsewhere", name); err != nil {
		t.Fatal(err)
	}
	if held, err := lock.TryLock(); held || err == nil {
		t.Errorf("a link: %v, %v", held, err)
	}
	if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
}

// TestOwned follows what a source says of its lock through scans.
func TestOwned(t *testing.T) {
	t.Parallel()
	b := newBroker(newMem(t))
	b.seg("orders-0", 0, 100)
	lock := &fakeLock{}
	s := b.open(tier.LayoutKafka, func(c *logdir.Config) { c.Lock = lock })
	own := func(step string, want tier.Truth, problem string) {
		t.Helper()
		res := scan(t, s, now)
		if s.Owned() != want || codes(res.Problems) != problem {
			t.Errorf("%s: %s, problems %s; want %s", step, s.Owned(), codes(res.Problems), want)
		}
	}
	if s.Owned() != tier.No {
		t.Error("owned before anybody took the lock")
	}
	own("a broker runs", tier.No, ".lock:source-in-use")
	lock.free = true
	own("it stopped", tier.Yes, "")
	own("and so on", tier.Yes, "")
	if err := s.Close(); err != nil || s.Owned() != tier.No {
		t.Errorf("closed: %v, %s", err, s.Owned())
	}
	never := b.open(tier.LayoutKafka, func(c *logdir.Config) {
		c.LocalDelete, c.Lock = tier.LocalDeleteNever, nil
	})
	scan(t, never, now)
	if never.Owned() != tier.No || never.LocalDelete() != tier.LocalDeleteNever ||
		never.Close() != nil {
		t.Error("a source that is not deleted from is owned")
	}
	w := newMem(t)
	w.put("a/1.log", nil)
	plain := w.open(tier.LayoutPlain)
	if _, err := plain.Scan(context.Background(), now); err != nil || plain.Owned() != tier.Yes {
		t.Errorf("plain: %v, %s", err, plain.Owned())
	}
}
