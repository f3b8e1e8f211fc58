//go:build unix

package logdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// FileLock is the lock that a Kafka broker takes on its log directory: a record lock on all of the
// file ".lock" (java.nio.channels.FileLock, which is fcntl's).
type FileLock struct {
	path  string
	looks bool // it is asked whether it could be had, and never taken

	mu   sync.Mutex
	file *os.File // nil while the lock is not held
}

var _ Locker = (*FileLock)(nil)

// NewFileLock returns the lock of the log directory dir. It is not taken yet.
func NewFileLock(dir string) *FileLock { return &FileLock{path: filepath.Join(dir, lockName)} }

// NewFileLockLook returns a lock that is never taken: TryLock tells whether it could be, and Held
// whether that still is so. A look must not stand in the way of a broker that starts.
func NewFileLockLook(dir string) *FileLock {
	return &FileLock{path: filepath.Join(dir, lockName), looks: true}
}

// TryLock implements Locker. The file must exist: every broker makes it and leaves it behind, and
// one that tierd made might not be the broker's to open.
func (l *FileLock) TryLock() (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		if l.current() {
			return true, nil
		}
		// Somebody put another file in its place: what is locked protects nothing.
		_ = l.file.Close()
		l.file = nil
	}
	f, err := os.OpenFile(l.path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("%w: no program has ever locked it; make an empty file "+
			"of that name, owned by the user of the program that writes there", err)
	}
	if err != nil {
		return false, err
	}
	lock := lockFile
	if l.looks {
		lock = lockable
	}
	if err := lock(f); err != nil {
		closeErr := f.Close()
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
			return false, closeErr
		}
		return false, errors.Join(fmt.Errorf("lock %s: %w", l.path, err), closeErr)
	}
	l.file = f
	return l.current(), nil
}

// Held implements Locker.
func (l *FileLock) Held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file != nil && l.current()
}

// current reports whether the name still stands for the file that is locked, and for one that is
// only looked at, whether it still could be.
func (l *FileLock) current() bool {
	if l.looks && lockable(l.file) != nil {
		return false
	}
	locked, err := l.file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(l.path)
	return err == nil && os.SameFile(locked, named)
}

// Unlock implements Locker.
func (l *FileLock) Unlock() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// lockable says what lockFile would, without locking anything.
func lockable(f *os.File) error {
	held := wholeFile()
	err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, held)
	if err == nil && held.Type != unix.F_UNLCK {
		return unix.EAGAIN
	}
	return err
}

// wholeFile describes an exclusive lock on all of a file, as the Java runtime asks for it.
func wholeFile() *unix.Flock_t {
	return &unix.Flock_t{Type: unix.F_WRLCK, Whence: 0, Start: 0, Len: 0}
}
