// Package offsetstest is what every medium of a ledger has to pass, with the ledger on it.
package offsetstest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/tier"
)

// Disk opens one medium, again and again. What was opened before is closed by then.
type Disk func() (offsets.Medium, error)

// Run checks the ledger on a medium. newDisk makes a disk with a new ledger on it.
func Run(t *testing.T, newDisk func(t *testing.T) Disk) {
	tests := []struct {
		name string
		test func(*testing.T, Disk)
	}{
		{"the medium keeps to its contract", testMedium},
		{"a new ledger is empty and keeps its id", testNew},
		{"everything is read back, also after a restart", testReadBack},
		{"what is returned is the caller's own", testOwn},
		{"every record is there after a restart", testReopen},
		{"a failed commit breaks the ledger", testBroken},
		{"a closed ledger says so", testClosed},
		{"a record that changes nothing commits nothing", testUnchanged},
		{"a lost truth stops the ledger after it is recorded", testAlarm},
		{"a group outlives its refused member", testGroup},
		{"a failed group fails each of its members", testGroupFails},
		{"a waiting record is withdrawn when its context ends", testWithdrawn},
		{"a taken record has an outcome when its context ends", testTaken},
		{"a context that is over writes nothing", testOver},
		{"many append at one time", testConcurrent},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.test(t, newDisk(t))
		})
	}
	for _, r := range slices.Concat(rules, tierRules) {
		t.Run("rule: "+r.name, func(t *testing.T) {
			t.Parallel()
			box := open(t, newDisk(t))
			r.test(box)
			box.reopens()
		})
	}
	t.Run("each commit fails once", func(t *testing.T) {
		t.Parallel()
		testSweep(t, newDisk)
	})
	t.Run("any sequence agrees with the model", func(t *testing.T) {
		t.Parallel()
		testModel(t, newDisk)
	})
}

// box is a ledger that a test works on.
type box struct {
	*testing.T
	disk   Disk
	ledger *offsets.Ledger
}

func open(t *testing.T, disk Disk) *box {
	b := &box{T: t, disk: disk}
	b.open(nil)
	t.Cleanup(func() { b.ledger.Close() })
	return b
}

// open opens the disk, with something around its medium if wrap is not nil.
func (b *box) open(wrap func(offsets.Medium) offsets.Medium) {
	b.Helper()
	m, err := b.disk()
	if err != nil {
		b.Fatalf("open the medium: %v", err)
	}
	if wrap != nil {
		m = wrap(m)
	}
	if b.ledger, err = offsets.Open(m); err != nil {
		b.Fatalf("open the ledger: %v", err)
	}
}

// reopen restarts, and returns what is there then.
func (b *box) reopen() Snapshot {
	b.Helper()
	if err := b.ledger.Close(); err != nil {
		b.Fatalf("close: %v", err)
	}
	b.open(nil)
	return b.snapshot()
}

// reopens checks that a restart changes nothing.
func (b *box) reopens() {
	b.Helper()
	before := b.snapshot()
	b.same(before, b.reopen())
}

func (b *box) snapshot() Snapshot {
	b.Helper()
	s, err := Take(b.ledger)
	if err != nil {
		b.Fatalf("read the ledger: %v", err)
	}
	return s
}

func (b *box) same(want, got any) {
	b.Helper()
	if reflect.DeepEqual(want, got) {
		return // cmp takes long, and the race detector makes it ten times as long
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		b.Fatalf("-want +got:\n%s", diff)
	}
}

// append appends a record that must be taken.
func (b *box) append(r tier.Record) tier.Position {
	b.Helper()
	pos, err := b.ledger.Append(context.Background(), r)
	if err != nil {
		b.Fatalf("append %.300s: %v", fmt.Sprintf("%T %+v", r, r), err)
	}
	return pos
}

// refused appends a record that must be refused, and leave no trace.
func (b *box) refused(r tier.Record) {
	b.Helper()
	before := b.snapshot()
	if _, err := b.ledger.Append(context.Background(), r); !errors.Is(err, tier.ErrRefused) {
		b.Fatalf("append %.300s: got error %v, want a refusal", fmt.Sprintf("%T %+v", r, r), err)
	}
	b.same(before, b.snapshot())
}

func (b *box) state(id tier.LogID) tier.LogState {
	b.Helper()
	s, ok := b.ledger.Log(id)
	if !ok {
		b.Fatalf("log %s is not known", id)
	}
	return s
}

// copied checks the copied offset.
func (b *box) copied(id tier.LogID, want tier.Offset) {
	b.Helper()
	if got := b.state(id).Copied; got != want {
		b.Fatalf("copied offset of %s: got %d, want %d", id, got, want)
	}
}

func (b *box) vanished(_ tier.Copy, err error) {
	b.Helper()
	if !errors.Is(err, tier.ErrVanished) {
		b.Fatalf("got error %v, want ErrVanished", err)
	}
}

func (b *box) attemptVanished(_ tier.Attempt, err error) {
	b.Helper()
	b.vanished(tier.Copy{}, err)
}
