package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/audit"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/daemon"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// differingMax bounds how many deletions are listed; the counts go on.
const differingMax = 10_000

// auditReplayCmd decides anew on the deletions that were recorded.
type auditReplayCmd struct {
	output
	askedPolicies
	Since    string `placeholder:"TIME" help:"Only deletions since then: a date, an instant as in RFC 3339, or how long ago, such as 7d."`
	Detailed bool   `name:"detailed-exitcode" help:"Exit with 4 if an answer would differ."`
}

// Help gives examples.
func (c *auditReplayCmd) Help() string {
	return `Each record holds the input that the policies were asked with. This asks today's policies
the same again, and lists what they would keep now. It deletes nothing, and brings nothing back.

Exit code: 0; 1 if the log is damaged or the policies have no answer to a record; with
--detailed-exitcode 4 if an answer would differ.

Examples:

	tierd audit replay --since 30d
	tierd audit replay -p new-policies/ --detailed-exitcode`
}

// replay is what audit replay prints as JSON.
type replay struct {
	Digest  string   `json:"policy_digest"` // of the policies that were asked now
	Since   api.Time `json:"since"`
	Records int64    `json:"records"` // deletions that were announced since then
	Same    int64    `json:"same"`    // would go now for the same reasons
	// OtherReasons would go now for other ones.
	OtherReasons int64 `json:"other_reasons"`
	Differ       int64 `json:"differ"` // would stay now
	// NotReplayed have no input that these policies can be asked about.
	NotReplayed int64               `json:"not_replayed"`
	Errors      int64               `json:"errors"` // of Differ, those without an answer
	Deletions   api.List[redecided] `json:"deletions"`
}

// redecided is a deletion that would not happen now, or that cannot be asked about.
type redecided struct {
	Seq    uint64               `json:"seq"`
	At     api.Time             `json:"at"`
	Action tier.Action          `json:"action"`
	Log    string               `json:"log"`
	Base   tier.Offset          `json:"base"`
	Next   tier.Offset          `json:"next"`
	Bytes  int64                `json:"bytes"`
	Digest string               `json:"policy_digest"` // of the policies that were asked then
	Then   api.List[api.Reason] `json:"then"`
	Now    api.List[api.Reason] `json:"now"`
	Error  *string              `json:"error"` // why there is no answer now
}

// Run asks again and prints.
func (c *auditReplayCmd) Run(a *app) error {
	since, err := parseSince(c.Since, tier.Time(a.now()))
	if err != nil {
		return err
	}
	s, err := c.read(a)
	if err != nil {
		return err
	}
	out := &replay{Since: api.Time(since)}
	err = s.ask(a.ctx, func(ctx context.Context) error {
		set, err := rego.Load(s.modules, s.data, s.options)
		if err != nil {
			return err
		}
		out.Digest = set.Digest()
		return c.replay(ctx, a, out, set, s.options.Facts)
	})
	if err != nil {
		return err
	}
	if err := c.print(a, out, func(p *page) { printReplay(p, out) }); err != nil {
		return err
	}
	switch {
	case out.Errors > 0:
		return errCheck
	case c.Detailed && out.Differ > 0:
		return errChanges
	}
	return nil
}

// parseSince reads a date, an instant or a duration before now; the empty text is the beginning.
func parseSince(s string, now tier.Time) (tier.Time, error) {
	if s == "" {
		return 0, nil
	}
	if d, err := config.ParseDuration(s); err == nil {
		return now.Add(-d), nil
	}
	switch at, is, err := parseInstant(s); {
	case err != nil:
		return 0, usagef("--since %q: %v", s, err)
	case is:
		return at, nil
	}
	return 0, usagef("--since %q: want a date such as 2026-03-01, an instant such as "+
		"2026-03-01T12:00:00Z, or a duration such as 7d", s)
}

// replay goes through the audit log.
func (c *auditReplayCmd) replay(ctx context.Context, a *app, out *replay, set *rego.Set,
	facts []string) error {
	data, err := config.DataDir(a.cli.Config, a.host)
	if err != nil {
		return err
	}
	dir, err := vfs.OpenOS(filepath.Join(data, daemon.AuditDir))
	if err != nil {
		return &checkError{err}
	}
	defer func() { _ = dir.Close() }() // nothing was written
	err = audit.Read(dir, func(in tier.Intent) {
		if in.Deletion.At >= tier.Time(out.Since) && ctx.Err() == nil {
			out.add(ctx, in, set, facts)
		}
	})
	if err != nil {
		return &checkError{err}
	}
	return ctx.Err()
}

// add decides anew on one deletion. facts are the names of those that are configured.
func (r *replay) add(ctx context.Context, in tier.Intent, set *rego.Set, facts []string) {
	d := &in.Deletion
	r.Records++
	entry := redecided{Seq: in.Seq, At: api.Time(d.At), Action: d.Action, Log: d.Log.String(),
		Base: d.Range.Base, Next: d.Range.Next, Bytes: d.Bytes, Digest: d.Digest,
		Then: reasonList(d.Reasons)}
	err := errors.New("the record has no input")
	var input *rego.Input
	if len(d.Input) > 0 {
		input, err = rego.ParseInput(fmt.Sprintf("record %d", in.Seq), d.Input)
	}
	if err != nil {
		r.NotReplayed++
		entry.Error = orNull(err.Error())
		r.list(entry)
		return
	}
	now := set.Replay(ctx, input.Expecting(facts), d.Reasons)
	switch {
	case now.Err != nil:
		r.Errors++
		r.Differ++
		entry.Error = orNull(now.Err.Error())
	case now.Kept():
		r.Differ++
		entry.Now = reasonList(now.Reasons)
	case now.OtherReasons:
		r.OtherReasons++
		return
	default:
		r.Same++
		return
	}
	r.list(entry)
}

func (r *replay) list(entry redecided) {
	if len(r.Deletions) < differingMax {
		r.Deletions = append(r.Deletions, entry)
	}
}

func reasonList(reasons []tier.Reason) api.List[api.Reason] {
	var out api.List[api.Reason]
	for _, r := range reasons {
		out = append(out, api.ReasonOf(r, false))
	}
	return out
}

func printReplay(p *page, r *replay) {
	for _, d := range r.Deletions {
		p.line("record %d: %s of %s %s (%s) at %s", d.Seq, d.Action, d.Log,
			tier.Range{Base: d.Base, Next: d.Next}, humanBytes(d.Bytes), tier.Time(d.At))
		for _, x := range d.Then {
			p.line("  then  %s", recorded(x))
		}
		for _, x := range d.Now {
			p.line("  now   %s", recorded(x))
		}
		if d.Error != nil {
			p.alarm("! now   %s", *d.Error)
		}
	}
	if n := r.Differ + r.NotReplayed - int64(len(r.Deletions)); n > 0 {
		p.line("and %d more", n)
	}
	p.line("%s: %d would go now for the same reasons, %d for other ones, %d would stay, "+
		"%d cannot be asked about", tier.Count(r.Records, "deletion"),
		r.Same, r.OtherReasons, r.Differ, r.NotReplayed)
}

// recorded gives code, text and rule of a reason; when it was due is past.
func recorded(r api.Reason) string {
	r.Until = 0
	return humanReason(0, r)
}
