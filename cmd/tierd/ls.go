package main

import (
	"cmp"
	"fmt"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/tier"
)

// lsCmd lists the segments of a log.
type lsCmd struct {
	output
	Log string `arg:"" help:"Log as table/name, such as orders/0."`
}

// Help gives examples.
func (c *lsCmd) Help() string {
	return `Examples:

	tierd ls orders/0
	tierd ls orders/0 -o json | jq '.segments[] | select(.tiers == ["remote"])'`
}

// Run asks and prints.
func (c *lsCmd) Run(a *app) error {
	id, err := tier.ParseLogID(c.Log)
	if err != nil {
		return usagef("%v", err)
	}
	b, done, err := a.ask()
	if err != nil {
		return err
	}
	defer done()
	list, err := b.Segments(a.ctx, id)
	if err != nil {
		return err
	}
	now := a.now()
	return c.print(a, list, func(p *page) {
		rows := make([]string, len(list.Segments))
		for i, s := range list.Segments {
			sum := "-"
			if s.SHA256 != nil {
				sum = s.SHA256.String()[:12]
			}
			rows[i] = row(fmt.Sprint(s.Base), fmt.Sprint(s.Next), humanBytes(s.Bytes),
				humanSince(now, cmp.Or(s.MaxTimestamp, s.ModTime)), tiers(s.Tiers), string(s.State), sum)
		}
		p.table("BASE\tNEXT\tSIZE\tAGE\tTIERS\tSTATE\tSHA256", rows)
		for _, s := range list.Segments {
			switch s.State {
			case api.SegmentQuarantined, api.SegmentLost, api.SegmentHole:
				reasons(p, now, fmt.Sprintf("[%d, %d) ", s.Base, s.Next), s.Reasons)
			}
		}
	})
}
