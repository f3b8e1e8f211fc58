package exec

import (
	"context"
	"testing"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// interrupted leaves an announced deletion without an outcome; gone says whether the drop was done.
func interrupted(t *testing.T, gone bool) (*rig, engine.Delete) {
	t.Helper()
	r := newRig(t)
	r.roll(2)
	r.opened()
	f := r.deleteEffect(r.copied(0), r.copied(10))
	_, err := r.audit.Intend(context.Background(), tier.Deletion{Action: tier.DeleteLocal,
		Log: orders, Range: f.Segments[0].Segment.Range, Bytes: 10, At: r.now})
	r.must(err)
	if gone {
		r.must(r.disk.Remove("wal/orders/0/" + fileName(0)))
		f.Segments = f.Segments[1:]
	}
	r.must(r.audit.Close())
	r.boot()
	return r, f
}

func TestInterruptedDeletionsAreResolvedByLooking(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{true, false} {
		r, _ := interrupted(t, gone)
		r.must(r.x.ResolveIntents(context.Background()))
		want, segments := tier.OutcomeKept, int64(0)
		if gone {
			want, segments = tier.OutcomeDeleted, 1
		}
		if o := r.audit.outcomes; len(o) != 1 || o[0].Result != want {
			t.Errorf("gone %t: outcomes %+v, want one: %s", gone, o, want)
		}
		if w := r.ledger.Table("orders").Window; w.Segments != segments {
			t.Errorf("gone %t: the brake counts %d, want %d", gone, w.Segments, segments)
		}
		r.must(r.x.ResolveIntents(context.Background())) // twice is as good as once
		if len(r.audit.outcomes) != 1 {
			t.Errorf("gone %t: concluded again: %+v", gone, r.audit.outcomes)
		}
	}
}

// TestWhatCannotBeLookedAtStaysOpen, and keeps the rest of its log, until it can.
func TestWhatCannotBeLookedAtKeepsItsLog(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*rig, error){
		"look": func(r *rig, err error) { r.source.look = func() error { return err } },
		"look at the whole": func(r *rig, err error) {
			if err != nil {
				r.must(r.disk.Symlink("nowhere", "wal/orders/0/"+fileName(5)))
				return
			}
			r.must(r.disk.Remove("wal/orders/0/" + fileName(5)))
		},
		"settle": func(r *rig, err error) { r.source.settle = func() error { return err } },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, f := interrupted(t, true)
			spoil(r, errOut)
			r.must(r.x.ResolveIntents(context.Background()))
			d := want[engine.Deleted](r, r.do(f))
			if len(d.Gone) > 0 || d.Kept == nil ||
				d.Kept.Reasons[0].Code != tier.CodeUnknownOutcome {
				t.Fatalf("got %+v, want the log kept while it is not known", d)
			}
			spoil(r, nil)
			d = want[engine.Deleted](r, r.do(f))
			if len(d.Gone) != 1 || d.Window.Segments != 2 {
				t.Fatalf("got %+v, want it gone, and both counted", d)
			}
			if open := r.audit.OpenIntents(); len(open) > 0 {
				t.Errorf("without an outcome: %+v", open)
			}
		})
	}
}

// An acceptance of a loss deletes nothing: cut short, it is concluded, and can be asked for again.
func TestAnInterruptedAcceptanceIsConcluded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.audit.Intend(context.Background(), tier.Deletion{Action: tier.AcceptLoss,
		Log: orders, Range: tier.Range{Base: 0, Next: 10}, At: r.now})
	r.must(err)
	r.must(r.audit.Close())
	r.boot()
	r.must(r.x.ResolveIntents(context.Background()))
	if o := r.audit.outcomes; len(o) != 1 || o[0].Result != tier.OutcomeKept {
		t.Errorf("outcomes %+v, want one: kept", o)
	}
}

// TestAnIntentDoesNotStayOpenBecauseItsLogIsGone: nothing more of the log is deleted, so nothing
// but the sweep looks again.
func TestAnIntentDoesNotStayOpenBecauseItsLogIsGone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(r *rig)
		want   tier.OutcomeResult
		gone   int64
	}{
		"its directory is gone": {func(r *rig) {
			r.must(r.disk.Mkdir("wal/orders/1"))
			r.write("../1/"+fileName(0), "another log")
			for _, name := range []string{fileName(0), fileName(10), fileName(20)} {
				r.must(r.disk.Remove("wal/orders/0/" + name))
			}
			r.must(r.disk.RemoveDir("wal/orders/0"))
		}, tier.OutcomeDeleted, 1},
		"its source cannot be read for a while": {func(r *rig) {
			fails := 2
			r.source.look = func() error {
				if fails--; fails >= 0 {
					return errOut
				}
				return nil
			}
		}, tier.OutcomeKept, 0},
		"its source is not configured": {func(r *rig) { r.unconfigured = true },
			tier.OutcomeUnknown, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := interrupted(t, false)
			c.change(r)
			r.must(r.x.ResolveIntents(context.Background()))
			for range 2 {
				r.do(engine.Sweep{ID: 9})
			}
			if o := r.audit.outcomes; len(o) != 1 || o[0].Result != c.want {
				t.Errorf("outcomes %+v, want one: %s", o, c.want)
			}
			if w := r.ledger.Table("orders").Window; w.Segments != c.gone {
				t.Errorf("the brake counts %d, want %d", w.Segments, c.gone)
			}
		})
	}
}
