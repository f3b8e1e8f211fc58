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
	d.mu.Lock()
	ids := d.engine.Logs()
	d.mu.Unlock()
	for _, id := range ids {
		if err := d.planLog(ctx, id, questions, each, plans); err != nil {
			return err
		}
	}
	return nil
}

func (d *Daemon) planLog(ctx context.Context, id tier.LogID, questions []exec.Question,
	each func(tier.LogID, [][]exec.Planned), plans []*api.Plan) error {
	d.mu.Lock()
	local, remote, ok := d.engine.Plan(id)
	removal, leaving, due := d.engine.PlanRemove(id, d.now())
	view, _ := d.engine.Log(id)
	kept, why := d.engine.KeptByPlugin(id)
	d.mu.Unlock()
	if !ok {
		for _, r := range append(view.Alarms, view.Waiting...) {
			for _, p := range plans {
				p.Waiting = append(p.Waiting, waits(id, tier.DeleteLocal, tier.Range{}, r))
			}
		}
		return nil
	}
	asked, err := d.exec.PlanLocal(ctx, local, questions...)
	if err != nil {
		return err
	}
	fromStore, err := d.exec.PlanRemote(ctx, remote, questions...)
	if err != nil {
		return err
	}
	// What a plugin keeps is said where nothing before it stays anyway.
	stays := func(a exec.Planned) bool { return !a.Verdict.Delete }
	keptAlready := slices.ContainsFunc(asked[0], stays)
	removed, err := d.exec.PlanRemove(ctx, removal, questions...)
	if err != nil {
		return err
	}
	for i := range asked {
		asked[i] = append(append(asked[i], fromStore[i]...), removed[i]...)
	}
	each(id, asked)
	for _, p := range plans {
		if why != nil && !keptAlready {
			p.Waiting = append(p.Waiting, waits(id, tier.DeleteLocal, kept, *why))
		}
		if leaving.Segments > 0 {
			planRemoval(p, id, removal.Action, leaving, due)
		}
	}
	return nil
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

// planRemoval adds the copies that left the log and wait for the end of their grace.
func planRemoval(p *api.Plan, id tier.LogID, a tier.Action, x engine.Extent, due tier.Time) {
	p.Waiting = append(p.Waiting, waits(id, a, x.Range, tier.Reason{Code: tier.CodeGrace,
		Until: due, Text: fmt.Sprintf("%d copies (%d bytes) have left the log; their objects go "+
			"after the grace", x.Segments, x.Bytes)}))
}

func waits(id tier.LogID, a tier.Action, r tier.Range, why tier.Reason) api.PlannedWait {
	return api.PlannedWait{Log: id.String(), Action: a, Base: r.Base, Next: r.Next,
		Reason: api.ReasonOf(why, false)}
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
	}
	lines := make([]line, len(p.Deletions))
	for i, x := range p.Deletions {
		lines[i] = line{x.Log, x.Action, x.Base, x.Next, x.Bytes}
	}
	text, err := json.Marshal(lines)
	if err != nil {
		panic(err) // strings and numbers
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
