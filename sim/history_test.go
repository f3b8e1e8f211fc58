package sim

import (
	"flag"
	"testing"
)

var (
	historyCount = flag.Int("histories", 30, "how many histories TestHistories makes")
	firstSeed    = flag.Uint64("seed", 1, "the first seed of TestHistories")
)

// TestHistories lets chance write histories of tierd's own project.
func TestHistories(t *testing.T) {
	t.Parallel()
	p, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	tryHistories(t, p)
}

func tryHistories(t *testing.T, p *Project) {
	t.Helper()
	failed := 0
	for seed := *firstSeed; seed < *firstSeed+uint64(*historyCount) && failed < 3; seed++ {
		if _, f := p.Find(seed); f != nil {
			failed++
			small := p.Shrink(f, 1000, func() bool { return true })
			t.Errorf("seed %d: %s", seed, small.Outcome.Violation)
			for _, l := range small.Outcome.Trace {
				t.Logf("%3d %s %-14s %s", l.Step, l.At, l.Lane, l.Text)
			}
			for _, c := range small.Scenario.Choices {
				if c.Label != "step" && c.Pick > 0 {
					t.Logf("     %s", c)
				}
			}
		}
	}
}
