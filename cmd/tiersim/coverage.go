package main

import "github.com/tierd/tierd/runtime/tier"

// coverageCmd shows what histories meet.
type coverageCmd struct {
	projectFlags
	runFlags
}

// Help says more.
func (c *coverageCmd) Help() string {
	return `Prints how often the histories of check meet each situation; how often each fault was drawn
of clock, store, disk and processes; how often each rule of the policies gives a reason (true) and
is asked and gives none (false); and how often what each plugin says made a difference (obeyed) and
was not followed (overruled). What is VACUOUS there would let check exit 3.

Exit code: 0, whatever it shows; 2 and 5 as of check, 130 interrupted.

Examples:

	tiersim coverage
	tiersim coverage --config ./retention --seeds 1..1000`
}

// Run shows them.
func (c *coverageCmd) Run(a *app) error {
	p, err := c.load(a, layoutOf(c.Layout))
	if err != nil {
		return err
	}
	from, to, err := c.seeds()
	if err != nil {
		return err
	}
	a.warn(p)
	r := &runner{p: p, from: from, to: to, flags: &c.runFlags, stopAt: seedsMax, a: a,
		status: status{a: a}}
	hung := r.run()
	out := r.report(c.subject())
	a.printf("%s", out.Matrix())
	if hung != nil {
		return hung
	}
	if n := len(r.failed); n > 0 {
		verb := "break"
		if n == 1 {
			verb = "breaks"
		}
		a.printf("\n%s %s a promise: run tiersim check\n", tier.Count(n, "history"), verb)
	}
	if out.Interrupted {
		a.printf("\ninterrupted: %s\n", out.NotTried())
		return ended(exitInterrupted)
	}
	return nil
}
