package objstore

import (
	"context"
	"strings"
	"testing"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/tier"
)

// yes is policies that let everything go.
type yes struct{}

func (yes) Decide(context.Context, *gate.Facts) (gate.Decision, error) {
	return gate.Decision{Delete: true}, nil
}

// A permit to delete a local segment names the object that proves it, and must not reach it.
func TestDeleteRefusesAPermitForLocalFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.published(t, add(1))
	key := entryKey(t, b.Store, 1)
	facts := &gate.Facts{
		Action: tier.DeleteLocal, Now: 1,
		Table: tier.Table{Name: orders.Table, Tiering: true},
		Log:   gate.LogFacts{ID: orders, State: tier.Enabled, Copied: 100},
		Seg: gate.SegmentFacts{Range: tier.Range{Next: 100}, File: tier.Stat{Inode: 1},
			Object: key},
		Safety: gate.SafetyFacts{
			Closed: tier.Yes, FirstLocal: tier.Yes, EpochCurrent: tier.Yes, SourceWhole: tier.Yes,
			NotPaused: tier.Yes, OwnsSource: tier.Yes, DropWay: tier.LocalDeleteUnlink,
			Proof: gate.Proof{Recorded: tier.Yes, Identity: tier.Yes, Manifest: tier.Yes,
				Objects: tier.Yes, Lineage: tier.Yes, Sound: tier.Yes},
		},
	}
	permit, verdict := gate.New(yes{}).Ask(t.Context(), facts)
	if !verdict.Delete {
		t.Fatalf("the gate keeps: %v", verdict.Reasons)
	}
	if err := b.Delete(t.Context(), permit, facts.Target(), key); err == nil {
		t.Error("no error")
	}
	if len(b.mem.Keys()) != 1 {
		t.Error("deleted all the same")
	}
	if err := permit.Spend(facts.Target()); err != nil {
		t.Errorf("the refusal spent the permit: %v", err)
	}
}

func TestDeleteNeedsAPermit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.published(t, add(1))
	key := entryKey(t, b.Store, 1)
	for _, action := range []tier.Action{tier.DeleteRemote, tier.DeleteOrphan, tier.DisableDelete} {
		target := gate.Target{Action: action, Log: orders, Object: key}
		err := b.Delete(t.Context(), gate.Permit{}, target, key)
		if err == nil || !strings.Contains(err.Error(), "no permit") || len(b.mem.Keys()) != 1 {
			t.Errorf("%s with the zero permit: %v, left %v", action, err, b.mem.Keys())
		}
	}
}

func TestDeletionStaysWithinItsTarget(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one, two := fileKey(t, b.Store, file(1, "a.log")), fileKey(t, b.Store, file(2, "a.log"))
	index := fileKey(t, b.Store, file(1, "a.index"))
	dir, err := b.keys.Attempt(file(1, ""))
	if err != nil {
		t.Fatal(err)
	}
	block, err := b.keys.Checkpoint(orders, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	probe, err := b.keys.Probe("n")
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(one, ledger, "fedcba9876543210", 1)
	tests := []struct {
		name   string
		action tier.Action
		log    tier.LogID
		object string
		keys   []string
		ok     bool
	}{
		{"the object", tier.DeleteRemote, orders, one, []string{one}, true},
		{"an attempt", tier.DeleteOrphan, orders, dir, []string{one, index}, true},
		{"a checkpoint", tier.DisableDelete, orders, block, []string{block}, true},
		{"no keys", tier.DeleteRemote, orders, one, nil, false},
		{"no object", tier.DeleteRemote, orders, "", []string{one}, false},
		{"another object", tier.DeleteRemote, orders, one, []string{two}, false},
		{"another attempt", tier.DeleteRemote, orders, dir, []string{one, two}, false},
		{"one more object", tier.DeleteRemote, orders, one, []string{one, index}, false},
		{"a prefix without slash", tier.DeleteRemote, orders, dir[:len(dir)-1], []string{one}, false},
		{"another log", tier.DeleteRemote, tier.LogID{Table: "t", Name: "0"}, one, []string{one}, false},
		{"another ledger", tier.DeleteRemote, orders, other, []string{other}, false},
		{"the directory itself", tier.DeleteRemote, orders, dir, []string{dir}, false},
		{"a path", tier.DeleteRemote, orders, dir, []string{dir + "../x"}, false},
		{"the owner", tier.DeleteRemote, tier.LogID{}, b.keys.Owner(), []string{b.keys.Owner()}, false},
		{"a probe", tier.DeleteRemote, tier.LogID{}, probe, []string{probe}, false},
		{"a local deletion", tier.DeleteLocal, orders, one, []string{one}, false},
		{"no action", "", orders, one, []string{one}, false},
	}
	for _, test := range tests {
		target := gate.Target{Action: test.action, Log: test.log, Object: test.object}
		if err := b.checkDeletion(target, test.keys); (err == nil) != test.ok {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestRemove(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	key := fileKey(t, b.Store, file(1, "f"))
	b.mem.Put(key, nil)
	b.faults.SetHook(fault.On(fault.OpDelete, fault.Effect{Err: fault.StatusError{Code: 503}}))
	if err := b.remove(t.Context(), key); err == nil || !strings.Contains(err.Error(), key) {
		t.Errorf("refused: %v, want an error with the key", err)
	}
	b.faults.SetHook(nil)
	for _, what := range []string{"there", "gone"} {
		if err := b.remove(t.Context(), key); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if len(b.mem.Keys()) != 0 {
		t.Errorf("left %v", b.mem.Keys())
	}
}
