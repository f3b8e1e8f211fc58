package sim

import (
	"cmp"
	"errors"
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
func (p *Project) Find(seed uint64) (*Outcome, *Failure) { return p.find(seed, "") }

// FindOnBolt is Find with the ledger in a real bbolt file. The error says why it cannot lie in one.
func (p *Project) FindOnBolt(seed uint64) (out *Outcome, f *Failure, err error) {
	err = p.on(choose.MediumBolt, func(q *Project) { out, f = q.find(seed, choose.MediumBolt) })
	return out, f, err
}

// on runs do with the project as it is where its ledger lies on the medium of a scenario.
func (p *Project) on(medium string, do func(q *Project)) error {
	if medium == "" {
		do(p)
		return nil
	}
	if p.Scratch == nil {
		return errors.New("its ledger lies in a real file, and there is no directory for one")
	}
	dir, remove, err := p.Scratch()
	if err != nil {
		return fmt.Errorf("make a directory for the ledger: %w", err)
	}
	defer remove()
	q := *p
	q.Config.LedgerDir = dir
	do(&q)
	return nil
}

func (p *Project) find(seed uint64, medium string) (*Outcome, *Failure) {
	random := choose.NewRandom(seed)
	r := &choose.Recorder{Chooser: random}
	out := p.Run(r, Options{})
	if out.Violation == nil {
		return out, nil
	}
	s := &choose.Scenario{Seed: fmt.Sprint(seed), Property: string(out.Violation.Property),
		Segment: out.Violation.Segment, Digest: p.Digest, Layout: p.layout(), Medium: medium,
		Choices: r.Made}
	return out, &Failure{Seed: seed, Rates: strings.Join(random.Rates, ", "), Scenario: s,
		Outcome: out}
}

// Shrink makes a failure smaller: the history that it then is breaks the same promise in fewer
// steps. runsMax bounds how many histories that may take; more, which is asked before each,
// ends it sooner. The outcome has its trace. A failure that does not come about again, as of a
// history that is not the same twice, is given back as it is.
func (p *Project) Shrink(f *Failure, runsMax int, more func() bool) *Failure {
	want := f.Outcome.Violation.Property
	bounded, opts := p.within(f.Scenario)
	made := choose.Shrink(f.Scenario.Choices, runsMax,
		func(choices []choose.Choice) ([]choose.Choice, bool) {
			if !more() {
				return nil, false
			}
			r, same := &choose.Recorder{Chooser: choose.NewLoose(choices)}, false
			err := bounded.on(f.Scenario.Medium, func(q *Project) {
				out := q.Run(r, opts)
				same = out.Violation != nil && out.Violation.Property == want
			})
			return r.Made, err == nil && same
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
// on with those that do. Where its ledger cannot lie in a file it is in memory, and unfit says so.
func (p *Project) Again(s *choose.Scenario) (out *Outcome, unfit error) {
	out, unfit = p.Replay(s)
	if unfit != nil {
		bounded, opts := p.within(s)
		opts.Trace = true
		loosely := func(q *Project) { out = q.Run(choose.NewLoose(s.Choices), opts) }
		if bounded.on(s.Medium, loosely) != nil {
			loosely(bounded)
		}
	}
	return out, unfit
}

// Replay makes the history of a scenario, with its trace, and with its ledger on the scenario's
// medium. The error is a *choose.Mismatch, or says why the ledger cannot lie there.
func (p *Project) Replay(s *choose.Scenario) (out *Outcome, err error) {
	bounded, opts := p.within(s)
	opts.Trace = true
	mismatch := error(nil)
	err = bounded.on(s.Medium, func(q *Project) {
		mismatch = choose.Catch(func() { out = q.Run(choose.NewReplay(s.Choices), opts) })
	})
	return out, cmp.Or(err, mismatch)
}

// within is the project and the options of a scenario: where an exhaustive search found it, of one
// log, within the bounds of the search.
func (p *Project) within(s *choose.Scenario) (*Project, Options) {
	if s.Exhaust == nil {
		return p, Options{}
	}
	one := *p
	one.Logs = p.Logs[:1]
	return &one, Options{Bounds: &Bounds{Segments: s.Exhaust[0],
		Actions: s.Exhaust[1], Disturbances: s.Exhaust[2]}}
}
