package sim

import (
	"testing"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/runtime/tier"
)

// TestUnannounced: an upload is announced where a record names just it, and a checkpoint where all
// that it stands for is settled.
func TestUnannounced(t *testing.T) {
	t.Parallel()
	id, other := tier.AttemptID{1}, tier.AttemptID{2}
	whole := func() *ledgerLog {
		return &ledgerLog{state: tier.LogState{Log: orders, Next: 64, Epoch: 1},
			attempts: []tier.Attempt{{ID: id, Position: 70, Epoch: 1, Names: []string{"a.log"},
				Range: tier.Range{Base: 0, Next: 10}}},
			facts: []tier.Fact{{Position: 3, Hole: &tier.Hole{}}}}
	}
	file := objstore.Key{Kind: objstore.KeyFile, Log: orders, Epoch: 1, Base: 0, Attempt: id,
		Name: "a.log"}
	entry := objstore.Key{Kind: objstore.KeyEntry, Log: orders, Attempt: id, Position: 70}
	hole := objstore.Key{Kind: objstore.KeyEntry, Log: orders, Position: 3}
	block := objstore.Key{Kind: objstore.KeyCheckpoint, Log: orders, Level: 1}
	same := func(*ledgerLog, *objstore.Key) {}
	for name, c := range map[string]struct {
		key    objstore.Key
		change func(*ledgerLog, *objstore.Key)
		may    bool
	}{
		"a file":          {file, same, true},
		"another attempt": {file, func(_ *ledgerLog, k *objstore.Key) { k.Attempt = other }, false},
		"another epoch":   {file, func(_ *ledgerLog, k *objstore.Key) { k.Epoch = 2 }, false},
		"another base":    {file, func(_ *ledgerLog, k *objstore.Key) { k.Base = 10 }, false},
		"another name":    {file, func(_ *ledgerLog, k *objstore.Key) { k.Name = "b.log" }, false},
		"an entry":        {entry, same, true},
		"an entry of another attempt": {entry,
			func(_ *ledgerLog, k *objstore.Key) { k.Attempt = other }, false},
		"an entry at another position": {entry,
			func(_ *ledgerLog, k *objstore.Key) { k.Position = 71 }, false},
		"a hole":            {hole, same, true},
		"a hole of nothing": {hole, func(_ *ledgerLog, k *objstore.Key) { k.Position = 4 }, false},
		"a hole as a copy":  {hole, func(_ *ledgerLog, k *objstore.Key) { k.Attempt = other }, false},
		"a checkpoint":      {block, same, true},
		"of positions that are not handed out": {block,
			func(l *ledgerLog, _ *objstore.Key) { l.state.Next = 63 }, false},
		"of the block behind": {block, func(_ *ledgerLog, k *objstore.Key) { k.Block = 1 }, false},
		"of a higher level":   {block, func(_ *ledgerLog, k *objstore.Key) { k.Level = 2 }, false},
		"over a copy under way": {block,
			func(l *ledgerLog, _ *objstore.Key) { l.attempts[0].Position = 63 }, false},
		"over a fact that the manifest lacks": {block,
			func(l *ledgerLog, _ *objstore.Key) { l.state.Unpublished = []tier.Position{0} }, false},
		"before a fact that the manifest lacks": {block,
			func(l *ledgerLog, _ *objstore.Key) { l.state.Unpublished = []tier.Position{64} }, true},
		"the owner": {objstore.Key{Kind: objstore.KeyOwner}, same, false},
		"a probe":   {objstore.Key{Kind: objstore.KeyProbe}, same, true},
	} {
		l, k := whole(), c.key
		c.change(l, &k)
		if why := unannounced(l, tier.TableState{State: tier.Enabled, Epoch: 1}, k, true); (why ==
			"") != c.may {
			t.Errorf("%s: %q, want it to be announced: %t", name, why, c.may)
		}
	}
	if unannounced(nil, tier.TableState{}, file, true) == "" {
		t.Error("a file of a log that nobody knows was announced")
	}
	if unannounced(whole(), tier.TableState{}, file, false) == "" {
		t.Error("what is no key was announced")
	}
}
