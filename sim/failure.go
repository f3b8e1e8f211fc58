package sim

import (
	"fmt"
	"strings"

	"github.com/tierd/tierd/sim/choose"
)

// Failure is a history that broke a promise, and what replays it.
type Failure struct {
	Seed     uint64
	Rates    string // of the seed, for people: how likely each kind of action is
	Scenario *choose.Scenario
	Outcome  *Outcome // of the scenario, with its trace
}

// Find makes the history of a seed. The failure is nil where every promise was kept.
func (p *Project) Find(seed uint64) (*Outcome, *Failure) {
	random := choose.NewRandom(seed)
	r := &choose.Recorder{Chooser: random}
	out := p.Run(r, Options{})
	if out.Violation == nil {
		return out, nil
	}
	s := &choose.Scenario{Seed: fmt.Sprint(seed), Property: string(out.Violation.Property),
		Segment: out.Violation.Segment, Digest: p.Digest, Layout: p.layout(), Choices: r.Made}
	return out, &Failure{Seed: seed, Rates: strings.Join(random.Rates, ", "), Scenario: s,
		Outcome: out}
}

// Shrink makes a failure smaller: the history that it then is breaks the same promise in fewer
// steps. runsMax bounds how many histories that may take; more, which is asked before each,
// ends it sooner. The outcome has its trace. A failure that does not come about again, as of a
// history that is not the same twice, is given back as it is.
func (p *Project) Shrink(f *Failure, runsMax int, more func() bool) *Failure {
	want := f.Outcome.Violation.Property
	made := choose.Shrink(f.Scenario.Choices, runsMax,
		func(choices []choose.Choice) ([]choose.Choice, bool) {
			if !more() {
				return nil, false
			}
			r := &choose.Recorder{Chooser: choose.NewLoose(choices)}
			out := p.Run(r, Options{})
			return r.Made, out.Violation != nil && out.Violation.Property == want
		})
	s := *f.Scenario
	s.Choices = made
	out, err := p.Replay(&s)
	if err != nil || out.Violation == nil || out.Violation.Property != want {
		return f
	}
	s.Segment = out.Violation.Segment
	return &Failure{Seed: f.Seed, Rates: f.Rates, Scenario: &s, Outcome: out}
}

// Again makes the history of a scenario that may have been made with another configuration, other
// policies or another tierd: where a choice has no counterpart, unfit says so, and the history goes
// on with those that do.
func (p *Project) Again(s *choose.Scenario) (out *Outcome, unfit error) {
	out, unfit = p.Replay(s)
	if unfit != nil {
		out = p.Run(choose.NewLoose(s.Choices), Options{Trace: true})
	}
	return out, unfit
}

// Replay makes the history of a scenario, with its trace. The error is a *choose.Mismatch.
func (p *Project) Replay(s *choose.Scenario) (out *Outcome, err error) {
	opts := Options{Trace: true}
	if len(s.Exhaust) == 3 {
		one := *p
		one.Logs = p.Logs[:1]
		p, opts.Bounds = &one, &Bounds{s.Exhaust[0], s.Exhaust[1], s.Exhaust[2]}
	}
	err = choose.Catch(func() { out = p.Run(choose.NewReplay(s.Choices), opts) })
	return out, err
}
