package sim

import (
	"fmt"
	"slices"

	"github.com/tierd/tierd/sim/choose"
)

// course is the chooser of an exhaustive search. It takes the outcomes that it was given, one after
// the other, then outcome 0 of each choice, and knows which choices had others. It takes outcome 0
// of what a search does not vary, and of all that comes before the first step.
type course struct {
	begun bool
	way
	at int
}

// way is what was chosen.
type way struct {
	picks []uint8
	of    []uint8 // how many outcomes each choice had
}

func (w way) clone() way { return way{slices.Clone(w.picks), slices.Clone(w.of)} }

// others adds the ways that differ from this one first in a choice after so many. The lowest pick
// comes last, and so is taken first from the stack: of like waits a search keeps the first.
func (w way) others(open [][]uint8, n int) [][]uint8 {
	for i := n; i < len(w.picks); i++ {
		for pick := int(w.of[i]) - 1; pick > int(w.picks[i]); pick-- {
			open = append(open, append(slices.Clone(w.picks[:i]), uint8(pick)))
		}
	}
	return open
}

// fixedLabels are the choices that a search does not vary.
var fixedLabels = []string{"workers", "hour of the week", "log", "segments", "version",
	"a new process in the end", "segment", "the machine's clock", "ntp"}

// begin has these outcomes taken from here on.
func (s *course) begin(picks []uint8) {
	s.way, s.at = way{picks: slices.Clone(picks), of: make([]uint8, len(picks))}, 0
}

// Choose implements choose.Chooser.
func (s *course) Choose(label string, of int) int {
	s.begun = s.begun || label == choose.Step
	switch {
	case label == "version":
		return 1 // other content than there was
	case !s.begun || slices.Contains(fixedLabels, label):
		return 0
	}
	if s.at == len(s.picks) {
		s.picks, s.of = append(s.picks, 0), append(s.of, uint8(of))
	}
	pick := int(s.picks[s.at])
	if pick >= of || of > 255 {
		panic(fmt.Sprintf("sim: %s has %d outcomes, and number %d was to be taken", label, of, pick))
	}
	s.at++
	return pick
}
