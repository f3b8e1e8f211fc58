package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// ready is a rig whose first segment is copied and may go.
func ready(t *testing.T) (*rig, engine.Delete) {
	t.Helper()
	r := newRig(t)
	r.roll(2)
	r.opened()
	return r, r.deleteEffect(r.copied(0))
}

func TestADeletionIsAnnouncedDoneCountedAndConcluded(t *testing.T) {
	t.Parallel()
	r, f := ready(t)
	announced := false
	r.audit.intend = func() error { announced = true; return nil }
	r.source.drop = func(drop func() error) error {
		if !announced {
			t.Error("the segment goes before its deletion was announced")
		}
		return drop()
	}
	d := want[engine.Deleted](r, r.do(f))
	if len(d.Gone) != 1 || d.Kept != nil || r.there(fileName(0)) {
		t.Fatalf("got %+v, file there: %t; want it gone", d, r.there(fileName(0)))
	}
	if d.Window.Segments != 1 || d.Window != r.ledger.Table("orders").Window {
		t.Errorf("window %+v, durable %+v; want one deletion in both", d.Window,
			r.ledger.Table("orders").Window)
	}
	if o := r.audit.outcomes; len(o) != 1 || o[0].Result != tier.OutcomeDeleted {
		t.Errorf("outcomes %+v, want one: deleted", o)
	}
}

// TestWhatIsNotProvedStays breaks each thing that a proof rests on, after the deletion was
// proposed.
func TestWhatIsNotProvedStays(t *testing.T) {
	t.Parallel()
	lost := func(part string) func(*rig, *engine.Delete) {
		return func(r *rig, _ *engine.Delete) {
			for _, key := range r.keys.Keys() {
				if strings.Contains(key, part) {
					r.keys.Remove(key)
				}
			}
		}
	}
	rotten := func(part string, mangle func([]byte) []byte) func(*rig, *engine.Delete) {
		return func(r *rig, _ *engine.Delete) {
			for _, key := range r.keys.Keys() {
				if data, _ := r.keys.Object(key); strings.Contains(key, part) {
					r.keys.Put(key, mangle(data))
				}
			}
		}
	}
	for name, c := range map[string]struct {
		spoil func(*rig, *engine.Delete)
		code  tier.Code
	}{
		"the object is gone":   {lost(".log"), tier.CodeStoreLost},
		"the object is short":  {rotten(".log", fault.Cut(3)), tier.CodeStoreLost},
		"the entry is gone":    {lost("manifest"), tier.CodeStoreLost},
		"the entry is damaged": {rotten("manifest", fault.Flip(40)), tier.CodeStoreLost},
		"it was found to be bad": {func(r *rig, _ *engine.Delete) { r.sound = tier.No },
			tier.CodeStoreLost},
		"it is suspected": {func(r *rig, _ *engine.Delete) { r.sound = tier.Unknown },
			tier.CodeNotProved},
		"the store does not say":  {silent(fault.OpAttributes), tier.CodeNotProved},
		"the manifest is silent":  {silent(fault.OpGet), tier.CodeNotProved},
		"no copy at the position": {position(77), tier.CodeNotCopied},
		"nothing was proposed": {func(_ *rig, f *engine.Delete) {
			f.Segments[0].Copied = false
		}, tier.CodeNotCopied},
		"other content": {func(r *rig, _ *engine.Delete) {
			r.now++
			r.write(fileName(0), "Segment 0\n")
		}, tier.CodeChanged},
		"a second file": {func(r *rig, _ *engine.Delete) {
			r.write(strings.Replace(fileName(0), ".log", ".sum", 1), "sum")
		}, tier.CodeChanged},
		"it is the last one": {func(r *rig, _ *engine.Delete) {
			r.must(r.disk.Remove("wal/orders/0/" + fileName(10)))
			r.must(r.disk.Remove("wal/orders/0/" + fileName(20)))
		}, tier.CodeActiveSegment},
		"an older one came": {func(r *rig, f *engine.Delete) {
			*f = r.deleteEffect(f.Segments[0].Position, r.copied(10))
			f.Segments = f.Segments[1:]
		}, tier.CodePrefixBlocked},
		"above the high watermark": {func(r *rig, _ *engine.Delete) {
			r.source.seen = func(s *tier.Scan) { s.HighWatermark, s.HasHighWatermark = 9, true }
		}, tier.CodeHighWatermark},
		"the source is gone": {func(r *rig, _ *engine.Delete) {
			r.must(r.disk.Rename("wal", "elsewhere"))
		}, tier.CodeSourceUnread},
		"the log cannot be read whole": {func(r *rig, _ *engine.Delete) {
			r.must(r.disk.Symlink("nowhere", "wal/orders/0/"+fileName(5)))
		}, tier.CodeSourceUnread},
		"no entry governs the table": {func(r *rig, _ *engine.Delete) { r.governed = false },
			tier.CodePaused},
		"the table is not tiered": {func(r *rig, _ *engine.Delete) { r.tiering = false },
			tier.CodeTierState},
		"deletions are paused": {func(r *rig, _ *engine.Delete) {
			r.paused = &tier.Reason{Code: tier.CodeNoDelete, Text: "paused"}
		}, tier.CodeNoDelete},
		"the table is paused": {func(r *rig, _ *engine.Delete) {
			r.do(engine.Pause{ID: 9, Table: "orders", Reason: tier.Reason{Code: tier.CodeBrake}})
		}, tier.CodeBrake},
		"the brake": {func(r *rig, _ *engine.Delete) { r.brake.MaxSegments = 0 }, tier.CodeBrake},
		"the policies say no": {func(r *rig, _ *engine.Delete) {
			r.answer = gate.Decision{Reasons: []tier.Reason{{Code: tier.CodeDenied, Text: "no"}}}
		}, tier.CodeDenied},
		"the audit log refuses": {func(r *rig, _ *engine.Delete) {
			r.audit.intend = func() error { return fmt.Errorf("too long: %w", tier.ErrRefused) }
		}, tier.CodeAudit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, f := ready(t)
			c.spoil(r, &f)
			dropped := false
			r.source.drop = func(drop func() error) error { dropped = true; return drop() }
			r.kept(r.do(f), c.code)
			if dropped {
				t.Error("the drop was begun")
			}
		})
	}
}

