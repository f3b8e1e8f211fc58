package sim

import (
	"strconv"
	"strings"
	"testing"

	"github.com/tierd/tierd/sim/choose"
)

// scripted makes a history of steps that are written down: each is the name of an action, and
// behind it what is chosen in it, as "label: name", or "label: 3" for an outcome without a name.
// What is not written is outcome 0.
func scripted(t *testing.T, p *Project, steps ...string) *Outcome {
	t.Helper()
	var choices []choose.Choice
	for _, text := range steps {
		parts := strings.Split(text, "; ")
		choices = append(choices, choose.Choice{Label: choose.Step, Name: parts[0]})
		for _, part := range parts[1:] {
			label, name, _ := strings.Cut(part, ": ")
			choices = append(choices, choose.Choice{Label: label, Name: name})
		}
	}
	c := &script{t: t, steps: choose.Steps(choices)}
	out := p.Run(c, Options{Trace: true})
	if c.step < len(c.steps)-1 && out.Violation == nil {
		t.Fatalf("the history ended in step %d of %d", c.step, len(c.steps)-1)
	}
	return out
}

// script chooses what stands in it, by names, and outcome 0 of all else.
type script struct {
	t     *testing.T
	steps [][]choose.Choice
	step  int
}

// Choose implements choose.Chooser.
func (s *script) Choose(label string, n int) int {
	return s.Pick(label, nil, nil)
}

// Pick chooses the outcome that the script names; a number where it has no names.
func (s *script) Pick(label string, names []string, _ []int) int {
	if label == choose.Step {
		if s.step++; s.step >= len(s.steps) {
			return 0
		}
	}
	if s.step >= len(s.steps) {
		return 0
	}
	for _, c := range s.steps[s.step] {
		if c.Label != label {
			continue
		}
		if names == nil {
			pick, err := strconv.Atoi(c.Name)
			if err != nil {
				s.t.Errorf("%q has no names: %v", label, err)
			}
			return pick
		}
		for i, name := range names {
			if name == c.Name {
				return i
			}
		}
		s.t.Errorf("%q has no outcome %q, but %q", label, c.Name, names)
	}
	return 0
}
