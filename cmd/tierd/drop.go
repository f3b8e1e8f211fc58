package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/tierd/tierd/cmd/internal/screen"
	"github.com/tierd/tierd/runtime/api"
)

// dropCmd lets the remote data of a table go for good.
type dropCmd struct {
	output
	Table  string `arg:"" help:"Table that no entry of the configuration governs any more."`
	Accept string `placeholder:"DIGEST" help:"Drop without a question, if just this would go."`
}

// Help gives examples.
func (c *dropCmd) Help() string {
	return `A table whose entry is gone from the configuration is frozen. Dropping it deletes all that
it has in the store: the start of each log moves first, after limits.remote_delete_grace each copy
is asked about (policies may deny), put on record, and removed. Local files are not touched.

It says how much would go, with a digest. On a terminal it asks; in scripts give the digest back.
It counts only as long as just the same would go.

Examples:

	tierd drop orders
	tierd drop orders --accept 6f1c8a0e...-dk3v0k8zqcow`
}

// Run asks, and drops.
func (c *dropCmd) Run(a *app) error {
	b, done, err := a.change()
	if err != nil {
		return err
	}
	defer done()
	accept := c.Accept
	if accept == "" {
		r, err := b.DropPlan(a.ctx, c.Table)
		if err != nil {
			return err
		}
		if !a.confirms(c.Table, r) {
			if err := c.print(a, r, func(p *page) { printRemoval(p, r) }); err != nil {
				return err
			}
			return usagef("nothing was dropped; to go on: tierd drop %s --accept %s", c.Table, r.Digest)
		}
		accept = r.Digest
	}
	r, err := b.Drop(a.ctx, c.Table, accept)
	if err != nil {
		return err
	}
	return c.print(a, r, func(p *page) {
		printRemoval(p, r)
		p.line("dropped; the first objects go in %ds; see how far it is: tierd status --table %s",
			r.GraceSeconds, c.Table)
	})
}

func printRemoval(p *page, r *api.Removal) {
	rows := make([]string, len(r.Tables))
	for i, t := range r.Tables {
		rows[i] = row(t.Table, fmt.Sprint(t.Logs), fmt.Sprint(t.Segments), humanBytes(t.Bytes),
			fmt.Sprintf("%d (%s)", t.OnlyRemote.Segments, humanBytes(t.OnlyRemote.Bytes)))
	}
	p.table("TABLE\tLOGS\tREMOTE SEGMENTS\tSIZE\tNOT LOCAL ANY MORE", rows)
	p.line("digest %s", r.Digest)
}

// confirms asks on a terminal; elsewhere nobody is there to answer, which is no.
func (a *app) confirms(table string, r *api.Removal) bool {
	if !screen.Terminal(a.stdin) || !screen.Terminal(a.stderr) {
		return false
	}
	p := &page{}
	printRemoval(p, r)
	a.complain("%sThis deletes them for good. Type the name of the table to go on:", p.String())
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	return err == nil && strings.TrimSpace(answer) == table
}
