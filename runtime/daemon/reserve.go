package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/tierd/tierd/runtime/vfs"
)

// reserveBytes is the space that is kept back for ledger and audit, so that a full disk can be
// emptied: a deletion needs a few kilobytes before it gives any space back.
const reserveBytes = 16 << 20

// reserve is a preallocated file in data_dir. It is given up when the disk is nearly full, and
// taken again when there is room.
type reserve struct {
	path string
	held bool
}

func openReserve(dataDir string) *reserve {
	r := &reserve{path: filepath.Join(dataDir, "reserve")}
	info, err := os.Lstat(r.path)
	r.held = err == nil && info.Mode().IsRegular() && info.Size() >= reserveBytes
	return r
}

// tend releases the reserve if less than half of it is free beside it, and takes it again when four
// times as much is. It reports whether the state changed.
func (r *reserve) tend(freeBytes int64) (changed bool, err error) {
	switch {
	case r.held && freeBytes < reserveBytes/2:
		return true, r.release()
	case !r.held && freeBytes > 4*reserveBytes:
		return true, r.take()
	}
	return false, nil
}

func (r *reserve) take() error {
	f, err := os.OpenFile(r.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("take the reserve: %w", err)
	}
	err = unix.Fallocate(int(f.Fd()), 0, 0, reserveBytes)
	if errors.Is(err, unix.EOPNOTSUPP) {
		_, err = f.Write(make([]byte, reserveBytes))
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = os.Remove(r.path)
		return fmt.Errorf("take the reserve: %w", err)
	}
	r.held = true
	return nil
}

func (r *reserve) release() error {
	r.held = false
	if err := os.Remove(r.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("release the reserve: %w", err)
	}
	return nil
}

// roomWanted adds to the error of a file in data_dir whose disk is full what is to be done.
func roomWanted(err error, dataDir string) error {
	var at *fs.PathError
	if !vfs.IsFull(err) || !errors.As(err, &at) || !within(at.Path, dataDir) {
		return err
	}
	return fmt.Errorf("%w; the disk of data_dir %s is full: make room on it, and start tierd again; "+
		"nothing that was recorded is lost", err, dataDir)
}

// within reports whether the path lies below dir.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// Disk tells what is used and free on the file system of dir, in bytes, for whoever runs it.
func Disk(dir string) (used, free int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, fmt.Errorf("statfs %s: %w", dir, err)
	}
	return int64(s.Blocks-s.Bfree) * s.Bsize, int64(s.Bavail) * s.Bsize, nil
}
