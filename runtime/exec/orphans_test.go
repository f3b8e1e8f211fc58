package exec

import (
	"testing"
	"time"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// Fluss 3403: superseded manifests piled up. A checkpoint for which one of the level above stands
// is collected, once it is old enough; one for which none stands yet is not, nor is an entry, by
// which a local deletion is proved.
func TestASupersededCheckpointIsCollected(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.opened()
	at := func(level uint8, block uint64) tier.StoredObject {
		return tier.StoredObject{Log: orders, Checkpoint: true, Level: level, Block: block}
	}
	state := tier.LogState{Log: orders, Next: 64 * 64 * 2, Checkpoints: []uint64{130, 1}}
	for _, c := range []struct {
		object tier.StoredObject
		live   bool
	}{
		{at(1, 0), false}, {at(1, 63), false}, // of the block 0 of level 2
		{at(1, 64), true}, {at(1, 129), true},
		{at(2, 0), true}, // there is no level above
		{tier.StoredObject{Log: orders, Entry: true, Position: 3}, true},
	} {
		live, err := r.x.live(c.object, state, true)
		if live != c.live || err != nil {
			t.Errorf("%+v: live %t, %v; want %t", c.object, live, err, c.live)
		}
	}
	if live, err := r.x.live(at(1, 0), tier.LogState{}, false); live || err != nil {
		t.Errorf("of a log that the ledger never had: live %t, %v", live, err)
	}
	want[engine.Swept](r, r.do(engine.Sweep{ID: 1}))
}

// TestALogThatTheLedgerNeverOpened: it is opened before anything of it is stored. So the ledger is
// an older one, and what it does not name may be what a newer one did: all of it stays.
func TestALogThatTheLedgerNeverOpened(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(1)
	r.opened()
	r.copied(0)
	if done := want[engine.Swept](r, r.do(engine.Sweep{ID: 1})); done.Stale != nil {
		t.Fatalf("%+v before", done)
	}
	store, err := objstore.New(r.bucket, r.ledger.ID())
	r.must(err)
	key, err := store.FileKey(tier.ObjectKey{Log: tier.LogID{Table: "later", Name: "0"}, Epoch: 1,
		Attempt: tier.AttemptID{9}, Name: fileName(0)})
	r.must(err)
	r.keys.Put(key, []byte("the only copy"))
	r.now += tier.Time(1000 * time.Hour)
	done := want[engine.Swept](r, r.do(engine.Sweep{ID: 2}))
	if done.Stale == nil || done.Stale.Code != tier.CodeLedgerStale || done.Objects != 0 {
		t.Errorf("%+v, want it stale", done)
	}
	if _, there := r.keys.Object(key); !there {
		t.Error("the object is gone")
	}
}

// TestWhatAProbeLeftIsCollected: a process that ends in the middle of a probe leaves its object,
// and nothing but its key tells what it is. It goes by age, as orphans do, and not while paused.
func TestWhatAProbeLeftIsCollected(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.opened()
	keys, err := objstore.NewKeys(r.ledger.ID())
	r.must(err)
	left, err := keys.Probe("left")
	r.must(err)
	r.keys.Put(left, []byte("tierd probes"))
	sweeps := func(when string, removed int64) {
		t.Helper()
		s := want[engine.Swept](r, r.do(engine.Sweep{ID: 1}))
		if _, there := r.keys.Object(left); s.Objects != removed || there != (removed == 0) {
			t.Fatalf("%s: removed %d, there: %t; want %d removed", when, s.Objects, there, removed)
		}
	}
	sweeps("while it may be in use", 0)
	r.now++
	r.paused = &tier.Reason{Code: tier.CodePaused, Text: "paused"}
	sweeps("while paused", 0)
	r.paused = nil
	sweeps("when it is old", 1)
}
