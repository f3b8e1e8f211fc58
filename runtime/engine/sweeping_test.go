package engine

import (
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// TestASweepThatFailsComesAgain with back-off, and not only after the whole period: until it has
// listed the manifests nobody knows whether the ledger is an old one.
func TestASweepThatFailsComesAgain(t *testing.T) {
	t.Parallel()
	const period = 3600 * second
	r := start(t, settings(func(s *Settings, _ *tier.Table) { s.SweepEvery = period }))
	began := r.now
	failed := Failed{Reason: tier.Reason{Code: tier.CodeStoreError, Text: "listing"}}
	tries := 0
	for ; r.now < began+600*second; r.after(time.Second) {
		if len(r.open) > 0 {
			tries++
			r.step(Finished{ID: take[Sweep](r).ID, Result: failed})
		}
	}
	// After 1, 2, 4, ... seconds, and then each minute.
	if tries < 12 || tries > 24 {
		t.Errorf("tried %d times in ten minutes", tries)
	}
	for len(r.open) == 0 && r.now < began+2*period {
		r.after(time.Second)
	}
	r.step(Finished{ID: take[Sweep](r).ID, Result: Swept{}})
	r.after(time.Duration(period - second))
	r.none()
	r.after(time.Second)
	take[Sweep](r)
	// A period that is shorter than the back-off stays as it is.
	r = start(t, settings(func(s *Settings, _ *tier.Table) { s.SweepEvery = second / 2 }))
	for range 20 {
		r.step(Finished{ID: take[Sweep](r).ID, Result: failed})
		r.after(time.Second / 2)
	}
}
