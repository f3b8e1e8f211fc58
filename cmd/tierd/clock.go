package main

import (
	"fmt"

	"github.com/tierd/tierd/runtime/tier"
)

// clockCmd holds the commands about the clock.
type clockCmd struct {
	Accept clockAcceptCmd `cmd:"" help:"Take this machine's clock for right after a step."`
}

// clockAcceptCmd takes the clock for right.
type clockAcceptCmd struct{}

// Help gives examples.
func (c *clockAcceptCmd) Help() string {
	return `What leaves no copy goes by the clock. Where it is further from the highest time that was
ever seen than limits.max_clock_step, in either direction, such deletions are paused: look at the
clock first, and then accept it.

Example:

	date; tierd clock accept`
}

// Run asks the daemon, or does it where none runs.
func (c *clockAcceptCmd) Run(a *app) error {
	b, done, err := a.change()
	if err != nil {
		return err
	}
	defer done()
	if err := b.AcceptClock(a.ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "accepted: it is %s by the clock of this machine\n",
		tier.Time(a.now()))
	return err
}
