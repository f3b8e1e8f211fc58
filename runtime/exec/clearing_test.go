package exec

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// rebuiltLedger is one that was put together from what the store has.
type rebuiltLedger struct {
	Ledger
	at tier.Time
}

func (l rebuiltLedger) Rebuilt() tier.Time { return l.at }

// TestATombstoneIsClearedWhenItIsOld, and as far as the policies let it: until then something of
// its attempt may still come.
func TestATombstoneIsClearedWhenItIsOld(t *testing.T) {
	t.Parallel()
	r, f := abandonedRig(t)
	r.orphanAge = time.Hour
	stays := func(when string, code tier.Code) {
		t.Helper()
		k := want[engine.StaysAll](r, r.do(f)).Kept
		if k.Reasons[0].Code != code || len(r.tombstones()) != 1 || len(r.audit.announced) > 0 {
			t.Fatalf("%s: %+v, %d tombstones, announced %+v; want it kept for %s", when, k,
				len(r.tombstones()), r.audit.announced, code)
		}
	}
	r.now += tier.Time(r.orphanAge) - 1
	stays("a moment too early", tier.CodeGrace)
	r.now++
	r.clocks = tier.No
	stays("while the clocks disagree", tier.CodeClock)
	r.clocks = tier.Yes
	r.answer = gate.Decision{Reasons: []tier.Reason{{Code: tier.CodeDenied}}}
	stays("denied", tier.CodeDenied)
	r.answer = gate.Decision{Delete: true}
	want[engine.Done](r, r.do(f))
	if len(r.tombstones()) > 0 || len(r.audit.announced) != 1 {
		t.Errorf("%+v, announced %+v; want it cleared", r.tombstones(), r.audit.announced)
	}
	want[engine.Done](r, r.do(f)) // once more, by an engine that did not hear
}

// TestATombstoneOfWhatNeverCame announces no deletion.
func TestATombstoneOfWhatNeverCame(t *testing.T) {
	t.Parallel()
	r, f := abandonedRig(t)
	for _, key := range r.keys.Keys() {
		r.keys.Remove(key)
	}
	want[engine.Done](r, r.do(f))
	if len(r.tombstones()) > 0 || len(r.audit.announced) > 0 {
		t.Errorf("%+v, announced %+v; want it cleared, and nothing deleted", r.tombstones(),
			r.audit.announced)
	}
}

