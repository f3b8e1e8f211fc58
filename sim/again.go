package sim

import (
	"fmt"
	"slices"
	"strings"
)

// twiceEvery is how often a process is started twice: after the first crash of a history, and after
// every eighth one. There are many histories.
const twiceEvery = 8

// startAgain kills a process that has just started, and starts another one (S13): it finds what the
// first one left, and nothing is left for it to do. Nobody comes in between. The error is why it
// does not start.
func (w *World) startAgain() error {
	watch := w.Watch
	w.Watch = nil
	defer func() { w.Watch = watch }()
	once := w.remains()
	w.Kill()
	if err := w.Start(); err != nil {
		return err
	}
	if again := w.remains(); !slices.EqualFunc(once, again, remnant.is) {
		w.oracle.violate(Recovered, "the second start did more than the first: %s",
			firstDifference(textOf(once), textOf(again)))
	}
	return nil
}

// firstDifference shows the first lines in which two texts differ.
func firstDifference(a, b string) string {
	before, after := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := 0; ; i++ {
		switch {
		case i == len(before) && i == len(after):
			return "in nothing"
		case i == len(before):
			return fmt.Sprintf("then there is %q", after[i])
		case i == len(after):
			return fmt.Sprintf("%q is there no more", before[i])
		case before[i] != after[i]:
			return fmt.Sprintf("%q became %q", before[i], after[i])
		}
	}
}
