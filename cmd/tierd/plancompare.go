package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/tier"
)

// question is what --policy, --data and --at ask; nil where there is none of them.
func (c *planCmd) question(a *app) (*api.WhatIf, error) {
	switch {
	case len(c.Policies) == 0 && len(c.Data) > 0:
		return nil, usagef("--data goes with --policy; the configuration's data stands in " +
			"policies.data")
	case len(c.Policies) == 0 && c.At == nil:
		return nil, nil
	}
	q := &api.WhatIf{}
	if c.At != nil {
		at, err := parseAt(*c.At, tier.Time(a.now()))
		if err != nil {
			return nil, err
		}
		q.At = api.Time(at)
	}
	if len(c.Policies) == 0 {
		return q, nil
	}
	named := askedPolicies{Policies: c.Policies, Data: c.Data}
	s, err := named.read(a)
	if err != nil {
		return nil, err
	}
	q.Policies = &api.Policies{Data: s.data}
	for _, m := range s.modules {
		q.Policies.Modules = append(q.Policies.Modules,
			api.PolicyModule{Path: m.Path, Source: string(m.Source)})
	}
	return q, nil
}

// parseAt reads an instant, a date or a duration from now. It must not lie before now.
func parseAt(s string, now tier.Time) (tier.Time, error) {
	d, err := config.ParseDuration(s)
	switch at := now.Add(d); {
	case errors.Is(err, config.ErrTooLong):
		return 0, usagef("--at %q: %v", s, err)
	case err == nil && at < now:
		return 0, usagef("--at %q: %v", s, tier.ErrOutOfTime)
	case err == nil:
		return at, nil
	}
	switch at, is, err := parseInstant(s); {
	case !is:
		return 0, usagef("--at %q: want an instant such as 2027-01-01T12:00:00Z, a date such as "+
			"2027-01-01, or a duration such as 7d", s)
	case err != nil:
		return 0, usagef("--at %q: %v", s, err)
	case at < now:
		return 0, usagef("--at %q: that is over; it is %s", s, now)
	default:
		return at, nil
	}
}

// parseInstant reads an instant as in RFC 3339, or a date; is tells whether the text is one.
func parseInstant(s string) (at tier.Time, is bool, err error) {
	if _, err := time.Parse(time.DateOnly, s); err == nil {
		s += "T00:00:00Z"
	}
	if at, err = tier.ParseTime(s); errors.As(err, new(*time.ParseError)) {
		return 0, false, nil
	}
	return at, true, err
}

// compare asks and prints the difference from today.
func (c *planCmd) compare(a *app, b api.Backend, q *api.WhatIf) error {
	plan, err := b.Compare(a.ctx, q)
	if err != nil {
		return err
	}
	if err := c.save(plan); err != nil {
		return err
	}
	if err := c.print(a, plan, func(p *page) { printComparison(p, a.now(), plan) }); err != nil {
		return err
	}
	if c.DetailedExitcode && len(plan.Against.Differences) > 0 {
		return errChanges
	}
	return nil
}

func printComparison(p *page, now api.Time, plan *api.Plan) {
	x := plan.Against
	if len(x.Differences) == 0 {
		p.line("no difference: %s", howMuch(plan.Totals))
	}
	rows := append(planned("+", x.More), planned("-", x.Less)...)
	if len(rows) > 0 {
		p.table("LOG\tACTION\tBASE\tNEXT\tSIZE\tWHY", rows)
	}
	for _, d := range x.Differences {
		if d.MoreSegments > 0 {
			p.line("%s: %s of %s (%s)", d.Table, d.Action, tier.Count(d.MoreSegments, "more segment"),
				humanBytes(d.MoreBytes))
			printRules(p, d.Rules, api.Delete)
		}
		if d.LessSegments > 0 {
			p.line("%s: %s of %s (%s)", d.Table, d.Action, tier.Count(d.LessSegments, "fewer segment"),
				humanBytes(d.LessBytes))
			printRules(p, d.Rules, api.Keep)
		}
	}
	for _, w := range plan.Waiting {
		reasons(p, now, awaiting(w), []api.Reason{w.Reason})
	}
	p.line("today  %s, policies %.12s: %s", tier.Time(x.At), x.PolicyDigest, howMuch(x.Totals))
	p.line("then   %s, policies %.12s: %s", tier.Time(plan.At), plan.PolicyDigest,
		howMuch(plan.Totals))
}

func printRules(p *page, rules []api.PlannedRule, v api.Verdict) {
	for _, r := range rules {
		if r.Verdict != v {
			continue
		}
		by := humanRule(api.Reason{Rule: r.Rule, Title: r.Title})
		if by != "" {
			by = " (" + by + ")"
		}
		p.line("  %s: %s %s (%s)%s", r.Code, verb[v], tier.Count(r.Segments, "segment"),
			humanBytes(r.Bytes), by)
	}
}

// verb says what a rule does with a segment.
var verb = map[api.Verdict]string{api.Delete: "lets go", api.Keep: "keeps"}

// howMuch sums up a plan.
func howMuch(totals []api.PlannedTotal) string {
	segments, bytes := int64(0), int64(0)
	for _, t := range totals {
		segments += t.Segments
		bytes += t.Bytes
	}
	return fmt.Sprintf("%s (%s) would go", tier.Count(segments, "segment"), humanBytes(bytes))
}
