package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/exec"
	"github.com/tierd/tierd/runtime/tier"
)

// planCopiesMax bounds the list of copies in a plan.
const planCopiesMax = 1000

// Plan implements api.Backend: what would go now, in both tiers, asked as the deletions themselves
// would be; and what waits, for what, and until when.
func (d *Daemon) Plan(ctx context.Context) (*api.Plan, error) {
	return answered(ctx, d.planNow)
}

func (d *Daemon) planNow(ctx context.Context) (*api.Plan, error) {
	p := &api.Plan{At: api.Time(d.now()), PolicyDigest: d.gen.Load().policies.Digest()}
	err := d.plan(ctx, []exec.Question{{}}, func(id tier.LogID, asked [][]exec.Planned) {
		for _, a := range asked[0] {
			planned(p, id, a)
		}
	}, p)
	d.planCopies(p)
	p.Digest = digestOf(p)
	// A file that is wrong lets nothing go; that it is wrong is for "check" and "reload" to say.
	if g, err := d.loadGeneration(d.gen.Load().number + 1); err == nil {
		p.Disablement = d.disablement(g)
	}
	return p, err
}

// plan asks the questions about every log, and hands the answers on in the order of the questions.
// What is not asked about is added to each of the plans.
func (d *Daemon) plan(ctx context.Context, questions []exec.Question,
	each func(tier.LogID, [][]exec.Planned), plans ...*api.Plan) error {
	orphans, err := d.exec.FindOrphans(ctx)
	if err != nil {
		if broken := d.ledger.Err(); broken != nil {
			return broken
		}
		await(plans, tier.LogID{}, tier.DeleteOrphan, tier.Range{}, tier.Reason{
			Code: tier.CodeStoreError, Text: fmt.Sprintf("what nothing names was not found: %v", err)})
		orphans = &exec.Orphans{}
	}
	stale := orphans.Stale()
	if stale != nil {
		await(plans, tier.LogID{}, tier.DeleteOrphan, tier.Range{}, *stale)
		orphans = &exec.Orphans{}
	}
	d.mu.Lock()
	ids := d.engine.Logs()
	d.mu.Unlock()
	ids = append(ids, orphans.Logs()...) // of some of them the ledger may know nothing
	slices.SortFunc(ids, tier.LogID.Compare)
	for _, id := range slices.Compact(ids) {
		asked, err := d.planLog(ctx, id, questions, plans)
		if err == nil {
			asked, err = d.planOrphans(ctx, id, orphans, questions, asked, plans)
		}
		if err != nil {
			return err
		}
		if stale != nil {
			for i := range asked {
				asked[i] = slices.DeleteFunc(asked[i], final)
			}
		}
		each(id, asked)
	}
	return nil
}

// final reports whether something leaves no copy. While the ledger is older than the store nothing
// of the kind goes.
func final(a exec.Planned) bool { return a.Verdict.Delete && a.Action != tier.DeleteLocal }

// planLog asks about the segments and the copies of a log.
func (d *Daemon) planLog(ctx context.Context, id tier.LogID, questions []exec.Question,
	plans []*api.Plan) ([][]exec.Planned, error) {
	d.mu.Lock()
	local, remote, ok := d.engine.Plan(id)
	removals, waiting := d.engine.PlanRemove(id, d.now())
	view, _ := d.engine.Log(id)
	kept, why := d.engine.KeptByPlugin(id)
	d.mu.Unlock()
	if !ok {
		for _, r := range append(view.Alarms, view.Waiting...) {
			await(plans, id, tier.DeleteLocal, tier.Range{}, r)
		}
		return make([][]exec.Planned, len(questions)), nil
	}
	if why := view.Blocked; why != nil && view.Local.Segments > 0 && why.Code != tier.CodeCompacted {
		await(plans, id, tier.DeleteLocal, tier.Range{}, *why)
	}
	if why := view.Frozen; why != nil { // there are no settings to ask about
		if view.Remote.Segments > 0 || len(removals) > 0 || len(waiting) > 0 {
			await(plans, id, tier.DeleteRemote, tier.Range{}, *why)
		}
		return make([][]exec.Planned, len(questions)), nil
	}
	asked, err := d.exec.PlanLocal(ctx, local, questions...)
	if err != nil {
		return nil, err
	}
	// What a plugin keeps is said where nothing before it stays anyway.
	stays := func(a exec.Planned) bool { return !a.Verdict.Delete }
	if why != nil && !slices.ContainsFunc(asked[0], stays) {
		await(plans, id, tier.DeleteLocal, kept, *why)
	}
	fromStore, err := d.exec.PlanRemote(ctx, remote, questions...)
	if err != nil {
		return nil, err
	}
	join(asked, fromStore)
	for _, f := range removals {
		removed, err := d.exec.PlanRemove(ctx, f, questions...)
		if err != nil {
			return nil, err
		}
		join(asked, removed)
	}
	for _, w := range waiting {
		await(plans, id, w.Action, w.Range, w.Reason)
	}
	return asked, nil
}

// planOrphansMax bounds how many orphans of a log are asked about.
const planOrphansMax = 10_000

