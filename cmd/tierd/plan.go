package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/tier"
)

// planCmd says what would be deleted.
type planCmd struct {
	output
	Policies         []string `name:"policy" short:"p" sep:"none" placeholder:"PATH" help:"Ask these policies instead of those in force: files, or directories of them with their data."`
	Data             []string `sep:"none" placeholder:"PATH" help:"More data for --policy: .yaml, .yml and .json files, or directories of them."`
	At               *string  `placeholder:"TIME" help:"Ask as of then: an instant as in RFC 3339, a date, or how long from now, such as 7d."`
	Save             string   `placeholder:"FILE" help:"Also write the plan to this file, as JSON."`
	DetailedExitcode bool     `help:"Exit with 4 if anything would be deleted; with --policy or --at, if the answer is another than today's."`
}

// Help gives examples.
func (c *planCmd) Help() string {
	return `Asks guard and policies about every log, in both tiers, as the deletions themselves would,
and deletes nothing. It says how much would go of each table, each segment with its reason, each
object in the store that nothing names, and what waits, for what and until when. For these objects
it lists the store under the ledger's id. The digest names the deletions: it stays the same while
they do. Then it says what is copied next, in order, with the score that each plugin gave.

With --policy other policies are asked, with --at those of a later moment, about what is there now.
What is printed then is the difference from today: by table, with the rules that make it, and each
segment that would go (+) or stay (-). No daemon needs to be stopped or reloaded for that.

Examples:

	tierd plan
	tierd plan -o json | jq '.totals'
	tierd plan --save plan.json
	tierd plan --detailed-exitcode; test $? -eq 4 && echo something would go
	tierd plan --policy new-policies/
	tierd plan --at 30d
	tierd plan --policy new-policies/ --at 2027-01-01 -o json | jq '.against.differences'`
}

// Run asks and prints.
func (c *planCmd) Run(a *app) error {
	question, err := c.question(a)
	if err != nil {
		return err
	}
	b, done, err := a.ask()
	if err != nil {
		return err
	}
	defer done()
	if question != nil {
		return c.compare(a, b, question)
	}
	plan, err := b.Plan(a.ctx)
	if err != nil {
		return err
	}
	if err := c.save(plan); err != nil {
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

// save writes the plan to the file, if one was named.
func (c *planCmd) save(plan *api.Plan) error {
	if c.Save == "" {
		return nil
	}
	var text bytes.Buffer
	if err := api.Encode(&text, plan); err != nil {
		return err
	}
	if err := os.WriteFile(c.Save, text.Bytes(), 0o666); err != nil {
		return fmt.Errorf("save the plan: %w", err)
	}
	return nil
}

func printPlan(p *page, now api.Time, plan *api.Plan) {
	if len(plan.Deletions) == 0 {
		p.line("nothing would be deleted now")
	}
	if rows := planned("", plan.Deletions); len(rows) > 0 {
		p.table("LOG\tACTION\tBASE\tNEXT\tSIZE\tWHY", rows)
	}
	for _, t := range plan.Totals {
		what := "segment"
		if t.Action == tier.DeleteOrphan {
			what = "object"
		}
		p.line("%s: %s of %s (%s)", t.Table, t.Action, tier.Count(t.Segments, what),
			humanBytes(t.Bytes))
	}
	printCopies(p, now, plan)
	for _, w := range plan.Waiting {
		reasons(p, now, awaiting(w), []api.Reason{w.Reason})
	}
	p.line("digest %s", plan.Digest)
	if r := plan.Disablement; r != nil {
		p.line("\nloaded as it is now, the configuration would also let these go, turned off with " +
			"delete:")
		printRemoval(p, r)
	}
}

// planned gives a row for each deletion, with its first reason.
func planned(sign string, list []api.PlannedDeletion) []string {
	rows := make([]string, len(list))
	for i, x := range list {
		why := ""
		if len(x.Reasons) > 0 {
			why = x.Reasons[0].Text
		}
		base, next := fmt.Sprint(x.Base), fmt.Sprint(x.Next)
		if x.Object != nil {
			base, next, why = "-", "-", *x.Object+": "+why
		}
		rows[i] = row(sign+x.Log, string(x.Action), base, next, humanBytes(x.Bytes), why)
	}
	return rows
}

// awaiting says what it is that waits.
func awaiting(w api.PlannedWait) string {
	switch {
	case w.Log == "":
		return fmt.Sprintf("%s: ", w.Action)
	case w.Base == w.Next:
		return fmt.Sprintf("%s %s: ", w.Log, w.Action)
	}
	return fmt.Sprintf("%s [%d, %d) %s: ", w.Log, w.Base, w.Next, w.Action)
}

// planCopiesShown is how many copies are shown to people.
const planCopiesShown = 20

// printCopies prints what is copied next, in its order, with what plugins made of it.
func printCopies(p *page, now api.Time, plan *api.Plan) {
	rows := make([]string, 0, planCopiesShown)
	for i, x := range plan.Copies {
		if i == planCopiesShown {
			break
		}
		turn := fmt.Sprint(i + 1)
		if x.Copying {
			turn = "now"
		}
		rows = append(rows, row(turn, x.Log, fmt.Sprint(x.Base), fmt.Sprint(x.Next),
			humanBytes(x.Bytes), scores(x.Scores)))
	}
	if len(rows) > 0 {
		p.table("COPY\tLOG\tBASE\tNEXT\tSIZE\tSCORE", rows)
	}
	reasons(p, now, "", plan.PluginFaults)
	if t := plan.CopiesTotal; t.Segments > 0 {
		p.line("copy of %s (%s)", tier.Count(t.Segments, "segment"), humanBytes(t.Bytes))
	}
	for _, h := range plan.Held {
		reasons(p, now, fmt.Sprintf("%s [%d, %d) copy: ", h.Log, h.Base, h.Next),
			[]api.Reason{h.Reason})
	}
}

// scores gives each plugin's score with its name.
func scores(list []api.Score) string {
	if len(list) == 0 {
		return "-"
	}
	words := make([]string, len(list))
	for i, s := range list {
		words[i] = fmt.Sprintf("%d by %s", s.Score, s.Plugin)
	}
	return strings.Join(words, ", ")
}
