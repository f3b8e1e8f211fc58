package sim

import (
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// TestWhatTheStoresClockSaidCountsForAMinute: for so long a process goes by it, and may; then it
// asks again, and nothing goes by clocks that do not agree.
func TestWhatTheStoresClockSaidCountsForAMinute(t *testing.T) {
	t.Parallel()
	for after, moves := range map[time.Duration]bool{
		storeAskedEvery - time.Second: true, storeAskedEvery + time.Second: false,
	} {
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.w.Config.MaxClockStep = 7 * 24 * time.Hour
			remoteOnly(r)
			r.w.Advance(2 * time.Hour)
			r.do(r.w.act(func() error {
				if agree, why := r.w.clocks(t.Context()); agree != tier.Yes {
					t.Errorf("the clocks agree: %s, %s", agree, why)
				}
				return nil
			}))
			r.w.Skew = 3 * time.Hour
			r.w.Advance(after)
			r.run()
			state, _ := r.w.Ledger().Log(orders)
			if moved := state.LogStart > 0; moved != moves {
				t.Errorf("the log begins at %d", state.LogStart)
			}
			for _, v := range r.oracle.Violations() {
				t.Error(v)
			}
		})
	}
}
