package vfs

import (
	"errors"

	"golang.org/x/sys/unix"
)

// renameNoReplace renames atomically where the file system can, and by link and unlink where it
// cannot.
func renameNoReplace(fromDir int, from string, toDir int, to string) error {
	err := unix.Renameat2(fromDir, from, toDir, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) {
		return linkRename(fromDir, from, toDir, to)
	}
	return err
}

func dropCache(fd int, off, n int64) error {
	return unix.Fadvise(fd, off, n, unix.FADV_DONTNEED)
}