// silent makes all calls of the kind fail from now on.
func silent(kind fault.OpKind) func(*rig, *engine.Delete) {
	return func(r *rig, _ *engine.Delete) {
		r.bucket.SetHook(fault.On(kind, fault.Effect{Err: errOut}))
	}
}

func position(p tier.Position) func(*rig, *engine.Delete) {
	return func(_ *rig, f *engine.Delete) { f.Segments[0].Position = p }
}

// Listings lag, are cut short and show what is gone: none of them is ever part of a proof.
func TestAListingIsNoProof(t *testing.T) {
	t.Parallel()
	r, f := ready(t)
	r.bucket.SetHook(func(op fault.Op) fault.Effect {
		if op.Kind == fault.OpIter || op.Kind == fault.OpExists {
			t.Errorf("%s of %s", op.Kind, op.Key)
		}
		return fault.Effect{}
	})
	if d := want[engine.Deleted](r, r.do(f)); len(d.Gone) != 1 {
		t.Fatalf("got %+v, want it gone", d)
	}
}

// A file that was only touched has another identity and the same content: that is recorded, and
// then it may go.
func TestATouchedFileIsHashedAgain(t *testing.T) {
	t.Parallel()
	r, f := ready(t)
	r.now++
	r.write(fileName(0), "segment 0\n")
	if d := want[engine.Deleted](r, r.do(f)); len(d.Gone) != 1 {
		t.Fatalf("got %+v, want it gone", d)
	}
	c, err := r.ledger.Copy(orders, f.Segments[0].Position)
	r.must(err)
	if c.Content.Files[0].Stat.ModTime != r.now {
		t.Errorf("recorded identity %+v, want the new one", c.Content.Files[0].Stat)
	}
}

// TestGivenUp: whoever gave up waiting for a deletion must not find the segment gone later, at
// whatever moment of the deletion that was.
func TestADeletionThatWasGivenUpDeletesNothing(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(*rig, func()){
		"before it began": func(_ *rig, giveUp func()) { giveUp() },
		"while facts are gathered": func(r *rig, giveUp func()) {
			r.source.look = giveUpAt(giveUp)
		},
		"while the store is asked": func(r *rig, giveUp func()) {
			r.bucket.SetHook(func(fault.Op) fault.Effect { giveUp(); return fault.Effect{} })
		},
		"while it is announced": func(r *rig, giveUp func()) { r.audit.intend = giveUpAt(giveUp) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, f := ready(t)
			ctx, giveUp := context.WithCancel(context.Background())
			defer giveUp()
			at(r, giveUp)
			res, err := r.x.Do(ctx, f)
			r.must(err)
			d := want[engine.Deleted](r, res)
			if len(d.Gone) > 0 || d.Kept == nil || !r.there(fileName(0)) {
				t.Fatalf("got %+v, file there: %t; want it kept", d, r.there(fileName(0)))
			}
			r.bucket.SetHook(nil)
			r.source.look, r.audit.intend = nil, nil
			if d := want[engine.Deleted](r, r.do(f)); len(d.Gone) != 1 {
				t.Fatalf("asked again: %+v, want it gone", d)
			}
		})
	}
}

