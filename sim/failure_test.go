package sim

import (
	"slices"
	"testing"

	"github.com/tierd/tierd/sim/choose"
)

// TestShrinkKeepsWhatDoesNotFailAgain: a history that fails once, and another time breaks nothing
// or asks for other choices, is reported as it was.
func TestShrinkKeepsWhatDoesNotFailAgain(t *testing.T) {
	t.Parallel()
	p, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	made := &choose.Recorder{Chooser: choose.NewRandom(1)}
	p.Run(made, Options{})
	for name, choices := range map[string][]choose.Choice{
		"breaks nothing":     made.Made,
		"asks for something": {{Label: "what nobody asks", Of: 2, Pick: 1}},
	} {
		f := &Failure{Scenario: &choose.Scenario{Choices: choices},
			Outcome: &Outcome{Violation: &Violation{Property: Recovered}}}
		if small := p.Shrink(f, 3, func() bool { return true }); small != f {
			t.Errorf("%s: shrunk to %v", name, small.Outcome.Violation)
		}
	}
}

// TestAgainKeepsTheBounds: what an exhaustive search found is made again within its bounds, also
// where a choice of it has no counterpart any more.
func TestAgainKeepsTheBounds(t *testing.T) {
	t.Parallel()
	p, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	s := &choose.Scenario{Exhaust: []int{2, 4, 1}}
	q, opts := p.within(s)
	made := &choose.Recorder{Chooser: choose.NewRandom(1)}
	q.Run(made, opts)
	s.Choices = made.Made
	fits, err := p.Replay(s)
	if err != nil {
		t.Fatal(err)
	}
	s.Choices = slices.Insert(made.Made, 1, choose.Choice{Label: "what nobody asks", Of: 2, Pick: 1})
	out, unfit := p.Again(s)
	if unfit == nil || out.Hash != fits.Hash || out.Steps > 4 {
		t.Errorf("%d steps, the same history: %t; %v", out.Steps, out.Hash == fits.Hash, unfit)
	}
}
