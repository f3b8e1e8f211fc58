package exec

import (
	"context"
	"strings"
	"testing"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// expiredRig has one copy that has left its log, and whose grace is over.
func expiredRig(t *testing.T) (*rig, engine.Remove) {
	t.Helper()
	r := newRig(t)
	r.roll(2)
	r.opened()
	pos := r.copied(0)
	want[engine.Moved](r, r.do(engine.MoveStart{ID: 4, Log: orders, Start: 10,
		Cause: tier.MoveExpired}))
	r.now += tier.Time(r.grace)
	return r, engine.Remove{ID: 5, Log: orders, Action: tier.DeleteRemote,
		Copies: []engine.RemoteCandidate{{Remote: tier.Remote{
			Range: tier.Range{Base: 0, Next: 10}, Position: pos, Epoch: 1}}}}
}

// stayed expects that the one copy stayed, and that the audit log says so.
func (r *rig) stayed(res engine.Result) {
	r.t.Helper()
	done := want[engine.Removed](r, res)
	if len(done.Positions) > 0 || len(done.Kept) != 1 || done.Kept[0].Denied {
		r.t.Errorf("%+v, want the copy kept, and not by a policy", done)
	}
	if n := len(r.audit.outcomes); n != 1 || r.audit.outcomes[0].Result != tier.OutcomeKept {
		r.t.Errorf("concluded as %+v, want kept", r.audit.outcomes)
	}
	if open := r.audit.OpenIntents(); len(open) > 0 {
		r.t.Errorf("announced without an outcome: %+v", open)
	}
}

// TestWhatWaitsForTheStoreCanBeStopped: a removal that was announced and waits for its place among
// those with the store is stopped by a pause, and by whoever gives it up; nothing is gone then.
func TestWhatWaitsForTheStoreCanBeStopped(t *testing.T) {
	t.Parallel()
	t.Run("paused", func(t *testing.T) {
		t.Parallel()
		r, f := expiredRig(t)
		r.x.c.Removing = make(chan struct{}, 1)
		before := len(r.keys.Keys())
		r.audit.intend = func() error {
			r.paused = &tier.Reason{Code: tier.CodePaused, Text: "the pause file is there"}
			return nil
		}
		r.stayed(r.do(f))
		if n := len(r.keys.Keys()); n != before {
			t.Errorf("%d objects in the store, want %d", n, before)
		}
		if n := len(r.x.c.Removing); n != 0 {
			t.Errorf("%d places are taken, want none", n)
		}
		r.paused, r.audit.intend = nil, nil
		if done := want[engine.Removed](r, r.do(f)); len(done.Positions) != 1 {
			t.Errorf("without the pause: %+v", done)
		}
	})
	t.Run("given up", func(t *testing.T) {
		t.Parallel()
		r, f := expiredRig(t)
		r.x.c.Removing = make(chan struct{}, 1)
		r.x.c.Removing <- struct{}{}
		before := len(r.keys.Keys())
		ctx, giveUp := context.WithCancel(context.Background())
		defer giveUp()
		r.audit.intend = giveUpAt(giveUp) // it is announced, and then has no place
		res, err := r.x.Do(ctx, f)
		r.must(err)
		r.stayed(res)
		if n := len(r.keys.Keys()); n != before {
			t.Errorf("%d objects in the store, want %d", n, before)
		}
		r.audit.intend = nil
		<-r.x.c.Removing
		if done := want[engine.Removed](r, r.do(f)); len(done.Positions) != 1 {
			t.Errorf("with a place: %+v", done)
		}
		if n := len(r.x.c.Removing); n != 0 {
			t.Errorf("%d places are taken after all, want none", n)
		}
	})
}

// TestARemovalThatWasMadeUnheardIsMade: the call that was given up removed the copy after all. The
// engine, which still has it, asks again, and would do so for ever.
func TestARemovalThatWasMadeUnheardIsMade(t *testing.T) {
	t.Parallel()
	r, f := expiredRig(t)
	for range 2 {
		done := want[engine.Removed](r, r.do(f))
		if len(done.Positions) != 1 || len(done.Kept) > 0 {
			t.Errorf("%+v, want the copy removed", done)
		}
		f.ID++
	}
	if n := len(r.audit.outcomes); n != 1 {
		t.Errorf("announced %d times, want once", n)
	}
}

// TestGoneIsWhatTheStoreSays: a copy whose object is still there after its deletion, or of which
// the store gives no answer, is not forgotten, and the reason says which.
func TestGoneIsWhatTheStoreSays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		look func(r *rig, key string) error
		text string
	}{
		"it is there": {func(r *rig, key string) error { r.keys.Put(key, []byte("x")); return nil },
			"is still there after its deletion"},
		"it is there, and empty": {func(r *rig, key string) error { r.keys.Put(key, nil); return nil },
			"is still there after its deletion"},
		"no answer": {func(*rig, string) error { return errOut }, "cannot be told"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, f := expiredRig(t)
			removed := ""
			r.bucket.SetHook(func(op fault.Op) (e fault.Effect) {
				switch {
				case op.Kind == fault.OpDelete:
					removed = op.Key
				case op.Kind == fault.OpAttributes && op.Key == removed:
					e.Err = c.look(r, op.Key)
				}
				return e
			})
			done := want[engine.Removed](r, r.do(f))
			if len(done.Positions) > 0 || len(done.Kept) != 1 {
				t.Fatalf("%+v, want the copy kept", done)
			}
			text := done.Kept[0].Reasons[0].Text
			if !strings.Contains(text, c.text) || strings.Contains(text, "%!") {
				t.Errorf("kept because %q, want %q", text, c.text)
			}
			if o := r.audit.outcomes; len(o) != 1 || o[0].Result != tier.OutcomeUnknown {
				t.Errorf("concluded as %+v, want unknown", o)
			}
			r.bucket.SetHook(nil)
			if done := want[engine.Removed](r, r.do(f)); len(done.Positions) != 1 {
				t.Errorf("once it can go: %+v", done)
			}
		})
	}
}
