//go:build unix && !linux

package vfs

// renameNoReplace renames by link and unlink, which every POSIX system has.
func renameNoReplace(fromDir int, from string, toDir int, to string) error {
	return linkRename(fromDir, from, toDir, to)
}

// descend opens the directory that the steps lead to.
func descend(fd int, steps []string) (int, error) { return walk(fd, steps) }

// dropCache does nothing: there is no such hint.
func dropCache(int, int64, int64) error { return nil }
