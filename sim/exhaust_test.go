package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	thanos "github.com/thanos-io/objstore"

	"github.com/tierd/tierd/objstore/fault"
)

// TestStateTellsWorldsApart: a search does not go on from a state that it met before, so whatever
// can still make a difference has to be part of it.
func TestStateTellsWorldsApart(t *testing.T) {
	t.Parallel()
	nothing := func(*rig) {}
	unsynced := func(r *rig) {
		f, err := r.w.Disk.Create(SegmentPath(orders, 100))
		r.do(err)
		r.do(f.Close())
	}
	for name, c := range map[string]struct {
		one, other func(*rig)
		same       bool
	}{
		"nothing happens": {nothing, nothing, true},
		"an object has other bytes": {one: nothing, other: func(r *rig) {
			r.w.Objects.Put(r.object(0), []byte("other"))
		}},
		"an upload is still to come": {one: nothing, other: func(r *rig) {
			r.w.Bucket.SetHook(func(fault.Op) fault.Effect { return fault.Effect{Late: true} })
			body := thanos.NopCloserWithSize(strings.NewReader("x"))
			r.do(r.w.Bucket.Upload(t.Context(), "late", body))
		}},
		"a file is not synced": {one: unsynced, other: func(r *rig) {
			unsynced(r)
			r.do(r.w.Disk.Sync("wal/orders/0"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var states []uint64
			for _, do := range []func(*rig){c.one, c.other} {
				r := newRig(t)
				r.copied(1)
				do(r)
				h := &play{w: r.w, o: r.oracle}
				states = append(states, h.state())
			}
			if same := states[0] == states[1]; same != c.same {
				t.Errorf("they are the same state: %t", same)
			}
		})
	}
}

// TestExhaustGoesAsDeepAsItSays: a state that a history passes through is not one that another
// one has met, where both have come the same way. Each further action meets new ones.
func TestExhaustGoesAsDeepAsItSays(t *testing.T) {
	t.Parallel()
	p, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	count := func(b Bounds) (states, deepest int) {
		for first := range b.Firsts() {
			e := p.Exhaust(b, first, func(*Explored) bool { return true })
			if e.Failure != nil {
				t.Fatal(e.Failure.Outcome.Violation)
			}
			states, deepest = states+e.States, max(deepest, e.Deepest)
		}
		return states, deepest
	}
	before := 0
	for actions := 1; actions <= 2; actions++ {
		states, deepest := count(Bounds{Segments: 1, Actions: actions})
		if states < 2*before || deepest != actions {
			t.Errorf("%d states, %d before; the longest history has %d of %d actions", states, before,
				deepest, actions)
		}
		before = states
	}
}

// TestApart: of spans that are near each other a search tries the longest, and all those of the
// policies.
func TestApart(t *testing.T) {
	t.Parallel()
	p, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	p.Spans = []time.Duration{9 * time.Hour, 36 * time.Hour}
	var got []string
	for _, s := range (&Bounds{}).apart(p.spans()) {
		got = append(got, s.name)
	}
	want := []string{"a minute", "remote_delete_grace", "an hour", "9 hours",
		"36h0m0s, of the policies", "the TTL of orders"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
