package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/daemon"
	"github.com/tierd/tierd/runtime/tier"
)

// runCmd is the daemon, or one pass of it.
type runCmd struct {
	output
	Once     bool          `help:"Work until nothing more can be done now, then say what waits and exit."`
	NoDelete bool          `help:"Copy, and delete nothing."`
	Accept   string        `placeholder:"DIGEST" help:"Let just these remote data go, of tables turned off with the policy delete."`
	Adopt    bool          `help:"Take the objects of a moved ledger over from their former owner."`
	RetryFor time.Duration `default:"10s" help:"With --once: how long to try again what fails."`
}

// Help gives examples.
func (c *runCmd) Help() string {
	return `SIGHUP loads the configuration anew, as a whole or not at all. SIGTERM and SIGINT let
copies under way finish, and exit.

With --once the exit code is 0 if all that is left waits for a time, a policy, a pause or a clock,
and 3 if something failed or is damaged.

Examples:

	tierd run
	tierd run --once --no-delete
	tierd run --once -o json`
}

// reloads reports whether SIGHUP makes the command load the configuration anew.
func (c *runCmd) reloads(command string) bool { return command == "run" && !c.Once }

// Run works.
func (c *runCmd) Run(a *app) error {
	cfg, err := config.Load(a.cli.Config, a.host)
	if err != nil {
		return err
	}
	for _, w := range cfg.Warnings {
		a.log.Warn(w.Error())
	}
	opts := a.options(a.log)
	opts.NoDelete, opts.Adopt, opts.Accept = c.NoDelete, c.Adopt, c.Accept
	s := &server{socket: a.socket(cfg.DataDir), http: cfg.HTTP, registry: opts.Registry, log: a.log}
	if c.Once {
		s.http.Listen = ""
		return c.once(a, opts, s.serve)
	}
	return daemon.Run(a.ctx, opts, s.serve, a.hangups)
}

// once passes, prints what was done and what is left, and fails where somebody has to look.
func (c *runCmd) once(a *app, opts daemon.Options, serve daemon.Serve) error {
	bar := newByteBar(a, "copied ")
	opts.Progress = func(p daemon.Progress) {
		bar.set(p.CopiedBytes, p.CopiedBytes+p.UncopiedBytes)
	}
	opts.Log = bar.logger(a)
	report, err := daemon.RunOnce(a.ctx, opts, c.RetryFor, serve)
	bar.finish()
	if report != nil {
		table := func(p *page) { printReport(p, report) }
		err = errors.Join(err, c.print(a, reportJSON(report), table))
	}
	if err != nil {
		return err
	}
	if n := failures(report); n > 0 {
		return fmt.Errorf("%s for an operator: see above", tier.Count(n, "alarm"))
	}
	return nil
}

// failures counts the alarms that a pass must not succeed with. A hole is told, but is past: it was
// recorded, and copying went on.
func failures(r *daemon.Report) (n int) {
	for _, x := range r.Alarms {
		if x.Reason.Code != tier.CodeHole {
			n++
		}
	}
	return n
}
