//go:build unix

package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// MkdirAll makes the directory at path, and those above it that are missing, with the permission
// bits perm, less the process's umask. Their names are durable when it returns: what is synced in a
// directory whose own name a crash can take is not durable. The path is the operator's, and what is
// there of it may hold links. A directory that is there already is left as it is.
func MkdirAll(at string, perm fs.FileMode) error {
	missing := "."
	for at = filepath.Clean(at); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err == nil && missing == "." && info.IsDir() {
			return nil
		}
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(at) == at {
			return err
		}
		missing = path.Join(filepath.Base(at), missing)
	}
	dir, err := OpenOS(at)
	if errors.Is(err, syscall.ENOTDIR) {
		return &fs.PathError{Op: "mkdir", Path: filepath.Join(at, missing), Err: err}
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: to make %s in it durably tierd has to read it; else make that beforehand",
			err, missing)
	}
	if err != nil {
		return err
	}
	dir.dirMode = perm
	return errors.Join(mkdirAll(dir, missing), dir.Close())
}

// mkdirAll makes the directories that lead to name, one after the other, each of them durably.
func mkdirAll(dir Dir, name string) error {
	made := "."
	for step := range strings.SplitSeq(name, "/") {
		above := made
		if made = path.Join(made, step); made == "." {
			continue
		}
		if err := dir.Mkdir(made); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := dir.Sync(above); err != nil {
			return err
		}
	}
	return nil
}
