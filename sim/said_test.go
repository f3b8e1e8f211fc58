package sim

import (
	"slices"
	"testing"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// TestSaidLines: a line tells what each plugin asks for, and of which segments, the first few.
func TestSaidLines(t *testing.T) {
	t.Parallel()
	other := tier.LogID{Table: "payroll", Name: "0"}
	f := engine.Select{Logs: []engine.SelectLog{
		{Log: orders, Segments: []engine.SelectSegment{at(0), at(10), at(20), at(30), at(40)}},
		{Log: other, Segments: []engine.SelectSegment{at(0)}}}}
	r := &engine.Selected{Plugins: []string{"quiet", "first", "legal"},
		Scores: []int64{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, -1},
		Holds:  []uint16{0b010, 0, 0, 0, 0, 0},
		Keeps:  []uint16{0b100, 0b100, 0b100, 0b100, 0b100, 0}}
	want := []string{"plugin first holds orders/0 [0, 10); gives a score to payroll/0 [0, 10) 7",
		"plugin legal keeps orders/0 [0, 10), orders/0 [10, 20), orders/0 [20, 30) and 2 more; " +
			"gives a score to payroll/0 [0, 10) -1"}
	if got := saidLines(f, r); !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
}

func at(base tier.Offset) engine.SelectSegment {
	return engine.SelectSegment{Range: tier.Range{Base: base, Next: base + 10}}
}
