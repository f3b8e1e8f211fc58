package exec

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// TestACallThatWasGivenUpBeginsNothing: while it looked at the source whoever waited gave it up,
// and may have decided otherwise since. What it was to begin is not begun.
func TestACallThatWasGivenUpBeginsNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(*rig)
		effect engine.Effect
	}{
		"a log": {func(*rig) {}, engine.Open{ID: 9, Log: orders, Source: "wal",
			Layout: tier.LayoutPlain}},
		"a start": {func(r *rig) {
			r.opened()
			r.copied(0)
			r.must(r.disk.Remove("wal/orders/0/" + fileName(0)))
			r.changes(tier.TierChanged{State: tier.Disabling, Epoch: 2, Policy: tier.PolicyDelete})
		}, engine.MoveStart{ID: 9, Log: orders, Source: "wal", Start: 10, Cause: tier.MoveDisabled}},
		"an epoch": {func(r *rig) {
			r.opened()
			r.copied(0)
			r.changes(tier.TierChanged{State: tier.Disabling, Epoch: 2, Policy: tier.PolicyDelete},
				tier.TierChanged{State: tier.Disabled, Epoch: 2, Policy: tier.PolicyDelete},
				tier.TierChanged{State: tier.Enabled, Epoch: 3})
		}, engine.OpenEpoch{ID: 9, Log: orders, Source: "wal", Epoch: 3, Fresh: true}},
		"a hole": {func(r *rig) {
			r.opened()
			r.x.MayRecord(context.Background(), orders)
			r.must(r.disk.Remove("wal/orders/0/" + fileName(0)))
		}, engine.RecordHole{ID: 9, Log: orders, Source: "wal", Range: tier.Range{Base: 0, Next: 10},
			Cause: tier.HoleSourceGone}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.roll(3)
			c.before(r)
			before, _ := r.ledger.Log(orders)
			ctx, giveUp := context.WithCancel(context.Background())
			r.source.seen = func(*tier.Scan) { giveUp() }
			res, err := r.x.Do(ctx, c.effect)
			r.must(err)
			want[engine.Failed](r, res)
			if after, _ := r.ledger.Log(orders); !reflect.DeepEqual(after, before) {
				t.Errorf("the ledger has %+v, and had %+v", after, before)
			}
			r.source.seen = nil
			if f, failed := r.do(c.effect).(engine.Failed); failed {
				t.Errorf("and with somebody who waits: %+v", f)
			}
		})
	}
}

// TestAStartThatMovedUnheardIsTold: a call that was given up moved the start, and did not come to
// say so in the manifest. The next one tells what there is: otherwise nobody says it before the
// next start of a process, and nothing below it is removed.
func TestAStartThatMovedUnheardIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(3)
	r.opened()
	pos := r.copied(0)
	r.copied(10)
	r.now += tier.Time(2 * time.Hour)
	f := engine.Expire{ID: 5, Log: orders, Source: "wal", Segments: []engine.RemoteCandidate{{
		Remote: tier.Remote{Range: tier.Range{Base: 0, Next: 10}, Position: pos, Epoch: 1}}}}
	r.bucket.SetHook(func(op fault.Op) (e fault.Effect) {
		if op.Kind == fault.OpUpload {
			e.Err = errOut
		}
		return e
	})
	unheard := want[engine.Moved](r, r.do(f))
	r.bucket.SetHook(nil)
	r.answer.Delete = false // and by now a policy denies it
	again := want[engine.Moved](r, r.do(f))
	if again.Start != 10 || !again.Expired.Covers(tier.Range{Base: 0, Next: 10}) ||
		len(again.Unpublished) != 1 || !slices.Equal(again.Unpublished, unheard.Unpublished) ||
		again.Window.Segments != 1 {
		t.Errorf("told %+v, want the start at 10, counted once, and not in the manifest yet", again)
	}
	m := want[engine.Moved](r, r.do(engine.MoveStart{ID: 6, Log: orders, Source: "wal", Start: 0,
		Cause: tier.MoveExpired}))
	if m.Start != 10 || len(m.Unpublished) != 1 {
		t.Errorf("asked for a lower start: %+v, want it at 10, and not in the manifest yet", m)
	}
}

// TestAnAttemptThatWasAbandonedUnheardIsCleared: the call that abandoned it was given up. Whoever
// asks again hears of what is left to clear.
func TestAnAttemptThatWasAbandonedUnheardIsCleared(t *testing.T) {
	t.Parallel()
	r, f := abandonedRig(t)
	a, _, err := r.ledger.Abandoned(orders, f.Position)
	r.must(err)
	done := want[engine.Abandoned](r, r.do(engine.Resolve{ID: 7, Log: orders, Source: "wal",
		Attempt: a}))
	if done.Tombstone == nil || done.Tombstone.Position != f.Position {
		t.Errorf("told of the tombstone %+v, want that at %d", done.Tombstone, f.Position)
	}
	want[engine.Done](r, r.do(f))
	if done := want[engine.Abandoned](r, r.do(engine.Resolve{ID: 8, Log: orders, Source: "wal",
		Attempt: a})); done.Tombstone != nil {
		t.Errorf("told of the tombstone %+v, which is cleared", done.Tombstone)
	}
}