// TestAnOrphanIsOld by the store's own time, by a full age, and not soon after a rebuild.
func TestAnOrphanIsOld(t *testing.T) {
	t.Parallel()
	const age = tier.Time(100)
	g := &Generation{OrphanAge: age}
	for name, c := range map[string]struct {
		modified tier.Time
		young    bool
		want     tier.Truth
	}{
		"old":                      {899, false, tier.Yes},
		"not yet":                  {900, false, tier.No},
		"the store has no time":    {0, false, tier.No},
		"the ledger was just made": {899, true, tier.No},
	} {
		f := found{now: 1000, young: c.young}
		if got := f.old(g, &tier.StoredObject{Modified: c.modified}); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// orphanRig has an object in the store that nothing names, and which is old. It returns its key,
// and the attempt that its key names.
func orphanRig(t *testing.T) (*rig, string, tier.AttemptID) {
	t.Helper()
	r := newRig(t)
	r.roll(2)
	r.opened()
	r.orphanAge = time.Hour
	id := tier.AttemptID{9}
	key, err := r.store().FileKey(tier.ObjectKey{Log: orders, Epoch: 1, Attempt: id,
		Name: fileName(0)})
	r.must(err)
	r.keys.Put(key, []byte("nobody's"))
	r.now += tier.Time(2 * time.Hour)
	return r, key, id
}

// TestAnOrphanStays for each reason that it has, and goes without one.
func TestAnOrphanStays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*rig, tier.AttemptID)
		goes  bool
	}{
		"none": {func(*rig, tier.AttemptID) {}, true},
		"the ledger was rebuilt just now": {func(r *rig, _ tier.AttemptID) {
			r.x.c.Ledger = rebuiltLedger{r.ledger, r.now - tier.Time(r.orphanAge)}
		}, false},
		"the ledger was rebuilt long ago": {func(r *rig, _ tier.AttemptID) {
			r.x.c.Ledger = rebuiltLedger{r.ledger, r.now - tier.Time(r.orphanAge) - 1}
		}, true},
		"it is young": {func(r *rig, _ tier.AttemptID) { r.orphanAge = 2 * time.Hour }, false},
		"it got a name since it was listed": {func(r *rig, id tier.AttemptID) {
			r.bucket.SetHook(func(op fault.Op) fault.Effect {
				if op.Kind == fault.OpIter && strings.Contains(op.Key, "probe") {
					_, err := r.ledger.Append(context.Background(), tier.CopyStarted{Log: orders,
						Attempt: tier.Attempt{ID: id, Epoch: 1, Range: tier.Range{Base: 0, Next: 10},
							Names: []string{fileName(0)}, StartedAt: r.now}})
					r.must(err)
				}
				return fault.Effect{}
			})
		}, false},
		"the manifest has a newer entry": {func(r *rig, _ tier.AttemptID) {
			start := tier.Offset(0)
			r.must(r.store().PutFact(context.Background(), orders, tier.AttemptID{}, tier.Fact{
				Position: 70, Epoch: 1, Start: &start, At: r.now}))
		}, false},
		"it is denied": {func(r *rig, _ tier.AttemptID) {
			r.answer = gate.Decision{Reasons: []tier.Reason{{Code: tier.CodeDenied}}}
		}, false},
		"the clocks disagree": {func(r *rig, _ tier.AttemptID) { r.clocks = tier.No }, false},
		"paused": {func(r *rig, _ tier.AttemptID) {
			r.paused = &tier.Reason{Code: tier.CodePaused, Text: "paused"}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, key, id := orphanRig(t)
			c.spoil(r, id)
			s := want[engine.Swept](r, r.do(engine.Sweep{ID: 1}))
			_, there := r.keys.Object(key)
			if there == c.goes || (s.Objects == 1) != c.goes || (s.Kept == 1) == c.goes ||
				(len(r.audit.announced) == 1) != c.goes {
				t.Errorf("%+v, there: %t, announced %d; want it to go: %t", s, there,
					len(r.audit.announced), c.goes)
			}
			if stale := strings.Contains(name, "newer"); (s.Stale != nil) != stale {
				t.Errorf("stale: %+v, want that: %t", s.Stale, stale)
			}
		})
	}
}

// TestWhatIsKnownOfAManifestIsOfOneLog: each is listed by itself, once.
func TestWhatIsKnownOfAManifestIsOfOneLog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(1)
	r.opened()
	start := tier.Offset(0)
	other := tier.LogID{Table: "orders", Name: "1"}
	r.must(r.store().PutFact(context.Background(), other, tier.AttemptID{}, tier.Fact{Position: 7,
		Epoch: 1, Start: &start, At: r.now}))
	listed := 0
	r.bucket.SetHook(func(op fault.Op) fault.Effect {
		if op.Kind == fault.OpIter {
			listed++
		}
		return fault.Effect{}
	})
	var k knowledge
	for _, c := range []struct {
		log  tier.LogID
		want tier.Truth
	}{{orders, tier.Yes}, {orders, tier.Yes}, {other, tier.No}, {other, tier.No}} {
		if got := k.of(context.Background(), r.x, c.log); got != c.want {
			t.Errorf("%s: %s, want %s", c.log, got, c.want)
		}
	}
	var once knowledge
	first := listed
	once.of(context.Background(), r.x, orders)
	if per := listed - first; first != 2*per {
		t.Errorf("%d listings for two logs, %d for one", first, per)
	}
}
