package daemon

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/exec"
	"github.com/tierd/tierd/runtime/tier"
)

// askedLate is how long ago the moment of a question may lie: it was not over when it was asked.
const askedLate = time.Minute

// Compare implements api.Backend. Both plans are asked on the same facts, gathered now: files,
// objects and the user's facts are taken to be then what they are now, and what is written or
// copied until then is not foreseen: what is to be copied is what is to be copied now.
func (d *Daemon) Compare(ctx context.Context, q *api.WhatIf) (*api.Plan, error) {
	return answered(ctx, func(ctx context.Context) (*api.Plan, error) { return d.compare(ctx, q) })
}

func (d *Daemon) compare(ctx context.Context, q *api.WhatIf) (*api.Plan, error) {
	now := d.now()
	if q.At != 0 && tier.Time(q.At) < now-tier.Time(askedLate) {
		return nil, api.Errorf(api.CodeInvalid, "at %s: want a moment that is not over; it is %s",
			tier.Time(q.At), now)
	}
	g := d.gen.Load()
	set, err := g.instead(q.Policies, d.evaluations)
	if err != nil {
		return nil, api.Errorf(api.CodeConfig, "%v", err)
	}
	today := &api.Plan{At: api.Time(now), PolicyDigest: g.policies.Digest()}
	then := &api.Plan{At: max(q.At, today.At), PolicyDigest: set.Digest()}
	c := &comparison{Comparison: &api.Comparison{}, today: today, then: then}
	questions := []exec.Question{{Gate: g.exec.Gate, At: now},
		{Gate: gate.New(set), At: tier.Time(then.At)}}
	err = d.plan(ctx, questions, func(id tier.LogID, asked [][]exec.Planned) {
		for _, a := range asked[0] {
			planned(today, id, a)
		}
		for _, a := range asked[1] {
			planned(then, id, a)
		}
		c.add(id, asked[0], asked[1])
	}, today, then)
	if err != nil {
		return nil, err
	}
	d.planCopies(then)
	today.Digest, then.Digest = digestOf(today), digestOf(then)
	c.At, c.PolicyDigest = today.At, today.PolicyDigest
	c.Digest, c.Totals = today.Digest, today.Totals
	then.Against = c.Comparison
	return then, nil
}

// instead compiles policies in the place of those of the generation; nil leaves these.
func (g *generation) instead(p *api.Policies, w *rego.Watch) (*rego.Set, error) {
	if p == nil {
		return g.policies, nil
	}
	modules := make([]rego.Module, len(p.Modules))
	for i, m := range p.Modules {
		modules[i] = rego.Module{Path: m.Path, Source: []byte(m.Source)}
	}
	opts := PolicyOptions(g.config)
	opts.Watch = w
	return rego.Load(modules, p.Data, opts)
}

// comparison collects how two plans differ.
type comparison struct {
	*api.Comparison
	today, then *api.Plan
}

// add compares what two questions were answered about one log. Of each tier the answers are a
// prefix of the log, so the longer list has all that the other one has. What was asked about by
// itself is in both, in the same order.
func (c *comparison) add(id tier.LogID, today, then []exec.Planned) {
	together := func(a exec.Planned) bool { return !a.Alone }
	alone := func(a exec.Planned) bool { return a.Alone }
	before := slices.DeleteFunc(slices.Clone(today), together)
	for i, a := range slices.DeleteFunc(slices.Clone(then), together) {
		switch {
		case a.Verdict.Delete && !before[i].Verdict.Delete:
			c.more(id, a)
		case !a.Verdict.Delete && before[i].Verdict.Delete:
			c.less(id, before[i], a)
		}
	}
	today = slices.DeleteFunc(slices.Clone(today), alone)
	then = slices.DeleteFunc(slices.Clone(then), alone)
	for _, action := range []tier.Action{tier.DeleteLocal, tier.DeleteRemote} {
		before, after := of(today, action), of(then, action)
		goesBefore, goesAfter := prefix(before), prefix(after)
		for _, a := range after[min(goesBefore, goesAfter):goesAfter] {
			c.more(id, a)
		}
		if goesAfter >= goesBefore {
			continue
		}
		stays := after[goesAfter]
		for _, a := range before[goesAfter:goesBefore] {
			c.less(id, a, stays)
		}
	}
}

