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

// TestMinutesAreNoStep: a process that has nothing to do sees time pass all the same, also where
// max_clock_step is the least that there can be.
func TestMinutesAreNoStep(t *testing.T) {
	t.Parallel()
	p := kafkaProject(t)
	p.Config.MaxClockStep, p.Config.Grace, p.Config.OrphanAge = 3*time.Minute, 0, time.Minute
	p.Config.Brake.MaxSegments, p.Config.Brake.Per = 1, time.Second
	tables := p.Config.Tables
	p.Config.Tables = func(name string) (tier.Table, bool) {
		table, ok := tables(name)
		table.TTL, table.LocalTTL = time.Minute, time.Second
		return table, ok
	}
	if out := scripted(t, p, "store: does everything twice from now on", "owner: rolls",
		"time: passes, and the process runs; time: a minute"); out.Violation != nil {
		t.Error(out.Violation)
	}
}
