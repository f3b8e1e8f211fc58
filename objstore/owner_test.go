package objstore

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/tier"
)

func owner(host string) Owner {
	return Owner{Ledger: ledger, Host: host, DataDir: "/var/lib/tierd", Created: 1700000000000000000}
}

// own has the owner claim the store of the ledger that it names.
func (b *bench) own(ctx context.Context, o Owner) error {
	s, err := New(b.faults, o.Ledger)
	if err != nil {
		return err
	}
	return s.Own(ctx, o)
}

func TestOwner(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, err := b.Owner(t.Context()); !errors.Is(err, tier.ErrVanished) {
		t.Errorf("before anyone: %v", err)
	}
	if err := b.own(t.Context(), owner("a")); err != nil {
		t.Fatal(err)
	}
	data, _ := b.mem.Object(b.keys.Owner())
	golden(t, "owner.json", data)
	later := owner("a")
	later.Created++
	if err := b.own(t.Context(), later); err != nil {
		t.Errorf("the owner again, later: %v", err)
	}
	moved := owner("a")
	moved.DataDir = "/srv/tierd"
	for _, other := range []Owner{owner("b"), moved} {
		err := b.own(t.Context(), other)
		if !errors.Is(err, ErrOtherOwner) || !strings.Contains(err.Error(), "/var/lib/tierd on a") {
			t.Errorf("%+v: %v", other, err)
		}
	}
	if now, _ := b.mem.Object(b.keys.Owner()); string(now) != string(data) {
		t.Error("a refused owner changed the object")
	}
	if err := b.Adopt(t.Context(), owner("b")); err != nil {
		t.Fatal(err)
	}
	if err := b.own(t.Context(), owner("a")); !errors.Is(err, ErrOtherOwner) {
		t.Errorf("the former owner: %v", err)
	}
	if got, err := b.Owner(t.Context()); got != owner("b") || err != nil {
		t.Errorf("owner %+v, %v", got, err)
	}
}

func TestOwnerThatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mem.Put(b.keys.Owner(), []byte("{}"))
	if err := b.own(t.Context(), owner("a")); !errors.Is(err, tier.ErrDamaged) {
		t.Errorf("damaged: %v", err)
	}
	b.faults.SetHook(fault.Storm(1))
	if err := b.own(t.Context(), owner("a")); errors.Is(err, ErrOtherOwner) || err == nil {
		t.Errorf("unreadable: %v", err)
	}
	if data, _ := b.mem.Object(b.keys.Owner()); string(data) != "{}" {
		t.Error("an owner object that could not be read was replaced")
	}
	// An upload that says that it worked, and did not.
	b.mem.Remove(b.keys.Owner())
	b.faults.SetHook(fault.On(fault.OpUpload, fault.Effect{Late: true}))
	if err := b.own(t.Context(), owner("a")); !errors.Is(err, tier.ErrVanished) {
		t.Errorf("lost: %v", err)
	}
	if err := b.own(t.Context(), owner("\xff")); err == nil {
		t.Error("a host that is not UTF-8: no error")
	}
	bad := owner("a")
	bad.Ledger = "../x"
	if err := b.own(t.Context(), bad); err == nil {
		t.Error("a ledger id that is a path: no error")
	}
	if err := b.Adopt(t.Context(), bad); err == nil {
		t.Error("adopting it: no error")
	}
}