// of gives the answers about one action.
func of(list []exec.Planned, action tier.Action) []exec.Planned {
	return slices.DeleteFunc(slices.Clone(list), func(a exec.Planned) bool {
		return a.Action != action
	})
}

// prefix counts what goes: all answers but perhaps the last.
func prefix(list []exec.Planned) int {
	if n := len(list); n > 0 && !list[n-1].Verdict.Delete {
		return n - 1
	}
	return len(list)
}

func (c *comparison) more(id tier.LogID, a exec.Planned) {
	c.More = append(c.More, deletion(id, a, a.Verdict.Reasons))
	d := c.difference(id.Table, a.Action)
	d.MoreSegments++
	d.MoreBytes += a.Bytes
	blame(d, api.Delete, a.Bytes, a.Verdict.Reasons)
}

// less adds a segment that would go today. stays is the one of its log and tier that stays then:
// the very one, or one before it, so that it must stay too.
func (c *comparison) less(id tier.LogID, a, stays exec.Planned) {
	reasons := slices.Clone(stays.Verdict.Reasons)
	if a.Range != stays.Range {
		for i := range reasons {
			reasons[i].Text = fmt.Sprintf("behind %s, which stays: %s", stays.Range,
				reasons[i].Text)
		}
	}
	c.Less = append(c.Less, deletion(id, a, reasons))
	d := c.difference(id.Table, a.Action)
	d.LessSegments++
	d.LessBytes += a.Bytes
	blame(d, api.Keep, a.Bytes, reasons)
}

// deletion is a segment that would go, or stay, with why.
func deletion(id tier.LogID, a exec.Planned, why []tier.Reason) api.PlannedDeletion {
	x := api.PlannedDeletion{Log: id.String(), Action: a.Action, Base: a.Range.Base,
		Next: a.Range.Next, Bytes: a.Bytes}
	if a.Object != "" {
		x.Object = &a.Object
	}
	for _, r := range why {
		x.Reasons = append(x.Reasons, api.ReasonOf(r, false))
	}
	return x
}

// difference finds the entry of table and action, or makes it. Logs come by table, so that it is
// one of the last.
func (c *comparison) difference(table string, a tier.Action) *api.PlannedDifference {
	for i := len(c.Differences) - 1; i >= 0 && c.Differences[i].Table == table; i-- {
		if c.Differences[i].Action == a {
			return &c.Differences[i]
		}
	}
	c.Differences = append(c.Differences, api.PlannedDifference{Table: table, Action: a})
	return &c.Differences[len(c.Differences)-1]
}

// blame counts a segment at each rule that decides about it.
func blame(d *api.PlannedDifference, v api.Verdict, bytes int64, reasons []tier.Reason) {
	var seen []int
	for _, r := range reasons {
		rule := api.ReasonOf(r, false)
		same := func(x api.PlannedRule) bool {
			return x.Verdict == v && x.Code == rule.Code && text(x.Rule) == text(rule.Rule)
		}
		i := slices.IndexFunc(d.Rules, same)
		if i < 0 {
			i = len(d.Rules)
			d.Rules = append(d.Rules, api.PlannedRule{Verdict: v, Code: rule.Code, Rule: rule.Rule,
				Title: rule.Title})
		}
		if slices.Contains(seen, i) {
			continue // two reasons of one rule
		}
		seen = append(seen, i)
		d.Rules[i].Segments++
		d.Rules[i].Bytes += bytes
	}
}

// text is what a text that may be null says.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
