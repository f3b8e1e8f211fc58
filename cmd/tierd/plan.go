package main

import (
	"fmt"

	"github.com/tierd/tierd/runtime/api"
)

// planCmd says what would be deleted.
type planCmd struct {
	output
	DetailedExitcode bool `help:"Exit with 4 if anything would be deleted."`
}

// Help gives examples.
func (c *planCmd) Help() string {
	return `Asks guard and policies about every log, in both tiers, as the deletions themselves would,
and deletes nothing. It says how much would go of each table, each segment with its reason, and what
waits, for what and until when. The digest names the deletions: it stays the same while they do.

Examples:

	tierd plan
	tierd plan -o json | jq '.totals'
	tierd plan --detailed-exitcode; test $? -eq 4 && echo something would go`
}

// Run asks and prints.
func (c *planCmd) Run(a *app) error {
	b, done, err := a.ask()
	if err != nil {
		return err
	}
	defer done()
	plan, err := b.Plan(a.ctx)
	if err != nil {
		return err
	}
	if err := c.print(a, plan, func(p *page) { printPlan(p, a.now(), plan) }); err != nil {
		return err
	}
	if c.DetailedExitcode && len(plan.Deletions) > 0 {
		return errChanges
	}
	return nil
}

func printPlan(p *page, now api.Time, plan *api.Plan) {
	if len(plan.Deletions) == 0 {
		p.line("nothing would be deleted now")
	}
	rows := make([]string, len(plan.Deletions))
	for i, x := range plan.Deletions {
		why := ""
		if len(x.Reasons) > 0 {
			why = x.Reasons[0].Text
		}
		rows[i] = row(x.Log, string(x.Action), fmt.Sprint(x.Base), fmt.Sprint(x.Next),
			humanBytes(x.Bytes), why)
	}
	if len(rows) > 0 {
		p.table("LOG\tACTION\tBASE\tNEXT\tSIZE\tWHY", rows)
	}
	for _, t := range plan.Totals {
		p.line("%s: %s of %d segments (%s)", t.Table, t.Action, t.Segments, humanBytes(t.Bytes))
	}
	for _, w := range plan.Waiting {
		reasons(p, now, fmt.Sprintf("%s [%d, %d) %s: ", w.Log, w.Base, w.Next, w.Action),
			[]api.Reason{w.Reason})
	}
	p.line("digest %s", plan.Digest)
}
