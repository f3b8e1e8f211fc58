package daemon

import (
	"context"
	"time"
)

// patience is how long an evaluation of policies is waited for after its time-out, before it is
// given up. A machine that is merely slow gets to the next expression meanwhile.
const patience = 10 * time.Second

// patiently runs f on a goroutine of its own, and returns true once f has returned, or false where
// that is not so long after ctx has ended: then f runs on. It is for what nothing can stop.
func patiently(ctx context.Context, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-done:
		return true
	case <-late.C:
		return false
	}
}
