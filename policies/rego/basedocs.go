package rego

import (
	"context"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// baseDocs answers references to the user's data from OPA's terms themselves. OPA has a cache for
// what it reads of a store, which is new for each evaluation; the data of a Set never changes, so
// that there is nothing to read, to copy or to remember. It is safe for concurrent use.
type baseDocs struct{ root ast.Value }

var _ topdown.BaseCache = baseDocs{}

func newBaseDocs(ctx context.Context, store storage.Store) (baseDocs, error) {
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return baseDocs{}, fmt.Errorf("read the policies' data: %w", err)
	}
	defer store.Abort(ctx, txn)
	root, err := store.Read(ctx, txn, storage.Path{})
	if err != nil {
		return baseDocs{}, fmt.Errorf("read the policies' data: %w", err)
	}
	value, ok := root.(ast.Value)
	if !ok {
		return baseDocs{}, fmt.Errorf("read the policies' data: the store gave %T", root)
	}
	return baseDocs{value}, nil
}

// Get implements topdown.BaseCache. Nil is what is not there, and the whole document, of which OPA
// hides a part: both are then asked of the store.
func (d baseDocs) Get(ref ast.Ref) ast.Value {
	if len(ref) < 2 {
		return nil
	}
	v, err := d.root.Find(ref[1:])
	if err != nil {
		return nil
	}
	return v
}

// Put implements topdown.BaseCache.
func (baseDocs) Put(ast.Ref, ast.Value) {}
