package rego_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tierd/tierd/policies/rego"
)

// withHolds is the example's policy with so many holds of tables, one of them of payroll.
func withHolds(tb testing.TB, n int) *rego.Set {
	tb.Helper()
	source, err := readExample("legal_hold")
	if err != nil {
		tb.Fatal(err)
	}
	tables := map[string]any{"payroll": []any{map[string]any{"case": "7"}}}
	for i := range n - 1 {
		tables[fmt.Sprintf("table-%d", i)] = []any{map[string]any{"case": fmt.Sprint(i)}}
	}
	set, err := rego.Load(modules("legal_hold.rego", source), map[string]any{"holds": map[string]any{
		"segment_span": "168h", "tables": tables, "logs": map[string]any{},
		"patterns": map[string]any{},
	}}, rego.Options{Timeout: rego.NoTimeout})
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

// TestHoldsByKey: ten thousand holds that are looked up by key take as many steps as ten.
func TestHoldsByKey(t *testing.T) {
	t.Parallel()
	steps := map[string]map[int64]bool{}
	for _, n := range []int{10, 1000, 10_000} {
		set := withHolds(t, n)
		for table, held := range map[string]bool{"payroll": true, "free": false} {
			f := segmentOf(25 * hour)
			f.Table.Name = table
			e, err := set.Evaluate(context.Background(), savedInput(t, f))
			if err != nil || e.Delete == held {
				t.Fatalf("%s of %d holds: %+v, %v", table, n, e, err)
			}
			if steps[table] == nil {
				steps[table] = map[int64]bool{}
			}
			steps[table][e.Steps] = true
		}
	}
	for table, counts := range steps {
		if len(counts) != 1 {
			t.Errorf("%s: steps by the number of holds differ: %v", table, counts)
		}
	}
}

// BenchmarkHolds is a decision with few and with many holds by key.
func BenchmarkHolds(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("holds=%d", n), func(b *testing.B) {
			set, f := withHolds(b, n), segmentOf(25*hour)
			b.ReportAllocs()
			for b.Loop() {
				if d, err := set.Decide(context.Background(), f); err != nil || !d.Delete {
					b.Fatalf("%+v, %v", d, err)
				}
			}
		})
	}
}
