package main

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tierd/tierd/sim"
	"github.com/tierd/tierd/sim/report"
)

// exhaustCmd tries every history within bounds.
type exhaustCmd struct {
	projectFlags
	Segments     int           `default:"2" help:"Closed segments of the log in the beginning."`
	Actions      int           `default:"4" help:"Actions in a history."`
	Disturbances int           `default:"1" help:"Stops and faults of the store in a history."`
	Budget       time.Duration `help:"Stop after so long; 0 is no limit." placeholder:"60s"`
	Out          string        `default:"." help:"Directory for the scenario of a failure." placeholder:"DIR"`
}

// Help says more.
func (c *exhaustCmd) Help() string {
	return `Tries every history of one log within the bounds: a stop of process or machine before every
operation that changes something, and every fault of every call of the store. States that were met
before are not gone on from again.

Exit code: 0 if every history within the bounds keeps every promise, 1 if one does not, 3 if the
budget ended the search before.`
}

// Run tries them.
func (c *exhaustCmd) Run(a *app) error {
	p, err := c.load(a)
	if err != nil {
		return err
	}
	if c.Segments < 1 || c.Actions < 1 || c.Disturbances < 0 {
		return usagef("--segments %d --actions %d --disturbances %d: want at least 1, 1 and 0",
			c.Segments, c.Actions, c.Disturbances)
	}
	b := sim.Bounds{Segments: c.Segments, Actions: c.Actions, Disturbances: c.Disturbances}
	ctx, began := a.ctx, time.Now()
	if c.Budget > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Budget)
		defer cancel()
	}
	found := make([]*sim.Explored, b.Firsts())
	var wait sync.WaitGroup
	for first := range b.Firsts() {
		wait.Go(func() {
			found[first] = p.Exhaust(b, first, func(*sim.Explored) bool { return ctx.Err() == nil })
		})
	}
	wait.Wait()
	histories, states, stopped := 0, 0, false
	for _, e := range found {
		histories, states, stopped = histories+e.Histories, states+e.States, stopped || e.Stopped
		if e.Failure != nil {
			return c.failed(a, p, e.Failure)
		}
	}
	a.printf("%d histories, %d states, %s\n", histories, states,
		time.Since(began).Round(time.Millisecond))
	if stopped {
		a.printf("the budget ended the search: it is NOT exhaustive\n")
		return ended(exitVacuous)
	}
	a.printf("exhaustive within these bounds: %s\n", &b)
	return nil
}

// failed writes the scenario of a failure.
func (c *exhaustCmd) failed(a *app, p *sim.Project, f *sim.Failure) error {
	name := filepath.Join(c.Out, "tiersim-exhaust.json")
	if err := os.WriteFile(name, f.Scenario.Encode(), 0o644); err != nil {
		return err
	}
	row := report.FailureOf(f, f.Outcome.Steps)
	row.Scenario, row.Replay = name, "tiersim replay "+name+c.flagsAgain()
	a.failure(&row)
	return ended(exitViolation)
}
