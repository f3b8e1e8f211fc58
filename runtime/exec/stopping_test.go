package exec

import (
	"context"
	"testing"
	"time"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// pauses are the ways in which somebody stops deletions.
var pauses = map[string]func(*rig){
	"by the pause file": func(r *rig) {
		r.paused = &tier.Reason{Code: tier.CodePaused, Text: "the pause file is there"}
	},
	"of its table": func(r *rig) {
		_, err := r.ledger.Append(context.Background(), tier.TablePaused{Table: "orders",
			Reason: tier.Reason{Code: tier.CodeBrake, Text: "the brake"}, At: r.now})
		r.must(err)
	},
}

// TestAPauseStopsWhatHasNotBegun: a deletion has its permit, and while it is announced, or while
// the last policy is asked, somebody pauses deletions. Nothing that was there then goes, and the
// audit log says that it was kept.
func TestAPauseStopsWhatHasNotBegun(t *testing.T) {
	t.Parallel()
	for name, pause := range pauses {
		t.Run("a local segment, "+name, func(t *testing.T) {
			t.Parallel()
			r, f := ready(t)
			r.audit.intend = func() error { pause(r); return nil }
			r.kept(r.do(f), tier.CodeRetry)
			if !r.there(fileName(0)) {
				t.Error("it is gone")
			}
			if o := r.audit.outcomes; len(o) != 1 || o[0].Result != tier.OutcomeKept {
				t.Errorf("concluded as %+v, want kept", o)
			}
		})
		t.Run("a copy, "+name, func(t *testing.T) {
			t.Parallel()
			r, f := expiredRig(t)
			before := len(r.keys.Keys())
			r.audit.intend = func() error { pause(r); return nil }
			r.stayed(r.do(f))
			if n := len(r.keys.Keys()); n != before {
				t.Errorf("%d objects in the store, want %d", n, before)
			}
		})
		t.Run("what an attempt left, "+name, func(t *testing.T) {
			t.Parallel()
			r, f := abandonedRig(t)
			before := len(r.keys.Keys())
			r.audit.intend = func() error { pause(r); return nil }
			want[engine.Failed](r, r.do(f))
			if n := len(r.keys.Keys()); n != before {
				t.Errorf("%d objects in the store, want %d", n, before)
			}
		})
		t.Run("an expiry, "+name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.roll(2)
			r.opened()
			pos := r.copied(0)
			r.now += tier.Time(2 * time.Hour)
			r.asked = func() { pause(r) }
			f := engine.Expire{ID: 5, Log: orders, Source: "wal", Segments: []engine.RemoteCandidate{{
				Remote: tier.Remote{Range: tier.Range{Base: 0, Next: 10}, Position: pos, Epoch: 1}}}}
			want[engine.Failed](r, r.do(f))
			if s, _ := r.ledger.Log(orders); s.LogStart != 0 {
				t.Errorf("the log begins at %d, want 0", s.LogStart)
			}
			r.paused, r.asked = nil, nil
			_, err := r.ledger.Append(context.Background(), tier.TableResumed{Table: "orders", At: r.now})
			r.must(err)
			if m := want[engine.Moved](r, r.do(f)); m.Start != 10 {
				t.Errorf("without the pause: moved to %d, want 10", m.Start)
			}
		})
	}
}

// TestAPauseStopsTheStartOfAnUntieredLog: where no copy is left of what goes, the log's start moves
// before anything is announced. A pause that comes while the policies are asked stops that, too.
func TestAPauseStopsTheStartOfAnUntieredLog(t *testing.T) {
	t.Parallel()
	for name, pause := range pauses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, d := untiered(t)
			r.asked = func() { pause(r) }
			r.kept(r.do(d), tier.CodeRetry)
			if s, _ := r.ledger.Log(orders); s.LogStart != 0 {
				t.Errorf("the log begins at %d, want 0", s.LogStart)
			}
			r.paused, r.asked = nil, nil
			_, err := r.ledger.Append(context.Background(), tier.TableResumed{Table: "orders", At: r.now})
			r.must(err)
			if done := want[engine.Deleted](r, r.do(d)); len(done.Gone) != 1 || done.LogStart != 10 {
				t.Errorf("without the pause: %+v, want it gone and the log to begin at 10", done)
			}
		})
	}
}

