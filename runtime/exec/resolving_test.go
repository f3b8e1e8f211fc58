package exec

import (
	"context"
	"strings"
	"testing"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// unfinished is a rig with an attempt of which all was uploaded but what has the part in its key,
// and the effect that resolves it.
func unfinished(t *testing.T, part string) (*rig, engine.Resolve) {
	t.Helper()
	r := newRig(t)
	r.roll(1)
	r.opened()
	r.bucket.SetHook(func(op fault.Op) fault.Effect {
		if op.Kind == fault.OpUpload && strings.Contains(op.Key, part) {
			return fault.Effect{Err: errOut}
		}
		return fault.Effect{}
	})
	failed := want[engine.Failed](r, r.do(r.copyEffect(0)))
	r.bucket.SetHook(nil)
	return r, engine.Resolve{ID: 4, Log: orders, Source: "wal", Attempt: *failed.Attempt}
}

// entered puts the manifest entry of the attempt, as if the upload had come late.
func (r *rig) entered(a tier.Attempt, change func(*tier.Fact)) {
	r.t.Helper()
	ctx := context.Background()
	content, err := r.source.Source.Read(ctx, orders, a.Range)
	r.must(err)
	f := tier.Fact{Position: a.Position, Epoch: a.Epoch, At: r.now, Copied: 10,
		Add: &tier.Copy{Attempt: a.ID, Position: a.Position, Epoch: a.Epoch, Content: content,
			Verified: tier.VerifyFull, FinishedAt: r.now}}
	change(&f)
	r.must(r.store().PutFact(ctx, orders, a.ID, f))
}

func unchanged(*tier.Fact) {}

// TestAnAttemptIsFinishedOnlyIfAllIsThere: of each object the store says that it is there, and the
// source that it is what was being copied.
func TestAnAttemptIsFinishedOnlyIfAllIsThere(t *testing.T) {
	t.Parallel()
	spoiled := func(change func([]byte) []byte) func(*rig, *engine.Resolve) {
		return func(r *rig, f *engine.Resolve) {
			r.entered(f.Attempt, unchanged)
			for _, key := range r.keys.Keys() {
				data, _ := r.keys.Object(key)
				switch {
				case !strings.HasSuffix(key, ".log"):
				case change == nil:
					r.keys.Remove(key)
				default:
					r.keys.Put(key, change(data))
				}
			}
		}
	}
	for name, c := range map[string]struct {
		spoil  func(*rig, *engine.Resolve)
		copied bool
	}{
		"all is there": {func(*rig, *engine.Resolve) {}, true},
		"its entry came late": {func(r *rig, f *engine.Resolve) {
			r.entered(f.Attempt, unchanged)
		}, true},
		"its entry came late, and its source is gone": {func(r *rig, f *engine.Resolve) {
			r.entered(f.Attempt, unchanged)
			f.Source = ""
		}, true},
		"it has no entry, and its source is gone": {func(_ *rig, f *engine.Resolve) {
			f.Source = ""
		}, false},
		"its file is gone":     {spoiled(nil), false},
		"its file has rotted":  {spoiled(fault.Flip(3)), false},
		"its file is too long": {spoiled(func(b []byte) []byte { return append(b, 'x') }), false},
		"its entry is no copy": {func(r *rig, f *engine.Resolve) {
			r.entered(f.Attempt, func(x *tier.Fact) {
				x.Add, x.Hole = nil, &tier.Hole{Range: x.Add.Content.Range, Cause: tier.HoleSourceGone}
			})
		}, false},
		"a file came to the segment": {func(r *rig, _ *engine.Resolve) {
			r.write(strings.Replace(fileName(0), ".log", ".sum", 1), "sum")
		}, false},
		"the segment was written anew": {func(r *rig, _ *engine.Resolve) {
			r.now++
			r.write(fileName(0), "Segment 0\n")
		}, false},
		"the segment is gone": {func(r *rig, _ *engine.Resolve) {
			r.must(r.disk.Remove("wal/orders/0/" + fileName(0)))
		}, false},
		"its epoch is over": {func(r *rig, _ *engine.Resolve) {
			r.changes(tier.TierChanged{State: tier.Disabling, Epoch: 2, Policy: tier.PolicyRetain})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, f := unfinished(t, "manifest")
			c.spoil(r, &f)
			uploads := 0
			r.bucket.SetHook(func(op fault.Op) fault.Effect {
				if op.Kind == fault.OpUpload {
					uploads++
				}
				return fault.Effect{}
			})
			res := r.do(f)
			if _, copied := res.(engine.Copied); copied != c.copied {
				t.Fatalf("%T %+v, want it to count: %t", res, res, c.copied)
			}
			if !c.copied {
				r.uncounted()
				if len(r.tombstones()) != 1 || uploads > 0 {
					t.Errorf("%d tombstones, %d uploads; want its names kept, and nothing put",
						len(r.tombstones()), uploads)
				}
			}
		})
	}
}

// TestAnotherAttemptIsLeftAlone: what is asked about is an attempt, and not a position.
func TestAnotherAttemptIsLeftAlone(t *testing.T) {
	t.Parallel()
	other := func(f engine.Resolve) engine.Resolve { f.Attempt.ID[0]++; return f }
	r, f := unfinished(t, "manifest")
	asks := func(when string) {
		t.Helper()
		if a := want[engine.Abandoned](r, r.do(other(f))); a.Tombstone != nil {
			t.Errorf("%s: %+v, want no tombstone", when, a)
		}
	}
	asks("while it is under way")
	if a, err := r.ledger.Attempt(orders, f.Attempt.Position); err != nil || a.ID != f.Attempt.ID {
		t.Errorf("%+v, %v; want the attempt still under way", a, err)
	}
	want[engine.Copied](r, r.do(f))
	asks("when it is finished")
	r, f = unfinished(t, ".log")
	want[engine.Abandoned](r, r.do(f))
	asks("when it is abandoned")
	if a := want[engine.Abandoned](r, r.do(f)); a.Tombstone == nil {
		t.Errorf("%+v, want its tombstone", a)
	}
}
