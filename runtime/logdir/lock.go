package logdir

import (
	"fmt"

	"github.com/tierd/tierd/runtime/tier"
)

// lockName is the file in its directory that a broker or a tablet server locks while it runs.
const lockName = ".lock"

// Locker is the lock of a directory, as its own program takes it. Methods are safe for concurrent
// use.
type Locker interface {
	// TryLock takes the lock if nobody holds it, without waiting. It reports whether the lock is
	// held by this Locker now; an error means that this could not be found out, and it is not.
	TryLock() (held bool, err error)
	// Held reports whether the lock is held and still means something: the locked file is the one
	// that another program would lock.
	Held() bool
	// Unlock gives the lock back. It is idempotent.
	Unlock() error
}

// takeLock takes the lock where deleting needs one. The reason says why it is not held.
func (s *Source) takeLock() *tier.Reason {
	if !s.locked() || s.cfg.Lock.Held() {
		return nil
	}
	held, err := s.cfg.Lock.TryLock()
	switch {
	case err != nil:
		return &tier.Reason{Code: tier.CodeSourceInUse,
			Text: fmt.Sprintf("nothing is deleted: the lock of the directory: %v", err)}
	case !held:
		return &tier.Reason{Code: tier.CodeSourceInUse, Text: "nothing is deleted while a " +
			s.layout.program() + " holds the lock of the directory; it is tried again at every scan"}
	}
	return nil
}
