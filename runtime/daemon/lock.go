package daemon

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrInUse is returned where another tierd works with the same data_dir.
var ErrInUse = errors.New("another tierd uses this data_dir")

// dirLock is held by the one daemon of a data_dir. It is an open-file-description lock: it ends
// with the process, however that ends.
type dirLock struct{ f *os.File }

// lockDir takes the lock of data_dir at once or not at all, and writes the process id into it for
// people.
func lockDir(dataDir string) (*dirLock, error) {
	path := filepath.Join(dataDir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data_dir: %w", err)
	}
	whole := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &whole); err != nil {
		owner, _ := io.ReadAll(io.LimitReader(f, 32))
		_ = f.Close()
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
			return nil, fmt.Errorf("%w: %s is locked by process %s; stop it, or give this one a "+
				"data_dir of its own", ErrInUse, path, strings.TrimSpace(string(owner)))
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &dirLock{f}, nil
}

func (l *dirLock) Close() error { return l.f.Close() }
