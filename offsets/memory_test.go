package offsets_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/offsets/offsetstest"
	"github.com/tierd/tierd/runtime/tier"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	offsetstest.Run(t, func(*testing.T) offsetstest.Disk {
		m := offsets.NewMemory([16]byte{1, 2, 3})
		return func() (offsets.Medium, error) {
			m = m.Crash()
			return m, nil
		}
	})
}

// seen appends the times 1, 2, ... n, until one is not taken, and returns the error.
func seen(t *testing.T, m offsets.Medium, n int) error {
	t.Helper()
	l, err := offsets.Open(m)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		at := tier.ClockSeen{At: l.Clock() + 1}
		if _, err := l.Append(context.Background(), at); err != nil {
			if errors.Is(err, tier.ErrRefused) {
				t.Fatalf("time %d was refused: %v", i, err)
			}
			return err
		}
	}
	return nil
}

// faults gives each commit the fault with its number, and those beyond none.
func faults(f ...offsets.Fault) func(uint64) offsets.Fault {
	return func(commit uint64) offsets.Fault {
		if commit < uint64(len(f)) {
			return f[commit]
		}
		return offsets.NoFault
	}
}

// TestFaults shows what a crash leaves of four commits with faults among them.
func TestFaults(t *testing.T) {
	t.Parallel()
	const ok, lose = offsets.NoFault, offsets.Lose
	const before, after = offsets.FailBefore, offsets.FailAfter
	tests := []struct {
		name   string
		faults []offsets.Fault
		fails  bool
		want   tier.Time
	}{
		{"none", nil, false, 4},
		{"the third fails before its effect", []offsets.Fault{ok, ok, before}, true, 2},
		{"the third fails after its effect", []offsets.Fault{ok, ok, after}, true, 3},
		{"the last is lost", []offsets.Fault{ok, ok, ok, lose}, false, 3},
		{"all from the second are lost", []offsets.Fault{ok, lose, lose, lose}, false, 1},
		{"a later commit made a lost one durable", []offsets.Fault{ok, lose, lose, ok}, false, 4},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := offsets.NewMemory([16]byte{1})
			m.Inject(faults(tc.faults...))
			if err := seen(t, m, 4); errors.Is(err, offsets.ErrInjected) != tc.fails {
				t.Fatalf("got error %v", err)
			}
			if got := snapshot(t, m.Crash()).Clock; got != tc.want {
				t.Errorf("after the crash: got %d, want %d", got, tc.want)
			}
		})
	}
}

// TestCrashEndsUse shows that a ledger from before a crash cannot go on.
func TestCrashEndsUse(t *testing.T) {
	t.Parallel()
	m := offsets.NewMemory([16]byte{1})
	l, err := offsets.Open(m)
	if err != nil {
		t.Fatal(err)
	}
	next := m.Crash()
	if _, err := l.Append(context.Background(), tier.ClockSeen{At: 5}); err == nil {
		t.Error("a ledger went on after the crash")
	}
	if got := snapshot(t, next).Clock; got != 0 {
		t.Errorf("the clock is %d", got)
	}
}

// TestClone shows that a backup does not follow what it was taken of.
func TestClone(t *testing.T) {
	t.Parallel()
	m := offsets.NewMemory([16]byte{1})
	if err := seen(t, m, 2); err != nil {
		t.Fatal(err)
	}
	backup := m.Clone()
	if err := seen(t, m, 3); err != nil {
		t.Fatal(err)
	}
	if got := m.Commits(); got != 5 {
		t.Errorf("commits: got %d, want 5", got)
	}
	if now, then := snapshot(t, m.Crash()).Clock, snapshot(t, backup).Clock; now != 5 || then != 2 {
		t.Errorf("clocks: got %d and %d, want 5 and 2", now, then)
	}
}
