package rego

import (
	"context"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
)

// TestBaseDocs: what is answered from the terms is what the store would have given, and what it has
// not is left to it.
func TestBaseDocs(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, err := NewStore(map[string]any{
		"holds":  map[string]any{"orders": []any{"a", map[string]any{"b": nil}}, "": 7},
		"system": map[string]any{"x": 1}, "flag": false,
	})
	if err != nil {
		t.Fatal(err)
	}
	docs, err := newBaseDocs(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	txn := storage.NewTransactionOrDie(ctx, store)
	defer store.Abort(ctx, txn)
	for text, found := range map[string]bool{
		`data`: false, `data.holds`: true, `data.holds.orders`: true, `data.holds.orders[0]`: true,
		`data.holds.orders[1].b`: true, `data.holds.orders[2]`: false, `data.holds[""]`: true,
		`data.flag`: true, `data.flag.x`: false, `data.none`: false, `data.holds.none.x`: false,
		`data.holds.orders["0"]`: false, `data.holds[0]`: false, `data.system.x`: true,
	} {
		ref := ast.MustParseRef(text)
		got := docs.Get(ref)
		if (got != nil) != found {
			t.Errorf("%s: %v", text, got)
		}
		if got == nil {
			continue
		}
		path, err := storage.NewPathForRef(ref)
		if err != nil {
			t.Fatal(err)
		}
		want, err := store.Read(ctx, txn, path)
		if err != nil || ast.Compare(got, want) != 0 {
			t.Errorf("%s: %v, the store has %v (%v)", text, got, want, err)
		}
	}
}
