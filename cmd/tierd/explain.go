package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/tier"
)

// explainCmd says everything about one offset.
type explainCmd struct {
	output
	Position string `arg:"" name:"log@offset" help:"Log and offset, such as orders/0@1042."`
}

// Help gives examples.
func (c *explainCmd) Help() string {
	return `Reads, proves and asks exactly as a deletion would, and deletes nothing.

Examples:

	tierd explain orders/0@1042
	tierd explain orders/0@1042 -o json | jq -r '.decisions[].verdict'`
}

// parsePosition splits table/name@offset.
func parsePosition(s string) (tier.LogID, tier.Offset, error) {
	i := strings.LastIndexByte(s, '@')
	if i < 0 {
		return tier.LogID{}, 0, usagef("%q: want LOG@OFFSET, such as orders/0@1042", s)
	}
	id, err := tier.ParseLogID(s[:i])
	if err != nil {
		return id, 0, usagef("%v", err)
	}
	n, err := strconv.ParseInt(s[i+1:], 10, 64)
	if err != nil || n < 0 {
		return id, 0, usagef("%q: the offset must be a whole number, not negative", s)
	}
	return id, tier.Offset(n), nil
}

// Run asks and prints.
func (c *explainCmd) Run(a *app) error {
	id, offset, err := parsePosition(c.Position)
	if err != nil {
		return err
	}
	b, done, err := a.ask()
	if err != nil {
		return err
	}
	defer done()
	e, err := b.Explain(a.ctx, id, offset)
	if err != nil {
		return err
	}
	now := a.now()
	return c.print(a, e, func(p *page) { explain(p, now, e) })
}

func explain(p *page, now api.Time, e *api.Explanation) {
	p.line("%s@%d", e.Log, e.Offset)
	if s := e.Segment; s != nil {
		p.line("  segment  [%d, %d), %s, %s", s.Base, s.Next, humanBytes(s.Bytes), s.State)
	} else {
		p.line("  segment  none")
	}
	p.line("  tiers    %s", tiers(e.Tiers))
	p.line("  copied   up to %s", orDash(e.CopiedOffset))
	if s := e.Segment; s != nil {
		if s.SHA256 != nil {
			p.line("  sha256   %s", s.SHA256)
		}
		if s.Object != nil {
			p.line("  object   %s, copied %s ago", *s.Object, humanSince(now, s.CopiedAt))
		}
	}
	if e.AgeNS != nil {
		p.line("  age      %s, by %s", humanAge(time.Duration(*e.AgeNS)), orDash(e.AgeSource))
	}
	reasons(p, now, "", e.Reasons)
	for _, d := range e.Decisions {
		due := ""
		if d.Due != 0 {
			due = ", until " + tier.Time(d.Due).String() + " (" + humanUntil(now, d.Due) + ")"
		}
		p.line("%s: %s%s", d.Action, d.Verdict, due)
		reasons(p, now, "", d.Reasons)
	}
}
