package logdir

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockFile locks the open file description: unlike a lock of the process, it is not lost when
// somebody closes another descriptor of the same file. The two kinds exclude each other.
func lockFile(f *os.File) error {
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, wholeFile())
}
