package objstore

import (
	"errors"
	"slices"
	"testing"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/tier"
)

// TestUnion: what a checkpoint lacks, and an entry has, is hidden; what cannot be read is a
// problem; what is of another log, or cut, is none of its facts.
func TestUnion(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var facts []tier.Fact
	for pos := range tier.Position(130) {
		facts = append(facts, add(pos))
	}
	b.published(t, facts...)
	b.checkpointed(t, 1, 0, slices.Delete(slices.Clone(facts[:64]), 7, 9)...)
	b.checkpointed(t, 1, 1, facts[64:128]...)
	u, err := b.Union(t.Context(), orders)
	if err != nil {
		t.Fatal(err)
	}
	if got := positions(u.Hidden); !slices.Equal(got, []tier.Position{7, 8}) {
		t.Errorf("hidden: %v", got)
	}
	if len(u.Facts) != 128 || u.Next != 130 || !slices.Equal(u.Checkpoints, []uint64{2, 0}) ||
		len(u.Problems) != 0 {
		t.Errorf("%d facts, next %d, checkpoints %v, problems %v", len(u.Facts), u.Next, u.Checkpoints,
			u.Problems)
	}

	// The first block is cut: its entries serve, and no block leads any more.
	key, err := b.keys.Checkpoint(orders, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	data, _ := b.mem.Object(key)
	b.mem.Put(key, data[:len(data)/2])
	u, err = b.Union(t.Context(), orders)
	if err != nil || len(u.Facts) != 130 || len(u.Hidden) != 0 || u.Checkpoints[0] != 0 ||
		len(u.Problems) != 1 || !errors.Is(u.Problems[0].Err, tier.ErrDamaged) {
		t.Errorf("%d facts, %d hidden, checkpoints %v, problems %v, %v", len(u.Facts), len(u.Hidden),
			u.Checkpoints, u.Problems, err)
	}

	// A copy of another log's entry, under a key of this one, says nothing, but its position was used.
	other, err := b.keys.Entry(tier.LogID{Table: "orders", Name: "01"}, 400, attempt(400))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.PutFact(t.Context(), tier.LogID{Table: "orders", Name: "01"}, attempt(400),
		add(400)); err != nil {
		t.Fatal(err)
	}
	mine, err := b.keys.Entry(orders, 400, attempt(400))
	if err != nil {
		t.Fatal(err)
	}
	data, _ = b.mem.Object(other)
	b.mem.Put(mine, data)
	u, err = b.Union(t.Context(), orders)
	if err != nil || u.Next != 401 || len(u.Facts) != 130 || len(u.Problems) != 2 {
		t.Errorf("next %d, %d facts, problems %v, %v", u.Next, len(u.Facts), u.Problems, err)
	}

	// A call that fails leaves open what the manifest says.
	b.faults.SetHook(func(op fault.Op) fault.Effect {
		if op.Key == mine {
			return fault.Effect{Err: errors.New("connection refused")}
		}
		return fault.Effect{}
	})
	if _, err := b.Union(t.Context(), orders); err == nil {
		t.Error("an entry could not be read, and nobody noticed")
	}
}

func TestOwners(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mem.Put("readme.txt", []byte("x"))
	b.mem.Put("somebody/else", []byte("x"))
	b.mem.Put("0badc0de/owner.json", []byte("{"))
	if err := b.Own(t.Context(), owner("a")); err != nil {
		t.Fatal(err)
	}
	owners, problems, err := Owners(t.Context(), b.faults)
	if err != nil || !slices.Equal(owners, []Owner{owner("a")}) || len(problems) != 1 ||
		problems[0].Key != "0badc0de/owner.json" {
		t.Errorf("%v, %v, %v", owners, problems, err)
	}
	b.faults.SetHook(func(op fault.Op) fault.Effect {
		return fault.Effect{Err: errors.New("connection refused")}
	})
	if _, _, err := Owners(t.Context(), b.faults); err == nil {
		t.Error("the bucket could not be listed, and nobody noticed")
	}
}
