package main

import (
	"path/filepath"

	"github.com/tierd/tierd/runtime/audit"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/daemon"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// auditCmd holds the commands about the deletion log.
type auditCmd struct {
	Verify auditVerifyCmd `cmd:"" help:"Check the chain of the deletion log."`
	Replay auditReplayCmd `cmd:"" help:"Say which recorded deletions today's policies would not allow."`
}

// auditVerifyCmd checks the deletion log.
type auditVerifyCmd struct{ output }

// Help gives examples.
func (c *auditVerifyCmd) Help() string {
	return `Each record carries the hash of the one before, so what is changed within shows.
Records cut off the end show only against a number and hash of a last record that was kept somewhere
else: keep what this prints.

Exit code: 0 if the chain holds, 1 if not. It may run beside the daemon.

Examples:

	tierd audit verify
	tierd audit verify -o json | jq '{last, head}' >>/elsewhere/anchors`
}

// Run checks.
func (c *auditVerifyCmd) Run(a *app) error {
	data, err := config.DataDir(a.cli.Config, a.host)
	if err != nil {
		return err
	}
	dir, err := vfs.OpenOS(filepath.Join(data, daemon.AuditDir))
	if err != nil {
		return &checkError{err}
	}
	defer func() { _ = dir.Close() }() // nothing was written
	r, err := audit.Verify(dir)
	if err != nil {
		return &checkError{err}
	}
	return c.print(a, r, func(p *page) { printAudit(p, &r) })
}

func printAudit(p *page, r *audit.Report) {
	p.line("ok: %s in %s; %s announced: %d deleted, %d kept, %d unknown, %d open",
		tier.Count(r.Records, "record"), tier.Count(r.Files, "file"), tier.Count(r.Intents, "deletion"),
		r.Deleted, r.Kept, r.Unknown, len(r.Open))
	if r.First > 1 {
		p.line("the log begins at record %d; what was moved away ends with the hash %s",
			r.First, r.FirstPrev)
	}
	p.line("last: record %d with the hash %s", r.Last, r.Head)
	if r.TornBytes > 0 {
		p.line("the end, %s, is no whole record: one that is being written, or what a crash left "+
			"of one", tier.Count(r.TornBytes, "byte"))
	}
}
