package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// leftBytes is how much the measurements before may leave lying, in bytes.
const leftBytes = 4 << 30

// settle brings disk and caches into the same state before each measurement: directories of its
// own, nothing that waits to be written, and the source in the page cache, as a segment is that its
// program has just finished. What the measurements before left is removed only where it is too
// much: file systems are slow to give out again what was freed a moment ago.
func (b *bench) settle(s *source) error {
	b.left += s.bytes
	if b.left > leftBytes {
		if err := b.clear(); err != nil {
			return err
		}
	}
	b.turn++
	for _, dir := range []string{b.copies(), b.bucket()} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	unix.Sync()
	return s.each(func(path string) error {
		_, err := hashFile(path)
		return err
	})
}

// clear removes what measurements left.
func (b *bench) clear() error {
	b.left = 0
	return os.RemoveAll(filepath.Join(b.dir, "turns"))
}

func (b *bench) mine(name string) string {
	return filepath.Join(b.dir, "turns", strconv.Itoa(b.turn), name)
}

func (b *bench) copies() string { return b.mine("copies") }
func (b *bench) bucket() string { return b.mine("bucket") }
func (b *bench) data() string   { return b.mine("data") }

// toolScript copies the directories, syncs each file and directory of the copy, and hashes the
// originals, which are in the page cache then.
const toolScript = `set -e
out=$1; shift
cp -R -- "$@" "$out"
find "$out" -exec sync {} +
find "$@" -type f -exec sha256sum {} + >/dev/null`

// tools is the work by the tools that everybody has.
func (b *bench) tools(s *source) (figure, error) {
	args := append([]string{"-c", toolScript, "sh", b.copies()}, s.logs...)
	return timed(exec.CommandContext(b.ctx, "sh", args...))
}

// timed runs a command and says how long it took. What it prints is for its error.
func timed(cmd *exec.Cmd) (figure, error) {
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	began := time.Now()
	err := cmd.Run()
	f := figure{Value: time.Since(began).Seconds(), Unit: seconds}
	if err != nil {
		return f, fmt.Errorf("%s: %w\n%s", cmd.Path, err, said.String())
	}
	f.CPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	return f, nil
}

// steps is the same work by the same means as tierd's, large reads and the processor's own
// instructions for SHA-256, one step after the other: what a simple program would do.
func (b *bench) steps(s *source) (figure, error) {
	before, began := cpuTime(), time.Now()
	err := s.each(func(path string) error {
		name := strings.ReplaceAll(strings.TrimPrefix(path, s.dir), "/", "_")
		return copyFile(path, filepath.Join(b.copies(), name))
	})
	if err == nil {
		err = syncDir(b.copies())
	}
	if err == nil {
		err = s.each(func(path string) error {
			_, err := hashFile(path)
			return err
		})
	}
	return figure{Value: time.Since(began).Seconds(), Unit: seconds,
		CPU: (cpuTime() - before).Seconds()}, err
}

// bufferBytes is small enough to count for nothing in memory, and large enough for system calls to
// count for nothing in time.
const bufferBytes = 1 << 20

// transfer copies by reading and writing: io.Copy would leave it to the kernel, which may share
// the extents of the files.
func transfer(w io.Writer, r io.Reader) error {
	_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, make([]byte, bufferBytes))
	return err
}

func copyFile(from, to string) (err error) {
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	w, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return errors.Join(transfer(w, r), w.Sync())
}

func hashFile(path string) (sum [32]byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	err = transfer(h, f)
	return [32]byte(h.Sum(nil)), err
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // of these arguments there is nothing to refuse
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// walkFiles calls do for each regular file below the directories.
func walkFiles(dirs []string, do func(path string, size int64) error) error {
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			return do(path, info.Size())
		})
		if err != nil {
			return err
		}
	}
	return nil
}
