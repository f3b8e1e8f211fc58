package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/sim/report"
)

// lookEvery is how often evaluations of policies are looked at, where the system does not say. The
// daemon looks as often, and has the same patience.
const lookEvery = time.Second

// hang is an evaluation of policies or properties that does not end. Steps bound an evaluation, and
// nothing bounds one expression.
type hang struct {
	seed uint64 // whose history asked; 0 where it is that of a scenario or a search
	err  error  // at which place, and about what
}

func (h *hang) Error() string { return "POLICY HANG: " + h.text() }

func (h *hang) text() string {
	if h.seed == 0 {
		return h.err.Error()
	}
	return fmt.Sprintf("seed %d: %v", h.seed, h.err)
}

// tell puts it into the run.
func (h *hang) tell(out *report.Run) {
	out.PolicyHang, out.Vacuous = h.text(), nil
	if at := (*rego.HungError)(nil); errors.As(h.err, &at) {
		out.PolicyHangAt = at.Place
	}
}

// look looks at the evaluations under way until stop is called.
func (a *app) look() (stop func()) {
	every := a.lookEvery
	if every == 0 {
		every = lookEvery
	}
	a.watch, a.hung = &rego.Watch{}, make(chan *hang, 1)
	ticker, ended := time.NewTicker(every), make(chan struct{})
	go func() {
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				a.watch.Look() // whoever waits is told
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(ended)
	}
}

// whenHung is what is told of an evaluation of a seed's history that does not end.
func (a *app) whenHung(seed uint64) func(error) {
	return func(err error) {
		select {
		case a.hung <- &hang{seed, err}:
		default: // one is enough
		}
	}
}

// ask does what asks policies or properties. Where one of their evaluations does not end it is left
// behind, with all that it holds, and the hang is not nil: the command ends then.
func (a *app) ask(do func()) *hang {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
		return nil
	case h := <-a.hung:
		return h
	}
}
