package sim

import (
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
