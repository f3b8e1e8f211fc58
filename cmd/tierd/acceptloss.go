package main

import "github.com/tierd/tierd/runtime/tier"

// acceptLossCmd accepts the loss of a damaged segment.
type acceptLossCmd struct {
	output
	Position string `arg:"" name:"log@offset" help:"Log and an offset of the damaged segment."`
}

// Help gives examples.
func (c *acceptLossCmd) Help() string {
	return `A damaged segment is not copied and blocks its log. Accepting its loss records its
offsets as a hole, with the hash that the file has now; the file itself stays. It is written to the
audit record.

Example:

	tierd accept-loss orders/0@1042`
}

// Run asks the daemon, or does it where none runs.
func (c *acceptLossCmd) Run(a *app) error {
	id, offset, err := parsePosition(c.Position)
	if err != nil {
		return err
	}
	b, done, err := a.change()
	if err != nil {
		return err
	}
	defer done()
	loss, err := b.AcceptLoss(a.ctx, id, offset)
	if err != nil {
		return err
	}
	return c.print(a, loss, func(p *page) {
		p.line("%s: the loss of %s is accepted (sha256 %s)", loss.Log,
			tier.Range{Base: loss.Base, Next: loss.Next}, loss.SHA256)
	})
}
