package offsets

import (
	"testing"

	"github.com/tierd/tierd/runtime/tier"
)

// TestTallyOfOneGroup: entries that one group reads, writes and deletes are counted as they are at
// its end, whatever the group remembers of having read them.
func TestTallyOfOneGroup(t *testing.T) {
	t.Parallel()
	log := tier.LogID{Table: "orders", Name: "0"}
	attempt := tier.Attempt{ID: tier.AttemptID{1}, Epoch: 1, Range: tier.Range{Base: 0, Next: 10},
		Names: []string{"0.log"}}
	m := NewMemory([16]byte{1})
	l, err := Open(m)
	if err != nil {
		t.Fatal(err)
	}
	group := &batch{done: make(chan struct{})}
	for _, r := range []tier.Record{
		tier.LogOpened{Log: log, Epoch: 1},
		tier.CopyStarted{Log: log, Attempt: attempt},
		tier.CopyAbandoned{Log: log, Position: 0, Cause: "a test"},
		tier.TombstoneCleared{Log: log, Position: 0},
		tier.CopyStarted{Log: log, Attempt: attempt}, // its id is free again
	} {
		group.records = append(group.records, &pending{record: r})
	}
	l.commitBatch(group)
	for _, p := range group.records {
		if p.err != nil {
			t.Errorf("%T: %v", p.record, p.err)
		}
	}
	if _, err := Open(m.Crash()); err != nil {
		t.Errorf("opened again: %v", err)
	}
}
