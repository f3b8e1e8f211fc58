package sim

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/verbatim/verbatimtest"
)

// TestPlainDocuments: what a plain document says is what encoding/json reads of it, whatever is
// wrong with it; and what tierd writes is plain, but for what is escaped.
func TestPlainDocuments(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	objects := fault.NewMem(time.Now)
	store, err := objstore.New(objects, "0123456789abcdef0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	at := func(o tier.Offset) *tier.Offset { return &o }
	add := &tier.Copy{Attempt: tier.AttemptID{1}, Epoch: 2, Verified: tier.VerifyFull, ModTime: -7,
		FinishedAt: 8, Content: tier.Content{Range: tier.Range{Base: 10, Next: 20}, MaxTime: 3,
			Batches: 4, LastNext: 19, Files: []tier.SourceFile{
				{FileDigest: tier.FileDigest{Name: "10.log", Size: 5, SHA256: tier.SHA256{6}, CRC32C: 7},
					Stat: tier.Stat{Inode: 8, Size: 9, ModTime: 10}},
				{FileDigest: tier.FileDigest{Name: "10.index"}}},
			Lineage: []tier.EpochStart{{Epoch: 0, Start: 10}, {Epoch: 3, Start: 15}}}}
	facts := []tier.Fact{{Epoch: 2, At: 8, Copied: 20, Add: add},
		{Position: 1, Clip: at(9)},
		{Position: 2, Hole: &tier.Hole{Range: tier.Range{Base: 1, Next: 2}, Cause: "gone", At: 3}},
		{Position: 3, Start: at(4)}, {Position: 4, Clip: at(5), Incarnation: "an id"},
		{Position: 5, Open: at(6)}, {Position: 6, Open: at(7), Incarnation: `a "quoted" one`}}
	for _, f := range facts {
		id := tier.AttemptID{}
		if f.Add != nil {
			id = f.Add.Attempt
		}
		if err := store.PutFact(ctx, orders, id, f); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.PutCheckpoint(ctx, orders, 1, 0, facts[:6]); err != nil {
		t.Fatal(err)
	}
	check := func(data []byte) bool {
		got, plain := plainDocument(data)
		var want document
		if !plain {
			return false
		} else if err := json.Unmarshal(data, &want); err != nil {
			t.Fatalf("%s: it is plain, and no JSON: %v", data, err)
		} else if !reflect.DeepEqual(*got, want) {
			t.Fatalf("%s: %+v, want %+v", data, *got, want)
		}
		return true
	}
	plain := 0
	objects.Look(func(_ string, data []byte) {
		if check(data) {
			plain++
		}
		for other := range verbatimtest.Near(data) {
			check(other)
		}
	})
	if plain != 7 { // but for what is escaped
		t.Errorf("%d documents are plain", plain)
	}
}
