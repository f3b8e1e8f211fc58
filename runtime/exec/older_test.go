package exec

import (
	"testing"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// TestAnOlderLedgerHandsOutNoPosition: an entry that the ledger does not know, as a copy has that
// was made after the ledger's backup. Whatever took its position would hide it, and the copy would
// be an orphan.
func TestAnOlderLedgerHandsOutNoPosition(t *testing.T) {
	t.Parallel()
	of := map[string]func(r *rig) engine.Effect{
		"copy": func(r *rig) engine.Effect { return r.copyEffect(20) },
		"hole": func(*rig) engine.Effect {
			return engine.RecordHole{ID: 6, Log: orders, Source: "wal", Cause: tier.HoleSourceGone,
				Range: tier.Range{Base: 0, Next: 20}}
		},
		"epoch": func(*rig) engine.Effect {
			return engine.OpenEpoch{ID: 2, Log: orders, Source: "wal", Epoch: 2, Fresh: true, Start: 20}
		},
		"start": func(*rig) engine.Effect {
			return engine.MoveStart{ID: 3, Log: orders, Source: "wal", Start: 20,
				Cause: tier.MoveDropped}
		},
	}
	for name, effect := range of {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.write(fileName(20), "segment 20\n")
			r.write(fileName(30), "segment 30\n")
			r.opened()
			state, _ := r.ledger.Log(orders)
			keys, err := objstore.NewKeys(r.ledger.ID())
			r.must(err)
			key, err := keys.Entry(orders, state.Next, tier.AttemptID{9})
			r.must(err)
			r.keys.Put(key, []byte("the entry of the only copy of [0, 20)"))
			failed := want[engine.Failed](r, r.do(effect(r)))
			if failed.Reason.Code != tier.CodeLedgerStale {
				t.Errorf("%+v, want %s", failed, tier.CodeLedgerStale)
			}
			if now, _ := r.ledger.Log(orders); now.Next != state.Next {
				t.Errorf("the next position is %d, and was %d", now.Next, state.Next)
			}
		})
	}
}
