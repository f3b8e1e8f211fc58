package vfs

import (
	"errors"
	"strings"

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

// descend opens the directory that the steps lead to, by one system call. Kernels before 5.6 do not
// have it, and some sandboxes refuse it.
func descend(fd int, steps []string) (dir int, err error) {
	how := &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	}
	err = retry(func() error {
		dir, err = unix.Openat2(fd, strings.Join(steps, "/"), how)
		return err
	})
	switch {
	case errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM):
		return walk(fd, steps)
	case errors.Is(err, unix.ELOOP):
		return -1, errLink
	}
	return dir, err
}

func dropCache(fd int, off, n int64) error {
	return unix.Fadvise(fd, off, n, unix.FADV_DONTNEED)
}
