package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tierd/tierd/cmd/internal/screen"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/sim"
	"github.com/tierd/tierd/sim/choose"
	"github.com/tierd/tierd/sim/report"
)

// regressionsDir is where a project keeps the scenarios of histories that failed once, beside its
// configuration.
const regressionsDir = "regressions"

// regressions is the directory whose scenarios check replays first; given reports whether it has to
// be there. "" is none.
func (c *checkCmd) regressions() (dir string, given bool) {
	switch {
	case c.Regressions != "":
		return c.Regressions, true
	case c.Builtin:
		return "", false // its own are run by go test
	}
	name := filepath.Clean(c.Config)
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		name = filepath.Dir(name)
	}
	return filepath.Join(name, regressionsDir), false
}

// scenarios are the scenarios of a directory, by name.
func scenarios(dir string, given bool) (files []string, list []*choose.Scenario, err error) {
	if dir == "" {
		return nil, nil, nil
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !given:
		return nil, nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf("--regressions %s: there is no such directory", dir)
	case errors.Is(err, syscall.ENOTDIR):
		return nil, nil, fmt.Errorf("%s is a file: want a directory of scenarios", dir)
	case err != nil:
		return nil, nil, err
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".json" {
			continue
		}
		name := filepath.Join(dir, e.Name())
		s, err := readScenario(name)
		if err != nil {
			return nil, nil, err
		}
		files, list = append(files, name), append(list, s)
	}
	return files, list, nil
}

// past replays what failed once, before anything new is tried. The run is nil where every promise
// is kept.
func (c *checkCmd) past(a *app, p *sim.Project) (out *report.Run, err error) {
	dir, given := c.regressions()
	files, list, err := scenarios(dir, given)
	if err != nil || len(files) == 0 {
		if err == nil && given && !c.quiet() {
			a.printf("warning: %s has no scenario (*.json): nothing was replayed\n", screen.Line(dir))
		}
		return nil, err
	}
	projects := map[tier.Layout]*sim.Project{layoutOf(c.Layout): p}
	out = &report.Run{Subject: c.subject(), Digest: p.Digest}
	for i, s := range list {
		if a.ctx.Err() != nil {
			break
		}
		layout := layoutOf(s.Layout, c.Layout)
		if projects[layout] == nil {
			if projects[layout], err = c.load(a, layout); err != nil {
				return nil, err
			}
		}
		var outcome *sim.Outcome
		var unfit error
		if hung := a.ask(func() { outcome, unfit = projects[layout].Again(s) }); hung != nil {
			hung.tell(out)
			out.PolicyHang = files[i] + ": " + out.PolicyHang
			return out, nil
		}
		row := report.Regression{Scenario: files[i]}
		if unfit != nil {
			row.Unfit = unfit.Error()
		}
		if outcome.Violation != nil {
			row.Property = string(outcome.Violation.Property)
			fails := c.row(&sim.Failure{Scenario: s, Outcome: outcome}, len(report.StepsOf(s)), files[i],
				layout)
			c.tell(a, &fails, nil, out)
		}
		out.Regressions = append(out.Regressions, row)
	}
	if !c.quiet() {
		if len(out.Failures) > 0 {
			a.print("\n")
		}
		a.past(out, dir)
	}
	return out, nil
}

// past says what became of the regressions.
func (a *app) past(out *report.Run, dir string) {
	for _, r := range out.Regressions {
		if r.Unfit != "" {
			a.printf("warning: %s: %s; it was replayed as far as it fits\n", screen.Line(r.Scenario),
				screen.Line(r.Unfit))
		}
	}
	n, failed := tier.Count(len(out.Regressions), "regression"), len(out.Failures)
	if failed == 0 {
		a.printf("%s of %s: every promise is kept\n", n, screen.Line(dir))
		return
	}
	a.printf("%d of %s of %s broke a promise: no seed was tried\n", failed, n, screen.Line(dir))
}
