package exec

import (
	"context"
	"errors"
	"testing"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// TestALossIsAcceptedOnlyWhereItIsWaitedFor: what can be copied is no loss, and where nothing is
// copied, or the ledger is an old one, no hole may be recorded.
func TestALossIsAcceptedOnlyWhereItIsWaitedFor(t *testing.T) {
	t.Parallel()
	off := tier.TierChanged{State: tier.Disabling, Epoch: 2, Policy: tier.PolicyRetain}
	for name, c := range map[string]struct {
		spoil   func(*rig, *tier.LocalSegment)
		refused bool
	}{
		"it is damaged":     {func(*rig, *tier.LocalSegment) {}, false},
		"it is not damaged": {func(r *rig, _ *tier.LocalSegment) { r.source.read = nil }, true},
		"its file is another one": {func(r *rig, s *tier.LocalSegment) { s.Log.Inode++ },
			true},
		"its table is on its way out": {func(r *rig, _ *tier.LocalSegment) { r.changes(off) }, true},
		"its log is not in the epoch yet": {func(r *rig, _ *tier.LocalSegment) {
			done := off
			done.State = tier.Disabled
			r.changes(off, done, tier.TierChanged{State: tier.Enabled, Epoch: 3})
		}, true},
		"its table is turned off meanwhile": {func(r *rig, _ *tier.LocalSegment) {
			r.audit.intend = func() error { r.changes(off); return nil }
		}, true},
		"the ledger is an older one": {func(r *rig, _ *tier.LocalSegment) {
			start := tier.Offset(0)
			r.must(r.store().PutFact(context.Background(), orders, tier.AttemptID{}, tier.Fact{
				Position: 70, Epoch: 1, Start: &start, At: r.now}))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.roll(2)
			r.opened()
			r.source.read = func() error { return ErrDamaged }
			s := r.segment(0)
			c.spoil(r, &s)
			ev, why, err := r.x.AcceptLoss(context.Background(), "wal", orders, s)
			r.must(err)
			if errors.Is(why, ErrRefused) != c.refused || (ev == nil) != c.refused {
				t.Errorf("%+v, %v; want it refused: %t", ev, why, c.refused)
			}
			state, _ := r.ledger.Log(orders)
			if (len(state.Holes) == 1) == c.refused || (len(state.Accepted) == 1) == c.refused ||
				(len(r.audit.announced) == 1) == c.refused && r.audit.intend == nil {
				t.Errorf("holes %+v, accepted %+v, announced %+v", state.Holes, state.Accepted,
					r.audit.announced)
			}
		})
	}
}

// TestALossOfATableThatNeverTieredIsNone: nothing waits for it.
func TestALossOfATableThatNeverTieredIsNone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(2)
	r.source.read = func() error { return ErrDamaged }
	accept := func(when string) {
		t.Helper()
		ev, why, err := r.x.AcceptLoss(context.Background(), "wal", orders, r.segment(0))
		if r.must(err); ev != nil || !errors.Is(why, ErrRefused) {
			t.Errorf("%s: %+v, %v; want it refused", when, ev, why)
		}
	}
	accept("before the log is known")
	f := r.openEffect().(engine.Open)
	f.State = tier.Disabled
	want[engine.Opened](r, r.do(f))
	accept("with tiering off")
	if len(r.audit.announced) > 0 {
		t.Errorf("announced %+v", r.audit.announced)
	}
}

// TestALossThatWasPassed is accepted without a hole: once more, and where the offsets were copied.
func TestALossThatWasPassed(t *testing.T) {
	t.Parallel()
	for name, pass := range map[string]func(*rig){
		"accepted before": func(r *rig) {
			ev, why, err := r.x.AcceptLoss(context.Background(), "wal", orders, r.segment(0))
			r.must(errors.Join(why, err))
			if ev.Hole == nil || ev.Hole.Offset != 10 {
				r.t.Errorf("%+v, want a hole up to 10", ev)
			}
		},
		"copied": func(r *rig) {
			r.source.read = nil
			r.copied(0)
			r.source.read = func() error { return ErrDamaged }
		},
	} {
		r := newRig(t)
		r.roll(2)
		r.opened()
		r.source.read = func() error { return ErrDamaged }
		pass(r)
		ev, why, err := r.x.AcceptLoss(context.Background(), "wal", orders, r.segment(0))
		r.must(err)
		if why != nil || ev == nil || ev.Hole != nil || ev.Accepted.Range.Next != 10 {
			t.Errorf("%s: %+v, %v; want it accepted, and no hole", name, ev, why)
		}
	}
}

// TestALossOverTheCopiedOffsetIsAHole: of a damaged segment that a new leader rolled elsewhere the
// beginning may be copied. The rest is the hole; without it nothing would be counted behind it.
func TestALossOverTheCopiedOffsetIsAHole(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(2)
	r.opened()
	s := r.segment(0)
	before := tier.Range{Base: s.Base, Next: s.Base + 1}
	_, err := r.ledger.Append(context.Background(), tier.HoleRecorded{Log: orders,
		Hole: tier.Hole{Range: before, Cause: tier.HoleSourceGone, At: r.now}})
	r.must(err)
	r.source.read = func() error { return ErrDamaged }
	for range 2 {
		ev, why, err := r.x.AcceptLoss(context.Background(), "wal", orders, s)
		if r.must(err); ev == nil || why != nil {
			t.Fatalf("%+v, %v; want it accepted", ev, why)
		}
	}
	state, _ := r.ledger.Log(orders)
	rest := tier.Range{Base: before.Next, Next: s.Next}
	if state.Copied != s.Next || len(state.Accepted) != 1 || len(state.Holes) != 2 ||
		state.Holes[1].Range != rest {
		t.Errorf("copied %d, holes %+v, accepted %+v, want the hole %s", state.Copied, state.Holes,
			state.Accepted, rest)
	}
}
