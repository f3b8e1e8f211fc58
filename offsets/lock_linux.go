package offsets

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// unlock gives the file's lock back. Closing it does not where the file is still mapped.
func unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// holder says which process holds the lock of the file, in parentheses; nothing where the kernel
// does not tell.
func holder(f *os.File) string {
	if f == nil {
		return ""
	}
	info, err := os.Stat(f.Name())
	if err != nil {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return ""
	}
	return holderIn(string(locks), stat.Ino)
}

// holderIn looks for the inode in the text of /proc/locks (proc_locks(5)). Its lines are
//
//	1: FLOCK  ADVISORY  WRITE 1234 08:02:131074 0 EOF
func holderIn(locks string, inode uint64) string {
	suffix := fmt.Sprintf(":%d", inode)
	for line := range strings.Lines(locks) {
		words := strings.Fields(line)
		if len(words) >= 6 && words[1] == "FLOCK" && strings.HasSuffix(words[5], suffix) {
			return fmt.Sprintf(" (pid %s)", words[4])
		}
	}
	return ""
}
