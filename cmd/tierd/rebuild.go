package main

import (
	"fmt"
	"sync/atomic"

	"github.com/vbauerster/mpb/v8/decor"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/daemon"
	"github.com/tierd/tierd/runtime/rebuild"
	"github.com/tierd/tierd/runtime/tier"
)

// rebuildCmd makes a ledger of what the store has.
type rebuildCmd struct {
	output
	DryRun         bool   `help:"Look at everything, and change nothing."`
	Replace        bool   `help:"Replace a ledger that is sound; it is kept aside."`
	Ledger         string `placeholder:"ID" help:"Id of the ledger, where the store does not tell which one is this machine's."`
	WithoutSources bool   `help:"Go on although a source cannot be read: it is gone for good."`
	Verify         string `default:"size" enum:"size,full" help:"How closely objects are looked at: ${enum}."`
}

// Help gives examples.
func (c *rebuildCmd) Help() string {
	return `Makes a new ledger of the manifests and objects in the store and of the directories, where
the old one is lost, damaged, or older than the manifests (ledger-stale). No daemon may run.

It never says more than the objects that it has looked at show. What is still local and not shown
to be copied is copied anew. For one limits.orphan_age after it no orphan is collected. A ledger
that is sound is replaced only on consent, and kept aside in any case.

Examples:

	tierd rebuild --dry-run
	tierd rebuild
	tierd rebuild --replace --verify full`
}

// Run makes it, and says of what.
func (c *rebuildCmd) Run(a *app) error {
	var copies atomic.Int64
	looked := decor.Any(func(decor.Statistics) string {
		return tier.Count(copies.Load(), "copy") + " looked at"
	})
	bar := newBar(a, []decor.Decorator{decor.Name("logs "), decor.CountersNoUnit("%d / %d")},
		[]decor.Decorator{looked})
	progress := func(p rebuild.Progress) {
		copies.Store(p.Copies)
		bar.set(p.LogsDone, p.Logs)
	}
	r, err := daemon.Rebuild(a.ctx, a.options(a.quiet()), daemon.RebuildOptions{
		Replace: c.Replace, Ledger: c.Ledger, Verify: tier.VerifyMode(c.Verify), Dry: c.DryRun,
		WithoutSources: c.WithoutSources, Progress: progress})
	bar.finish()
	if err != nil {
		return err
	}
	return c.print(a, r, func(p *page) { printRebuilt(p, r) })
}

func printRebuilt(p *page, r *api.Rebuilt) {
	rows := make([]string, len(r.Logs))
	for i, l := range r.Logs {
		rows[i] = row(l.Log, orDash(l.Source), fmt.Sprint(l.LogStart), fmt.Sprint(l.CopiedOffset),
			fmt.Sprint(l.Segments), humanBytes(l.Bytes), fmt.Sprint(l.LeftOut), fmt.Sprint(l.Holes))
	}
	p.table("LOG\tSOURCE\tSTART\tCOPIED\tREMOTE SEGMENTS\tSIZE\tLEFT OUT\tHOLES", rows)
	for _, t := range r.Tables {
		if !t.Governed {
			p.line("table %s: no entry of the configuration governs it: frozen", t.Table)
		}
	}
	for _, x := range r.Problems {
		p.alarm("! %s: %s", x.Object, x.Text)
	}
	printUnnamed(p, r)
	verb := "has"
	if r.DryRun {
		verb = "would have"
	}
	p.line("ledger %s %s %s (%s) of %s", r.LedgerID, verb,
		tier.Count(r.Totals.Segments, "remote segment"), humanBytes(r.Totals.Bytes),
		tier.Count(len(r.Logs), "log"))
	if r.Aside != nil {
		p.line("the ledger that was there is kept as %s", *r.Aside)
	}
	if r.DryRun {
		return
	}
	p.line("no orphan is collected before %s; tierd verify lists them", tier.Time(r.CollectFrom))
	if r.Adopt {
		p.line("another owner has these objects; if it runs no more, start with: tierd run --adopt")
	}
}

// printUnnamed says of which objects nothing is known but that they are there.
func printUnnamed(p *page, r *api.Rebuilt) {
	var n int64
	for _, l := range r.Logs {
		n += l.Unnamed
		if l.Unnamed > 0 {
			p.alarm("! %s: no entry of its manifest names %s: not part of the log, and collected "+
				"as orphans from %s on", l.Log, tier.Count(l.Unnamed, "object"),
				tier.Time(r.CollectFrom))
		}
	}
	for _, key := range r.Unnamed {
		p.line("  %s", key)
	}
	if more := n - int64(len(r.Unnamed)); more > 0 {
		p.line("  and %d more", more)
	}
}
