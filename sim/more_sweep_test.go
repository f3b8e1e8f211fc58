package sim

import (
	"testing"
	"time"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// led leaves a broker's log of which four segments are copied, and whose new leader has other
// batches from the middle of the third one on.
func led(silent bool) func(*rig) {
	return func(r *rig) {
		r.w.Config.Layout = tier.LayoutKafka
		b := newBroker(r.w, silent, orders)
		r.start()
		l := b.logs[0]
		for range 4 {
			b.append(l, 1)
			b.roll(l)
		}
		r.run()
		b.elect(l, 5, 1)
		r.w.Advance(time.Second)
		b.append(l, 2)
	}
}

// ends reports whether the effect is the last one of a disablement.
func ends(f engine.Effect) bool {
	c, ok := f.(engine.ChangeTier)
	return ok && c.State == tier.Disabled
}

// off turns the tiering of all tables off.
func (r *rig) off(p tier.DisablePolicy) {
	r.t.Helper()
	r.tables(func(t *tier.Table) { t.Tiering, t.DisablePolicy = false, p })
}

// moreHistories are those of leader changes, of what is collected, and of how disablements end.
var moreHistories = []history{
	{name: "compare with what a new leader has", steps: 1, effect: is[engine.Compare],
		before: led(false)},
	{name: "compare without a record of leader epochs", steps: 1, effect: is[engine.Compare],
		before: led(true)},
	{name: "sweep what nothing names", steps: 8, wait: 30 * time.Hour, effect: is[engine.Sweep],
		sparse: 3, before: func(r *rig) {
			r.copied(1)
			r.do(r.w.Append(logsOf[1], 1))
			r.run()
			r.w.Stray(orders)
			r.w.Stray(logsOf[1])
			r.w.Advance(30 * time.Hour)
		}},
	{name: "end a disablement that retains", steps: 1, effect: ends, before: func(r *rig) {
		r.copied(2)
		r.off(tier.PolicyRetain)
	}},
	{name: "end a disablement that deleted", steps: 1, effect: ends, before: func(r *rig) {
		r.copied(2)
		r.off(tier.PolicyDelete)
		r.run()
		r.w.Advance(11 * time.Minute)
	}},
	{name: "end a disablement that waited for an attempt", steps: 1, effect: ends,
		before: func(r *rig) {
			late := fault.Effect{Err: errInjected, Late: true}
			r.w.Bucket.SetHook(failOnce("/"+segmentName(0), late))
			r.copied(1)
			r.w.Advance(time.Minute)
			r.off(tier.PolicyDelete)
		}},
}

// TestEveryOtherSubStep sweeps the histories of what neither of the others sweeps.
func TestEveryOtherSubStep(t *testing.T) {
	t.Parallel()
	for i := range moreHistories {
		h := &moreHistories[i]
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			(&sweeper{t: t, h: h}).sweep()
		})
	}
}