// untiered has a segment of a table that does not tier, which may go by its TTL.
func untiered(t *testing.T) (*rig, engine.Delete) {
	t.Helper()
	r := newRig(t)
	r.tiering = false
	r.roll(2)
	f := r.openEffect().(engine.Open)
	f.State = tier.Disabled
	r.do(f)
	d := r.deleteEffect(0)
	d.Segments[0].Copied = false
	return r, d
}

// abandonedRig has an attempt that was abandoned, and whose object is in the store.
func abandonedRig(t *testing.T) (*rig, engine.Clear) {
	t.Helper()
	r := newRig(t)
	r.roll(2)
	r.opened()
	r.bucket.SetHook(func(op fault.Op) fault.Effect {
		if op.Kind == fault.OpUpload {
			return fault.Effect{Err: errOut, Applied: true}
		}
		return fault.Effect{}
	})
	a := want[engine.Failed](r, r.do(r.copyEffect(0))).Attempt
	r.bucket.SetHook(nil)
	_, err := r.ledger.Append(context.Background(), tier.CopyAbandoned{Log: orders,
		Position: a.Position, Cause: "a test", At: r.now})
	r.must(err)
	return r, engine.Clear{ID: 6, Log: orders, Position: a.Position}
}

// TestBefore: what overlaps a copy that stays stays too, and what overlaps that; the rest may go.
func TestBefore(t *testing.T) {
	t.Parallel()
	passed := func(ends ...tier.Offset) (out []passedOver) {
		for i := 0; i < len(ends); i += 2 {
			out = append(out, passedOver{Remote: tier.Remote{Position: tier.Position(i / 2),
				Range: tier.Range{Base: ends[i], Next: ends[i+1]}}})
		}
		return out
	}
	for name, c := range map[string]struct {
		passed []passedOver
		stays  tier.Offset
		left   int
		first  tier.Position
	}{
		"side by side":      {passed(0, 10, 10, 20), 20, 2, 9},
		"of the same base":  {passed(0, 10, 10, 20), 10, 1, 1},
		"one reaches over":  {passed(0, 10, 10, 30), 20, 1, 1},
		"one behind one":    {passed(0, 10, 10, 40, 20, 30), 30, 1, 1},
		"one leads to more": {passed(0, 15, 10, 30), 20, 0, 0},
	} {
		stays := engine.RemoteCandidate{Remote: tier.Remote{Position: 9,
			Range: tier.Range{Base: c.stays, Next: c.stays + 10}}}
		left, first := before(c.passed, stays)
		if len(left) != c.left || first != c.first {
			t.Errorf("%s: %d may go, the first that stays is %d; want %d and %d", name, len(left), first,
				c.left, c.first)
		}
	}
}

// TestATierStateThatChangesStopsWhatHasNotBegun: a segment of a table that does not tier may go
// without a proof. Where the table tiers again while that is announced, or while the policies are
// asked, it stays.
func TestATierStateThatChangesStopsWhatHasNotBegun(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{false, true} {
		r, f := untiered(t)
		tiers := func() {
			_, err := r.ledger.Append(context.Background(), tier.TierChanged{Table: "orders",
				State: tier.Enabled, Epoch: 2, At: r.now})
			r.must(err)
		}
		if asked {
			r.asked = tiers
		} else {
			r.audit.intend = func() error { tiers(); return nil }
		}
		r.kept(r.do(f), tier.CodeRetry)
		if !r.there(fileName(0)) {
			t.Errorf("changed while the policies are asked: %t: it is gone", asked)
		}
	}
}
