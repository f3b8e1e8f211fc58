package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/tierd/tierd/cmd/internal/screen"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/sim"
	"github.com/tierd/tierd/sim/choose"
	"github.com/tierd/tierd/sim/report"
)

// exhaustCmd tries every history within bounds.
type exhaustCmd struct {
	projectFlags
	Segments     int           `default:"2" help:"Closed segments of the log in the beginning."`
	Actions      int           `default:"4" help:"Actions in a history at most. Each one more makes six times as many."`
	Disturbances int           `default:"1" help:"Stops and faults of the store in a history."`
	Budget       time.Duration `help:"Stop after so long, such as 60s; without it there is no limit." placeholder:"DURATION"`
	Out          string        `default:"." help:"Directory for the scenario and the HTML page of a failure; it is made if it is not there. Without it they are written here." placeholder:"DIR"`
}

// Help says more.
func (c *exhaustCmd) Help() string {
	return `Tries every history of one log within the bounds: a stop of process or machine before every
operation that changes something, and every fault of every call of the store. States that were met
before are not gone on from again, and of times after which the process does the same, the search
goes on from the shortest alone. With the defaults that takes minutes. The log is one of the first
table; --table makes another one the first. Where policies deny all of it, as of one on hold, name
one of which something goes.

Exit code: 0 if every history that it tried keeps every promise, 1 if one does not, 3 if the search
ended before, or no local segment of the log was deleted in any of them, 130 if it was
interrupted; 2 and 5 as of check.

Examples:

	tiersim exhaust
	tiersim exhaust --table clicks --actions 3
	tiersim exhaust --segments 3 --budget 30m`
}

// Run tries them.
func (c *exhaustCmd) Run(a *app) error {
	p, err := c.load(a, layoutOf(c.Layout))
	if err != nil {
		return err
	}
	if min(c.Segments, c.Actions, c.Disturbances+1) < 1 ||
		max(c.Segments, c.Actions, c.Disturbances) > choose.BoundMax {
		return fmt.Errorf("--segments %d --actions %d --disturbances %d: want at least 1, 1 and 0, and "+
			"at most %d", c.Segments, c.Actions, c.Disturbances, choose.BoundMax)
	}
	if c.Budget < 0 {
		return negative(c.Budget)
	}
	if err := room(c.Out); err != nil {
		return err
	}
	b := sim.Bounds{Segments: c.Segments, Actions: c.Actions, Disturbances: c.Disturbances}
	ctx, began := a.ctx, time.Now()
	if c.Budget > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Budget)
		defer cancel()
	}
	if a.allowGarbage != nil {
		a.allowGarbage(ctx)
	}
	s := status{a: a}
	search := p.Search(b)
	work := func() {
		search.Work(func(e *sim.Explored) bool {
			s.show("%s", tier.Count(e.Histories, "history"))
			return ctx.Err() == nil
		})
	}
	hung := a.ask(func() {
		for search.Next() {
			var wait sync.WaitGroup
			for range runtime.GOMAXPROCS(0) {
				wait.Go(work)
			}
			wait.Wait()
		}
	})
	s.clear()
	if hung != nil {
		return hung
	}
	e := search.Explored()
	if e.Failure != nil {
		return c.failed(a, p, e.Failure)
	}
	a.printf("%s of %s, %s, %s, %s\n", tier.Count(e.Histories, "history"), p.Logs[0],
		tier.Count(e.States, "state"), tier.Count(e.Deletions, "local deletion"),
		time.Since(began).Round(time.Millisecond))
	switch {
	case e.Stopped && a.ctx.Err() != nil:
		a.printf("interrupted: it is NOT exhaustive\n")
		return ended(exitInterrupted)
	case e.Stopped:
		a.printf("the budget ended the search: it is NOT exhaustive\n")
		vacuous(a, p, e, "more --budget")
		return ended(exitVacuous)
	}
	a.printf("exhaustive within these bounds: %s\n", search)
	if vacuous(a, p, e, "more --actions") {
		return ended(exitVacuous)
	}
	return nil
}

// vacuous tells whether nothing was deleted in any history where something could have been, and
// says what may help.
func vacuous(a *app, p *sim.Project, e *sim.Explored, more string) bool {
	if e.Deletions > 0 || p.NotApplicable(sim.LocalDeletion) != "" {
		return false
	}
	a.printf("VACUOUS: never met: %s%s: name a table with --table of which something goes, or "+
		"give %s\n", sim.LocalDeletion, screen.Line(against(p, e)), more)
	return true
}

// against names the rules of the policies that denied a deletion.
func against(p *sim.Project, e *sim.Explored) string {
	var out []string
	for i, rule := range p.Config.Policies.Rules() {
		if !rule.Builtin && rule.Answer == "deny" && e.Rules[i].True > 0 {
			out = append(out, strings.TrimSpace(rule.Where+" "+rule.Title))
		}
	}
	if out == nil {
		return ""
	}
	return ", which " + strings.Join(out, ", ") + " denied"
}

// failed writes the scenario of a failure.
func (c *exhaustCmd) failed(a *app, p *sim.Project, f *sim.Failure) error {
	name := filepath.Join(c.Out, "tiersim-exhaust.json")
	row := c.row(f, len(report.StepsOf(f.Scenario)), name, layoutOf(c.Layout))
	a.failure(&row)
	if page, _ := a.keep(&row, f.Scenario.Encode(), c.Out, c.subject(), p.Digest); page != "" {
		a.printf("  report   %s\n", screen.Line(page))
	}
	return ended(exitViolation)
}
