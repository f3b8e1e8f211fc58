package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/tier"
)

// statusCmd shows where every log stands.
type statusCmd struct {
	output
	Table string `placeholder:"TABLE" help:"Only this table, with its settings and where each comes from."`
}

// Help gives examples.
func (c *statusCmd) Help() string {
	return `Asks the running daemon. Where none runs, the answer is built from the ledger and a
fresh scan, which does not read what waits to be copied: "tierd check" does.

Examples:

	tierd status
	tierd status --table orders
	tierd status -o json | jq '.logs[] | select(.reasons[].alarm)'`
}

// Run asks and prints.
func (c *statusCmd) Run(a *app) error {
	b, done, err := a.ask()
	if err != nil {
		return err
	}
	defer done()
	s, err := b.Status(a.ctx)
	if err != nil {
		return err
	}
	if c.Table != "" {
		if s = s.Of(c.Table); len(s.Tables) == 0 {
			return usagef("table %q: neither a source nor the ledger has it", c.Table)
		}
	}
	return c.print(a, s, func(p *page) {
		statusHead(p, s)
		p.table("LOG\tSTATE\tCOPIED\tLOCAL\tSIZE\tREMOTE\tSIZE\tLAG", logRows(s))
		if c.Table != "" {
			settings(p, s)
		}
		logReasons(p, s)
		notLooked(p, s)
	})
}

func statusHead(p *page, s *api.Status) {
	where := "no daemon runs"
	if s.Running {
		where = "running for " + humanSince(s.Now, s.StartedAt)
		if !s.Ready {
			where += ", not ready"
		}
		if s.Kafka != nil {
			where += ", Kafka at " + *s.Kafka
		}
	}
	p.line("tierd %s, %s; generation %d of %s; ledger %s", s.Version, where, s.Generation.Number,
		s.Generation.Config, s.LedgerID)
	for _, x := range s.Generation.Plugins {
		p.line("plugin %s, sha256 %.12s", x.Name, x.SHA256)
	}
	if e := s.Generation.Error; e != nil {
		p.alarm("! the last reload was refused: %s", *e)
	}
	reasons(p, s.Now, "", s.Reasons)
	for _, x := range s.Sources {
		reasons(p, s.Now, "source "+x.Name+": ", x.Reasons)
	}
	for _, t := range s.Tables {
		if t.Paused != nil {
			p.alarm("! table %s is paused: %s", t.Table, humanReason(s.Now, *t.Paused))
		}
	}
}

func logRows(s *api.Status) []string {
	rows := make([]string, len(s.Logs))
	for i, l := range s.Logs {
		lag := "-"
		if l.Lag.Segments > 0 {
			lag = fmt.Sprintf("%d (%s, %s)", l.Lag.Segments, humanBytes(l.Lag.Bytes),
				humanSince(s.Now, l.Lag.Oldest))
		}
		rows[i] = row(l.Log, string(l.TierState), orDash(l.CopiedOffset),
			humanExtent(l.Local), humanBytes(l.Local.Bytes),
			humanExtent(l.Remote), humanBytes(l.Remote.Bytes), lag)
	}
	return rows
}

// settings prints the effective settings of the only table.
func settings(p *page, s *api.Status) {
	for _, t := range s.Tables {
		entry := "no entry: frozen"
		if t.Entry != nil {
			entry = *t.Entry
		}
		p.line("\ntable %s (%s), %s, tier epoch %d", t.Table, entry, t.TierState, t.TierEpoch)
		if t.Dropped != 0 {
			p.line("dropped at %s", tier.Time(t.Dropped))
		}
		if t.Outstanding.Segments > 0 {
			p.line("outstanding: %s (%s) outside the log, not removed yet",
				tier.Count(t.Outstanding.Segments, "copy"), humanBytes(t.Outstanding.Bytes))
		}
		rows := make([]string, 0, len(t.Settings)+1)
		for _, x := range t.Settings {
			rows = append(rows, row(x.Key, x.Value, x.Origin))
		}
		p.table("SETTING\tVALUE\tFROM", rows)
		b := t.Brake
		p.line("brake: %d of %s, %s of %s within %s", b.Segments,
			tier.Count(b.MaxSegments, "segment"),
			humanBytes(b.Bytes), humanBytes(b.MaxBytes), humanAge(time.Duration(b.PerSeconds)*time.Second))
	}
}

func logReasons(p *page, s *api.Status) {
	for _, l := range s.Logs {
		reasons(p, s.Now, l.Log+": ", l.Reasons)
	}
}

// notLooked says what only a daemon knows: what it failed on when it copied. Without one nobody has
// read a segment that waits.
func notLooked(p *page, s *api.Status) {
	waits := func(l api.Log) bool { return l.Lag.Segments > 0 }
	if !s.Running && slices.ContainsFunc(s.Logs, waits) {
		p.line("  no daemon runs, and what waits to be copied was not read: tierd check does")
	}
}

// reasons prints each on a line; alarms stand out.
func reasons(p *page, now api.Time, prefix string, list []api.Reason) {
	for _, r := range list {
		if r.Alarm {
			p.alarm("! %s%s", prefix, humanReason(now, r))
		} else {
			p.line("  %s%s", prefix, humanReason(now, r))
		}
	}
}
