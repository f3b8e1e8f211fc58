package offsets_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/tier"
)

// TestBuilder: a ledger that is built of another one's facts has its logs again, but for what no
// fact tells.
func TestBuilder(t *testing.T) {
	t.Parallel()
	old := snapshot(t, historic(t))
	m := offsets.NewMemory([16]byte{1})
	b, err := offsets.NewBuilder(m, 77, 99)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range old.Logs {
		s := l.State
		want := s
		s.Copied, s.Holes, s.Unpublished = 0, nil, nil
		want.Unpublished = nil
		got, err := b.Log(s, l.Facts)
		if err != nil {
			t.Fatalf("%s: %v", s.Log, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.Log, diff)
		}
		if _, err := b.Log(s, l.Facts); !errors.Is(err, tier.ErrRefused) {
			t.Errorf("%s a second time: %v", s.Log, err)
		}
	}
	for _, table := range old.Tables {
		if err := b.Table(table); err != nil {
			t.Fatal(err)
		}
	}
	again := snapshot(t, m.Clone())
	if diff := cmp.Diff(old.Tables, again.Tables); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
	for i, l := range again.Logs {
		if diff := cmp.Diff(old.Logs[i].Facts, l.Facts); diff != "" {
			t.Errorf("facts of %s (-want +got):\n%s", l.State.Log, diff)
		}
	}
	ledger, err := offsets.Open(m)
	if err != nil {
		t.Fatal(err)
	}
	defer ledger.Close()
	if ledger.Rebuilt() != 77 || ledger.Clock() != 99 {
		t.Errorf("rebuilt at %d, clock %d", ledger.Rebuilt(), ledger.Clock())
	}
	if _, err := offsets.NewBuilder(m.Clone(), 1, 1); !errors.Is(err, tier.ErrRefused) {
		t.Errorf("on a ledger with logs: %v", err)
	}
}

// TestBuilderRefuses what no ledger could have said.
func TestBuilderRefuses(t *testing.T) {
	t.Parallel()
	id := tier.LogID{Table: "orders", Name: "0"}
	zero := tier.Offset(0)
	for name, c := range map[string]struct {
		state tier.LogState
		fact  tier.Fact
	}{
		"a position that was not given out": {tier.LogState{Log: id, Epoch: 1, Next: 1},
			tier.Fact{Position: 1, Epoch: 1, Start: &zero}},
		"an epoch that is not reached": {tier.LogState{Log: id, Epoch: 1, Next: 1},
			tier.Fact{Epoch: 2, Start: &zero}},
		"a fact that says nothing": {tier.LogState{Log: id, Epoch: 1, Next: 1}, tier.Fact{Epoch: 1}},
		"a log start below the start": {tier.LogState{Log: id, Epoch: 1, Next: 1, Start: 5},
			tier.Fact{Epoch: 1, Start: &zero}},
	} {
		m := offsets.NewMemory([16]byte{1})
		b, err := offsets.NewBuilder(m, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Log(c.state, []tier.Fact{c.fact}); !errors.Is(err, tier.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
		if s := snapshot(t, m.Clone()); len(s.Logs) != 0 {
			t.Errorf("%s: something is there", name)
		}
	}
}

// TestARebuiltLogIsFound: a log that was in no source when the ledger was made is the one that is
// found, if the facts of its copies say nothing else.
func TestARebuiltLogIsFound(t *testing.T) {
	t.Parallel()
	id := tier.LogID{Table: "orders", Name: "0"}
	for name, c := range map[string]struct {
		known, found string
		refused      bool
	}{
		"the same":                     {"T", "T", false},
		"another one":                  {"T", "U", true},
		"one that says nothing":        {"T", "", true},
		"one of which nothing is told": {"", "U", false},
	} {
		m := offsets.NewMemory([16]byte{1})
		b, err := offsets.NewBuilder(m, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		state := tier.LogState{Log: id, Epoch: 1, Incarnation: c.known, Next: 1}
		_, err = b.Log(state, nil)
		table := tier.TableState{Table: "orders", State: tier.Enabled, Epoch: 1}
		if err := errors.Join(err, b.Table(table)); err != nil {
			t.Fatal(err)
		}
		ledger, err := offsets.Open(m)
		if err != nil {
			t.Fatal(err)
		}
		_, err = ledger.Append(context.Background(), tier.LogOpened{Log: id, Source: "wal",
			Layout: tier.LayoutKafka, Incarnation: c.found, Epoch: 1, Start: 5})
		if errors.Is(err, tier.ErrRefused) != c.refused || err != nil && !c.refused {
			t.Errorf("%s: %v, want it refused: %t", name, err, c.refused)
		}
		want := state
		if !c.refused {
			want.Source, want.Layout, want.Incarnation = "wal", tier.LayoutKafka, c.found
		}
		if got, _ := ledger.Log(id); !cmp.Equal(got, want) {
			t.Errorf("%s: %s", name, cmp.Diff(want, got))
		}
		if err := ledger.Close(); err != nil {
			t.Error(err)
		}
	}
}
