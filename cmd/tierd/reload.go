package main

// reloadCmd makes the running daemon load its configuration anew.
type reloadCmd struct {
	Accept string `placeholder:"DIGEST" help:"Accept the deletion of just these remote data."`
	output
}

// Help gives examples.
func (c *reloadCmd) Help() string {
	return `Makes the running daemon load configuration, policies and data as one generation, as SIGHUP
does, and says which is in force now, or what is wrong where it refuses.

Turning the tiering of a table off with the policy delete deletes its remote data. Where that is
more than limits.max_delete_* allow, a reload and a start are refused with counts and a digest;
given back, it lets just these go.

Examples:

	tierd reload
	tierd plan -o json | jq .disablement
	tierd reload --accept 6f1c8a0e...-dk3v0k8zqcow`
}

// Run asks the daemon.
func (c *reloadCmd) Run(a *app) error {
	d, done, err := a.daemon()
	if err != nil {
		return err
	}
	defer done()
	g, err := d.Reload(a.ctx, c.Accept)
	if err != nil {
		return err
	}
	return c.print(a, g, func(p *page) {
		p.line("generation %d of %s is in force; policies %s", g.Number, g.Config, g.PolicyDigest)
		for _, x := range g.Plugins {
			p.line("  plugin %s, SHA-256 %s", x.Name, x.SHA256)
		}
	})
}
