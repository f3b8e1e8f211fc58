package main

// resumeCmd lets the deletions of a paused table go on.
type resumeCmd struct {
	Table string `arg:"" help:"Table that the brake paused."`
}

// Help gives examples.
func (c *resumeCmd) Help() string {
	return `A table pauses when more of it would go within limits.per than limits.max_delete_*
allow. Look first at what is due: tierd status --table TABLE. Resuming begins a new window.

Example:

	tierd resume orders`
}

// Run asks the daemon, or does it where none runs.
func (c *resumeCmd) Run(a *app) error {
	b, done, err := a.change()
	if err != nil {
		return err
	}
	defer done()
	return b.Resume(a.ctx, c.Table)
}