// TestAReloadStopsWhatHasNotBegun: whoever reloaded the configuration, to put something on hold,
// must not find a segment gone later that the old one let go, at whatever moment of the deletion
// that was.
func TestAReloadStopsWhatHasNotBegun(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(*rig, func()){
		"while facts are gathered": func(r *rig, reload func()) {
			r.source.look = giveUpAt(reload)
		},
		"while the store is asked": func(r *rig, reload func()) {
			r.bucket.SetHook(func(fault.Op) fault.Effect { reload(); return fault.Effect{} })
		},
		"while it is announced": func(r *rig, reload func()) { r.audit.intend = giveUpAt(reload) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, f := ready(t)
			at(r, func() { r.reloads++ })
			d := want[engine.Deleted](r, r.do(f))
			if len(d.Gone) > 0 || d.Kept == nil || !r.there(fileName(0)) {
				t.Fatalf("got %+v, file there: %t; want it kept", d, r.there(fileName(0)))
			}
			r.bucket.SetHook(nil)
			r.source.look, r.audit.intend = nil, nil
			if d := want[engine.Deleted](r, r.do(f)); len(d.Gone) != 1 {
				t.Fatalf("asked again: %+v, want it gone", d)
			}
		})
	}
}

func giveUpAt(giveUp func()) func() error { return func() error { giveUp(); return nil } }

// Half a drop is no better than a whole one: what has begun goes on, and is recorded.
func TestADropThatHasBegunGoesOn(t *testing.T) {
	t.Parallel()
	r, f := ready(t)
	ctx, giveUp := context.WithCancel(context.Background())
	r.source.drop = func(drop func() error) error { giveUp(); return drop() }
	res, err := r.x.Do(ctx, f)
	r.must(err)
	if d := want[engine.Deleted](r, res); len(d.Gone) != 1 || d.Window.Segments != 1 {
		t.Fatalf("got %+v, want it gone and counted", d)
	}
}

// TestAFailedDropIsLookedAt: what an error hides, a look at the directory tells.
func TestAFailedDropIsLookedAt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		drop    func(func() error) error
		look    error
		outcome tier.OutcomeResult
		code    tier.Code
	}{
		"nothing happened": {func(func() error) error { return errOut }, nil,
			tier.OutcomeKept, tier.CodeRetry},
		"it took effect": {func(drop func() error) error {
			return errors.Join(drop(), errOut)
		}, nil, tier.OutcomeDeleted, ""},
		"nobody can tell": {func(func() error) error { return errOut }, errOut,
			tier.OutcomeUnknown, tier.CodeUnknownOutcome},
		"it is another file": {func(func() error) error {
			return fmt.Errorf("found another: %w", tier.ErrChanged)
		}, errOut, tier.OutcomeKept, tier.CodeChanged},
		"somebody else took it": {func(func() error) error {
			return fmt.Errorf("found none: %w", tier.ErrVanished)
		}, errOut, tier.OutcomeKept, tier.CodeVanished},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, f := ready(t)
			r.source.drop = func(drop func() error) error {
				r.source.look = func() error { return c.look }
				return c.drop(drop)
			}
			res := r.do(f)
			if o := r.audit.outcomes; len(o) != 1 || o[0].Result != c.outcome {
				t.Fatalf("outcomes %+v, want one: %s", o, c.outcome)
			}
			if c.outcome != tier.OutcomeDeleted {
				r.kept(res, c.code)
				return
			}
			if d := want[engine.Deleted](r, res); len(d.Gone) != 1 || d.Window.Segments != 1 {
				t.Fatalf("got %+v, want it gone and counted", d)
			}
		})
	}
}

// TestTheWindowIsTheDurableOne: two deletions that know nothing of each other do not undercount.
func TestTheWindowIsTheDurableOne(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(4)
	r.opened()
	var all []tier.Position
	for i := range 4 {
		all = append(all, r.copied(tier.Offset(10*i)))
	}
	r.brake.MaxSegments = 3
	f := r.deleteEffect(all...)
	first := f
	first.Segments = f.Segments[:2]
	r.do(first)
	rest := f
	rest.Segments = f.Segments[2:]
	d := want[engine.Deleted](r, r.do(rest))
	if len(d.Gone) != 1 || d.Kept == nil || d.Window.Segments != 3 {
		t.Fatalf("got %+v, want one gone and the fourth kept by the brake of three", d)
	}
	has := func(x tier.Reason) bool { return x.Code == tier.CodeBrake }
	if !slices.ContainsFunc(d.Kept.Reasons, has) {
		t.Errorf("kept for %+v, want the brake", d.Kept.Reasons)
	}
}
