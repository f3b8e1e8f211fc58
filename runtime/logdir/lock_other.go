//go:build unix && !linux

package logdir

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockFile locks the file for the process. Nothing else in tierd opens it.
func lockFile(f *os.File) error {
	return unix.FcntlFlock(f.Fd(), unix.F_SETLK, wholeFile())
}
