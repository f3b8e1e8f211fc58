package daemon

import (
	"context"
	"time"
)

// pause returns after d, and with an error when ctx ends before.
func pause(ctx context.Context, d time.Duration) error { return pauseUntil(ctx, d, nil) }

// pauseUntil returns after d, or when woken is closed or has a token, and with an error when ctx
// ends.
func pauseUntil(ctx context.Context, d time.Duration, woken <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-woken:
	case <-timer.C:
	}
	return nil
}