// planOrphans asks about what nothing names, and about what abandoned attempts have left.
func (d *Daemon) planOrphans(ctx context.Context, id tier.LogID, orphans *exec.Orphans,
	questions []exec.Question, asked [][]exec.Planned, plans []*api.Plan) ([][]exec.Planned, error) {
	list, later := d.exec.PlanOrphans(ctx, orphans, id, planOrphansMax, questions...)
	join(asked, list)
	if later.Young > 0 {
		await(plans, id, tier.DeleteOrphan, tier.Range{}, tier.Reason{Code: tier.CodeGrace,
			Until: later.Until, Text: fmt.Sprintf("younger than limits.orphan_age: %s that nothing names",
				tier.Count(later.Young, "object"))})
	}
	if later.More > 0 {
		await(plans, id, tier.DeleteOrphan, tier.Range{}, tier.Reason{Code: tier.CodePrefixBlocked,
			Text: fmt.Sprintf("not asked about before the others are gone: %s that nothing names",
				tier.Count(later.More, "more object"))})
	}
	d.mu.Lock()
	attempts := d.engine.Abandoned(id)
	d.mu.Unlock()
	now := d.now()
	young := slices.IndexFunc(attempts, func(a engine.AbandonedAttempt) bool { return a.Due > now })
	if young >= 0 { // they ascend
		await(plans, id, tier.DeleteOrphan, tier.Range{}, tier.Reason{Code: tier.CodeGrace,
			Until: attempts[len(attempts)-1].Due, Text: fmt.Sprintf("what %s to copy may have left is "+
				"looked for after limits.orphan_age", tier.Count(len(attempts)-young, "abandoned attempt"))})
		attempts = attempts[:young]
	}
	left, err := d.exec.PlanClear(ctx, id, attempts, questions...)
	if err == nil {
		join(asked, left)
	}
	return asked, err
}

// join appends the answers to each question.
func join(asked, more [][]exec.Planned) {
	for i := range asked {
		asked[i] = append(asked[i], more[i]...)
	}
}

// await adds to each plan what waits.
func await(plans []*api.Plan, id tier.LogID, a tier.Action, r tier.Range, why tier.Reason) {
	for _, p := range plans {
		p.Waiting = append(p.Waiting, waits(id, a, r, why))
	}
}

// planCopies adds what is copied next, in the order in which it will be.
func (d *Daemon) planCopies(p *api.Plan) {
	d.mu.Lock()
	copies := d.engine.PlanCopies(planCopiesMax)
	d.mu.Unlock()
	p.CopiesTotal = api.CopiesTotal{Segments: copies.Total.Segments, Bytes: copies.Total.Bytes}
	for _, c := range copies.List {
		x := api.PlannedCopy{Log: c.Log.String(), Base: c.Base, Next: c.Next, Bytes: c.Bytes,
			Copying: c.Copying}
		for i, name := range c.Plugins {
			x.Scores = append(x.Scores, api.Score{Plugin: name, Score: c.Scores[i]})
		}
		p.Copies = append(p.Copies, x)
	}
	for _, h := range copies.Held {
		p.Held = append(p.Held, api.HeldCopy{Log: h.Log.String(), Base: h.Base, Next: h.Next,
			Reason: api.ReasonOf(h.Reason, false)})
	}
	for _, why := range d.pluginReasons() {
		p.PluginFaults = append(p.PluginFaults, api.ReasonOf(why, true))
	}
}

// planned adds one answer of the gate: a deletion, or what waits.
func planned(p *api.Plan, id tier.LogID, a exec.Planned) {
	if !a.Verdict.Delete {
		for _, r := range a.Verdict.Reasons {
			if r.Until == 0 {
				r.Until = a.Verdict.Due
			}
			p.Waiting = append(p.Waiting, waits(id, a.Action, a.Range, r))
		}
		return
	}
	p.Deletions = append(p.Deletions, deletion(id, a, a.Verdict.Reasons))
	total(p, id.Table, a.Action, 1, a.Bytes)
}

func waits(id tier.LogID, a tier.Action, r tier.Range, why tier.Reason) api.PlannedWait {
	w := api.PlannedWait{Action: a, Base: r.Base, Next: r.Next, Reason: api.ReasonOf(why, false)}
	if id != (tier.LogID{}) {
		w.Log = id.String()
	}
	return w
}

func total(p *api.Plan, table string, a tier.Action, segments, bytes int64) {
	for i := len(p.Totals) - 1; i >= 0 && p.Totals[i].Table == table; i-- { // logs come by table
		if t := &p.Totals[i]; t.Action == a {
			t.Segments += segments
			t.Bytes += bytes
			return
		}
	}
	p.Totals = append(p.Totals, api.PlannedTotal{Table: table, Action: a, Segments: segments,
		Bytes: bytes})
}

// digestOf names what would be deleted, whenever it is asked: two plans with the same deletions
// have the same digest.
func digestOf(p *api.Plan) string {
	type line struct {
		Log        string
		Action     tier.Action
		Base, Next tier.Offset
		Bytes      int64
		Object     *string `json:",omitempty"`
	}
	lines := make([]line, len(p.Deletions))
	for i, x := range p.Deletions {
		lines[i] = line{x.Log, x.Action, x.Base, x.Next, x.Bytes, x.Object}
	}
	text, err := json.Marshal(lines)
	if err != nil {
		panic(err) // strings and numbers
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
