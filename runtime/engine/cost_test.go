package engine

import (
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// asked answers every question about a deletion with no, and counts them by log.
func asked(t *testing.T, e *Engine, now tier.Time, out []Effect) map[tier.LogID]int {
	t.Helper()
	counts := map[tier.LogID]int{}
	for len(out) > 0 {
		f, ok := out[0].(Delete)
		if !ok {
			t.Fatalf("%T%+v", out[0], out[0])
		}
		if counts[f.Log]++; counts[f.Log] > 2 {
			t.Fatalf("%s is asked about again and again", f.Log)
		}
		out = append(out[1:], e.Step(now, Finished{ID: f.ID, Result: Deleted{Kept: &Kept{
			Segment: f.Segments[0].Segment,
			Reasons: []tier.Reason{{Code: tier.CodeDenied, Text: "held"}}}}})...)
	}
	return counts
}

// once fails unless each of so many logs was asked about once.
func once(t *testing.T, what string, counts map[tier.LogID]int, logs int) {
	t.Helper()
	if len(counts) != logs {
		t.Errorf("%s: %d logs were asked about, want %d", what, len(counts), logs)
	}
	for id, n := range counts {
		if n != 1 {
			t.Fatalf("%s: %s was asked about %d times", what, id, n)
		}
	}
}

// TestDenialsCostNothing: of 100,000 logs each with a denied candidate, none is asked about again
// before its inputs change or its time comes; then each once, and the others not.
func TestDenialsCostNothing(t *testing.T) {
	t.Parallel()
	const logs = 100_000
	e := tracked(t, logs, 1)
	now := epochStart + 2*hour
	once(t, "at their time", asked(t, e, now, e.Step(now, Tick{})), logs)
	ids := e.Logs()
	pass := func() map[tier.LogID]int {
		return asked(t, e, now, append(e.Step(now, SourceScanned{Source: "wal", Logs: ids}),
			e.Step(now, Tick{})...))
	}
	for range 2 { // within the slow period
		now += 120 * second
		once(t, "nothing changed", pass(), 0)
	}
	once(t, "another fact of some", asked(t, e, now, e.Step(now,
		Reconsidered{Logs: ids[500:600]})), 100)
	once(t, "and of one that is not there", asked(t, e, now, e.Step(now,
		Reconsidered{Logs: []tier.LogID{{Table: "none", Name: "0"}}})), 0)
	grown := tier.Scan{Log: ids[7], Source: "wal", Layout: tier.LayoutPlain, LocalEnd: 23, Whole: true,
		Segments: []tier.LocalSegment{seg(0), {Range: tail(10).Range, Bytes: 101, Log: tail(10).Log,
			Waits: tier.WaitsForRoll}}}
	once(t, "more bytes of one", asked(t, e, now, e.Step(now, Scanned{Scan: grown})), 1)
	once(t, "the same again", asked(t, e, now, e.Step(now, Scanned{Scan: grown})), 0)
	s := e.settings
	s.Generation++
	once(t, "a reload", asked(t, e, now, e.Step(now, Reconfigured{Settings: s})), logs)
	once(t, "nothing after it", pass(), 0)
	now += 300 * second
	once(t, "the slow period", pass(), logs)
	once(t, "nothing after that", pass(), 0)
}

// TestDueTimesWait: what is kept until a time is asked about then, and not before. The times stand
// in a heap: a Tick looks at those that have come.
func TestDueTimesWait(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(seg(0), tail(10))
	r.opened(0)
	r.copied(0, 10)
	r.after(2 * time.Hour)
	f := take[Delete](r)
	r.step(Finished{ID: f.ID, Result: Deleted{Kept: &Kept{Segment: f.Segments[0].Segment,
		Due: r.now + 100*second, Reasons: []tier.Reason{{Code: tier.CodeLocalTTL}}}}})
	if due, ok := r.e.NextDue(); !ok || due != r.now+100*second {
		t.Errorf("the next due time is %s, %t", due, ok)
	}
	r.after(99 * time.Second)
	r.none()
	r.after(time.Second)
	r.deleted()
}

// TestAnAnswerOfBeforeIsNotRemembered: a question that was under way when the facts changed is
// asked again, once.
func TestAnAnswerOfBeforeIsNotRemembered(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(seg(0), tail(10))
	r.opened(0)
	r.copied(0, 10)
	r.after(2 * time.Hour)
	no := func() {
		f := take[Delete](r)
		r.step(Finished{ID: f.ID, Result: Deleted{Kept: &Kept{
			Segment: f.Segments[0].Segment, Reasons: []tier.Reason{{Code: tier.CodeDenied}}}}})
	}
	r.step(Reconsidered{Logs: []tier.LogID{orders}})
	no()
	no()
	r.none()
	r.step(Reconsidered{Logs: []tier.LogID{orders}})
	r.deleted()
}

// TestDeniedRemovals: a removal that was denied is asked about again when policies change, and else
// after the slow period; not whenever a fact does.
func TestDeniedRemovals(t *testing.T) {
	t.Parallel()
	of := func(generation uint64) Settings {
		return settings(func(s *Settings, _ *tier.Table) { s.Removers, s.Generation = 1, generation })
	}
	r := start(t, of(1))
	r.seen(seg(10), tail(20))
	f := take[Open](r)
	r.step(Finished{ID: f.ID, Result: Opened{State: tier.LogState{Log: orders, Source: "wal",
		Layout: tier.LayoutPlain, Epoch: 1, Copied: 10, LogStart: 10, Next: 1},
		Table: tier.TableState{Table: "orders", State: tier.Enabled, Epoch: 1}}})
	r.e.log(orders).addRemote(tier.Remote{Range: seg(0).Range, Epoch: 1})
	r.copied(1, 20)
	no := func() {
		t.Helper()
		f := take[Remove](r)
		r.step(Finished{ID: f.ID, Result: Removed{Kept: []KeptRemote{{Range: f.Copies[0].Range,
			Reasons: []tier.Reason{{Code: tier.CodeDenied}}}}}})
		r.none()
	}
	r.step(Tick{})
	no()
	r.step(Reconfigured{Settings: of(1)}) // as when a fact changes
	r.step(Reconsidered{Logs: []tier.LogID{orders}})
	r.after(299 * time.Second)
	r.none()
	r.step(Reconfigured{Settings: of(2)})
	no()
	r.after(300 * time.Second)
	no()
}
