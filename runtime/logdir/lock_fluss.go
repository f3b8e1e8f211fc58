//go:build unix

package logdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// TabletLock is the lock that a Fluss tablet server takes on its data directory: the same as a
// Kafka broker's, by the servers that have disk.properties. Those before them lock nothing, and so
// could run beside whoever holds the lock. It means something only together with two files: the one
// that shows that the server locks, and the one that shows that it ended, and cleanly, which every
// server takes away when it starts.
type TabletLock struct {
	*FileLock
	dir string
}

var _ Locker = (*TabletLock)(nil)

// NewTabletLock returns the lock of the data directory dir. It is not taken yet.
func NewTabletLock(dir string) *TabletLock {
	return &TabletLock{FileLock: NewFileLock(dir), dir: dir}
}

// NewTabletLockLook returns a lock that is never taken, as NewFileLockLook does.
func NewTabletLockLook(dir string) *TabletLock {
	return &TabletLock{FileLock: NewFileLockLook(dir), dir: dir}
}

// TryLock implements Locker.
func (l *TabletLock) TryLock() (bool, error) {
	if err := l.apart(); err != nil {
		return false, err
	}
	held, err := l.FileLock.TryLock()
	if err != nil || !held {
		return false, err
	}
	// A server that was starting meanwhile has taken its mark away before it found the lock taken.
	return l.Held(), nil
}

// Held implements Locker.
func (l *TabletLock) Held() bool { return l.FileLock.Held() && l.apart() == nil }

// apart says why a tablet server may run on the directory, whoever holds the lock.
func (l *TabletLock) apart() error {
	for _, f := range []struct{ name, why string }{
		{fileDisk, "want a tablet server that locks its directory, as those do that write it"},
		{fileCleanShutdown, "want a tablet server that was shut down cleanly: it writes the file " +
			"then, and removes it when it starts"},
	} {
		_, err := os.Lstat(filepath.Join(l.dir, f.name))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is not there: %s", f.name, f.why)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
