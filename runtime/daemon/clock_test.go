package daemon

import (
	"context"
	"testing"
)

// Whoever asks for a change and goes away does not end the process.
func TestACallerWhoGoesAwayEndsNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.segments("orders/0", 1)
	b, done, err := Exclusive(t.Context(), s.options())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := done(); err != nil {
			t.Error(err)
		}
	}()
	ctx, goAway := context.WithCancel(t.Context())
	goAway()
	if err := b.AcceptClock(ctx); err != nil {
		t.Errorf("accept the clock: %v", err)
	}
	d := b.(*Daemon)
	select {
	case err := <-d.fatal:
		t.Errorf("the process would end: %v", err)
	default:
	}
	if d.ledger.Clock() == 0 {
		t.Error("the time was not accepted")
	}
}
