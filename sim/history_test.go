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
	tryHistories(t, p, *historyCount)
}

// tryHistories makes histories, and gives how many local segments went in them.
func tryHistories(t *testing.T, p *Project, count int) (deletions int) {
	t.Helper()
	failed := 0
	for seed := *firstSeed; seed < *firstSeed+uint64(count) && failed < 3; seed++ {
		out, f := p.Find(seed)
		deletions += out.Deletions
		if f != nil {
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
	return deletions
}

// TestGreedyHistories: a policy that wants every local segment gone at once deletes none that the
// store has not, none that can still grow, and nothing of the store before its time.
func TestGreedyHistories(t *testing.T) {
	t.Parallel()
	p, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	p.Config.Policies = loadPolicy("package tierd.greedy\n\nexpire contains \"x\" if true\n")
	p.UserPolicies = true
	if deletions := tryHistories(t, p, (*historyCount+2)/3); deletions == 0 {
		t.Error("nothing was deleted: nothing was shown")
	}
}
