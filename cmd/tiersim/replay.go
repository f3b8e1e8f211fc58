package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/tierd/tierd/cmd/internal/screen"
	"github.com/tierd/tierd/runtime/document"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
	"github.com/tierd/tierd/sim"
	"github.com/tierd/tierd/sim/choose"
	"github.com/tierd/tierd/sim/report"
)

// scenarioFlags name a scenario and its project.
type scenarioFlags struct {
	projectFlags
	File string `arg:"" help:"Scenario file, as check writes it." placeholder:"FILE"`
}

// scenarioBytesMax bounds a scenario: some hundred bytes for each of its choices.
const scenarioBytesMax = 64 << 20

// readScenario reads a scenario from its file.
func readScenario(name string) (*choose.Scenario, error) {
	text, err := vfs.ReadRegular(name, scenarioBytesMax)
	if err != nil {
		return nil, err
	}
	s, err := choose.Decode(text)
	if wrong := (*document.Error)(nil); errors.As(err, &wrong) {
		return nil, errors.New(wrong.In(name))
	}
	return s, err
}

// replayed is a history that was made of a scenario again.
type replayed struct {
	*sim.Failure // Violation is nil where every promise is kept
	project      *sim.Project
	layout       tier.Layout
}

// run replays the scenario.
func (f *scenarioFlags) run(a *app) (*replayed, error) {
	s, err := readScenario(f.File)
	if err != nil {
		return nil, err
	}
	layout := layoutOf(f.Layout, s.Layout)
	p, err := f.load(a, layout)
	if err != nil {
		return nil, err
	}
	var out *sim.Outcome
	if hung := a.ask(func() { out, err = p.Replay(s) }); hung != nil {
		return nil, fmt.Errorf("%s: %w", f.File, hung)
	}
	if err != nil {
		return nil, mismatch(f.File, s, layout, p.Digest, err)
	}
	return &replayed{&sim.Failure{Scenario: s, Outcome: out}, p, layout}, nil
}

// replayCmd runs a scenario again.
type replayCmd struct {
	scenarioFlags
	HTML string `name:"html" help:"Write the HTML page to the file." placeholder:"FILE"`
}

// Help says more.
func (c *replayCmd) Help() string {
	return `Makes the history of a scenario again, under the configuration, policies and data that
there are now: what was mended keeps every promise. A scenario of which a choice has no counterpart
any more is refused.

Exit code: 0 every promise is kept, 1 one was broken, 2 bad input, 5 an expression of a policy did
not come back.

Examples:

	tiersim replay tiersim-17.json
	tiersim replay regressions/too-early.json --config ./retention --html page.html`
}

// Run replays.
func (c *replayCmd) Run(a *app) error {
	if err := room("", c.HTML); err != nil {
		return err
	}
	f, err := c.run(a)
	if err != nil {
		return err
	}
	p, steps := f.project, report.StepsOf(f.Scenario)
	if f.Outcome.Violation == nil {
		a.printf("%s: every promise is kept, in %s and %s\n", screen.Line(c.File),
			tier.Count(len(steps), "step"), tier.Count(f.Outcome.Operations, "operation"))
		if s := f.Scenario; s.Property != "" && s.Digest != p.Digest {
			a.printf("it was written when %s broke, under another configuration, policies or data\n",
				s.Property)
		}
		if c.HTML != "" {
			row := report.Failure{Steps: steps, Trace: f.Outcome.Trace, Snapshots: f.Outcome.Snapshots,
				Scenario: c.File, Replay: c.replayLine(f.Scenario, c.File, f.layout)}
			a.lose(writePage(c.HTML, &row, c.subject(), p.Digest))
		}
		return nil
	}
	row := c.row(f.Failure, len(steps), c.File, f.layout)
	a.failure(&row)
	if c.HTML != "" {
		a.lose(writePage(c.HTML, &row, c.subject(), p.Digest))
	}
	return ended(exitViolation)
}

// explainCmd tells the history of a scenario.
type explainCmd struct {
	scenarioFlags
	All bool `help:"Also every operation on disk, store and ledger that changes something."`
}

// Help says more.
func (c *explainCmd) Help() string {
	return `Tells step by step what happens in the history: what owners do, what is copied, what
policies and plugins say, what fails, and the promise that breaks.

Exit code: 0 it was told, whether or not a promise is broken, 2 bad input, 5 an expression of a
policy did not come back.

Examples:

	tiersim explain tiersim-17.json
	tiersim explain tiersim-17.json --all | less`
}

// Run tells it.
func (c *explainCmd) Run(a *app) error {
	f, err := c.run(a)
	if err != nil {
		return err
	}
	steps := report.StepsOf(f.Scenario)
	for _, l := range f.Outcome.Trace {
		text := screen.Line(l.Text)
		switch {
		case l.Lane == sim.LaneStep:
			a.printf("\n%3d  %s\n", l.Step, screen.Line(report.StepText(steps, l)))
		case c.All || !l.Operation && l.Lane != sim.LaneEffect:
			a.printf("     %s  %-13s %s\n", l.At, l.Lane, text)
		}
	}
	if f.Outcome.Violation == nil {
		a.printf("\nevery promise is kept\n")
	}
	return nil
}

// shrinkCmd makes a scenario smaller.
type shrinkCmd struct {
	scenarioFlags
	Shrinks int           `default:"20000" help:"How many histories it may take."`
	Time    time.Duration `default:"5m" help:"How long it may take." placeholder:"5m"`
	Out     string        `short:"o" help:"File for the smaller scenario; in place of the old one without it." placeholder:"FILE"`
}

// Help says more.
func (c *shrinkCmd) Help() string {
	return `Looks for a shorter history that breaks the same promise, longer than check does. Where it
is interrupted, what it has by then is written.

Exit code: 0 it was written, 2 bad input, or a scenario that breaks no promise, 5 an expression of a
policy did not come back, 130 interrupted.

Examples:

	tiersim shrink tiersim-17.json
	tiersim shrink tiersim-17.json --time 1h -o small.json`
}

// Run shrinks.
func (c *shrinkCmd) Run(a *app) error {
	f, err := c.run(a)
	if err != nil {
		return err
	}
	if f.Outcome.Violation == nil {
		return fmt.Errorf("%s breaks no promise: there is nothing to keep while it shrinks", c.File)
	}
	s := status{a: a}
	var small *sim.Failure
	hung := a.ask(func() {
		small = f.project.Shrink(f.Failure, c.Shrinks, s.count("shrinking: %s", a.within(c.Time)))
	})
	s.clear()
	if hung != nil {
		return hung
	}
	name := c.File
	if c.Out != "" {
		name = c.Out
	}
	if err := write(filepath.Clean(name), small.Scenario.Encode()); err != nil {
		return err
	}
	before, after := len(report.StepsOf(f.Scenario)), len(report.StepsOf(small.Scenario))
	a.printf("%s: from %s to %d\n", screen.Line(name), tier.Count(before, "step"), after)
	if a.ctx.Err() != nil {
		a.printf("interrupted: it may become smaller yet\n")
		return ended(exitInterrupted)
	}
	return nil
}
