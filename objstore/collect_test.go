package objstore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/tier"
)

// TestNewestEntry: it is the highest position of the log's own entries, and no checkpoint.
func TestNewestEntry(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, found, err := b.NewestEntry(t.Context(), orders); found || err != nil {
		t.Errorf("in an empty store: found %t, %v", found, err)
	}
	b.mem.Put(keyOf(t)(b.keys.Checkpoint(orders, 1, 99)), nil)
	if _, found, err := b.NewestEntry(t.Context(), orders); found || err != nil {
		t.Errorf("a checkpoint alone: found %t, %v", found, err)
	}
	other := tier.LogID{Table: orders.Table, Name: orders.Name + "0"}
	for pos, log := range map[tier.Position]tier.LogID{7: orders, 70: orders, 3: orders, 900: other} {
		b.mem.Put(keyOf(t)(b.keys.Entry(log, pos, tier.AttemptID{})), nil)
	}
	if pos, found, err := b.NewestEntry(t.Context(), orders); pos != 70 || !found || err != nil {
		t.Errorf("position %d, found %t, %v; want 70", pos, found, err)
	}
	b.faults.SetHook(fault.On(fault.OpIter, fault.Effect{Err: fault.ErrDenied}))
	if _, _, err := b.NewestEntry(t.Context(), orders); err == nil {
		t.Error("a listing that was denied: no error")
	}
}

// keyOf gives the key, or ends the test.
func keyOf(t *testing.T) func(string, error) string {
	return func(key string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
}

// TestObjectsOfLogs: files, entries and checkpoints are told with what their keys say, and when the
// store says that they were modified. Whatever else lies there is nobody's.
func TestObjectsOfLogs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := tier.AttemptID{3}
	file := keyOf(t)(b.keys.File(tier.ObjectKey{Log: orders, Epoch: 2, Base: 5, Attempt: id,
		Name: "a.log"}))
	entry := keyOf(t)(b.keys.Entry(orders, 7, id))
	block := keyOf(t)(b.keys.Checkpoint(orders, 1, 9))
	at := tier.Time(1700000000000000000)
	want := map[string]tier.StoredObject{
		file:  {Key: file, Log: orders, Attempt: id, Epoch: 2, Modified: at},
		entry: {Key: entry, Log: orders, Attempt: id, Position: 7, Entry: true, Modified: at},
		block: {Key: block, Log: orders, Level: 1, Block: 9, Checkpoint: true, Modified: at},
	}
	for key := range want {
		b.mem.Put(key, nil)
	}
	for _, key := range []string{b.keys.Owner(), ledger + "/logs/notes", "elsewhere/" + file} {
		b.mem.Put(key, nil)
	}
	got := map[string]tier.StoredObject{}
	err := b.Objects(t.Context(), func(o tier.StoredObject) error { got[o.Key] = o; return nil })
	if err != nil || len(got) != len(want) {
		t.Errorf("%d objects, %v; want %d", len(got), err, len(want))
	}
	for key, o := range want {
		if got[key] != o {
			t.Errorf("%+v, want %+v", got[key], o)
		}
	}
	stop := errors.New("seen enough")
	err = b.Objects(t.Context(), func(tier.StoredObject) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("stopped: %v", err)
	}
}

// TestAStoreWithoutTimes: what has no time of modification is not old.
func TestAStoreWithoutTimes(t *testing.T) {
	t.Parallel()
	mem := fault.NewMem(func() time.Time { return time.Time{} })
	s, err := New(fault.Wrap(mem, nil), ledger)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Probe(t.Context(), "n", func() tier.Time { return 1 })
	if err == nil || !strings.Contains(err.Error(), "no time of modification") {
		t.Errorf("probed: %v", err)
	}
	mem.Put(keyOf(t)(s.keys.Probe("left")), nil)
	mem.Put(keyOf(t)(s.keys.Entry(orders, 7, tier.AttemptID{})), nil)
	if n, err := s.ForgetProbes(t.Context(), 1<<62); n != 0 || err != nil {
		t.Errorf("%d probes removed, %v", n, err)
	}
	err = s.Objects(t.Context(), func(o tier.StoredObject) error {
		if o.Modified != 0 {
			t.Errorf("%s was modified at %d", o.Key, o.Modified)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestAnotherLedgersStoreIsNotOwned: the owner that is claimed is the one of the store's ledger, in
// words that can be told.
func TestAnotherLedgersStoreIsNotOwned(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other, wild := owner("a"), owner("a\xff")
	other.Ledger = strings.Repeat("f", len(ledger))
	for name, o := range map[string]Owner{"another ledger": other, "no text": wild} {
		if err := b.Own(t.Context(), o); err == nil || len(b.mem.Keys()) > 0 {
			t.Errorf("%s: %v, %v", name, err, b.mem.Keys())
		}
	}
}
