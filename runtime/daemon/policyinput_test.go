package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/tier"
)

// TestPolicyInput: each local segment has an input that decides as the daemon does, whatever the
// guard says of it, and so has a remote one; an offset that no segment holds has none.
func TestPolicyInput(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.segments("orders/0", 3)
	opts := s.options()
	opts.NoDelete = true
	if _, err := s.once(opts); err != nil {
		t.Fatal(err)
	}
	b, done, err := Snapshot(t.Context(), s.options())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := done(); err != nil {
			t.Error(err)
		}
	}()
	set, err := rego.Load(nil, nil, rego.Options{})
	if err != nil {
		t.Fatal(err)
	}
	id := tier.LogID{Table: "orders", Name: "0"}
	for offset, want := range map[tier.Offset]tier.Range{
		0: {Base: 0, Next: 10}, 19: {Base: 10, Next: 20}, 20: {Base: 20, Next: 30},
	} {
		got, err := b.PolicyInput(t.Context(), id, offset, "")
		if err != nil {
			t.Fatal(err)
		}
		in, err := rego.ParseInput("input", got.Input)
		if err != nil {
			t.Fatal(err)
		}
		e, err := set.Evaluate(context.Background(), in)
		if r := (tier.Range{Base: got.Base, Next: got.Next}); err != nil || !e.Delete || r != want {
			t.Errorf("offset %d: segment %s, want %s; %+v, %v", offset, r, want, e, err)
		}
	}
	remote, err := b.PolicyInput(t.Context(), id, 15, tier.DeleteRemote)
	if err != nil || remote.Next != 20 || !strings.Contains(string(remote.Input), `"delete_remote"`) {
		t.Errorf("of the remote one of both: %+v, %v", remote, err)
	}
	if _, err := b.PolicyInput(t.Context(), id, 5, tier.DeleteOrphan); api.CodeOf(err) !=
		api.CodeInvalid {
		t.Errorf("of an orphan: %v", err)
	}
	first := filepath.Join(s.dir, "wal/orders/0", fmt.Sprintf("%020d.log", 0))
	if err := os.Remove(first); err != nil {
		t.Fatal(err)
	}
	again, closeIt, err := Snapshot(t.Context(), s.options())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeIt() }()
	got, err := again.PolicyInput(t.Context(), id, 5, "")
	if err != nil || got.Next != 10 || !strings.Contains(string(got.Input), `"delete_remote"`) {
		t.Errorf("of a remote segment: %+v, %v", got, err)
	}
	if got, err := again.PolicyInput(t.Context(), id, 5, tier.DeleteLocal); api.CodeOf(err) !=
		api.CodeNotFound {
		t.Errorf("of a local segment that is gone: %+v, %v", got, err)
	}
	for id, offset := range map[tier.LogID]tier.Offset{id: -1, {Table: "orders", Name: "9"}: 0} {
		if got, err := b.PolicyInput(t.Context(), id, offset, ""); api.CodeOf(err) != api.CodeNotFound {
			t.Errorf("%s@%d: %+v, %v", id, offset, got, err)
		}
	}
}
