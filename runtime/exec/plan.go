package exec

import (
	"context"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// Planned is what the gate would answer for one segment now.
type Planned struct {
	Action  tier.Action
	Range   tier.Range
	Bytes   int64
	Verdict gate.Verdict
}

// PlanLocal asks what a deletion of the candidates would be asked, in order, each as if those
// before it were gone, up to the first that stays. It deletes nothing.
func (x *Executor) PlanLocal(ctx context.Context, f engine.Delete) ([]Planned, error) {
	src, err := x.source(f.Source)
	if err != nil {
		return nil, err
	}
	g := x.c.Generation()
	window := x.c.Ledger.Table(f.Log.Table).Window.At(x.c.Now(), g.Brake.Per)
	var out []Planned
	for i, c := range f.Segments {
		facts, _, err := x.facts(ctx, g, src, f, c)
		if err != nil {
			return nil, err
		}
		gone := map[tier.Offset]bool{}
		for _, p := range out {
			gone[p.Range.Base] = true
			facts.Log.LocalBytes -= p.Bytes
		}
		if i > 0 && facts.Safety.FirstLocal == tier.No {
			facts.Safety.FirstLocal = x.firstWithout(ctx, src, f.Log, gone, c.Segment.Base)
		}
		window = window.Plus(1, facts.Seg.Bytes)
		facts.Safety.Window = window
		v := g.Gate.Explain(ctx, facts)
		out = append(out, Planned{f.Action, facts.Seg.Range, facts.Seg.Bytes, v})
		if !v.Delete {
			break
		}
	}
	return out, nil
}

// firstWithout reports whether the segment would be the oldest if those in gone were not there.
func (x *Executor) firstWithout(ctx context.Context, src Source, log tier.LogID,
	gone map[tier.Offset]bool, base tier.Offset) tier.Truth {
	scan, whole, err := src.Look(ctx, log)
	if err != nil || !whole {
		return tier.Unknown
	}
	for _, s := range scan.Segments {
		if !gone[s.Base] {
			return tier.TruthOf(s.Base == base)
		}
	}
	return tier.No
}

// PlanRemote asks what an expiry of the remote candidates would be asked, in order, up to the first
// that stays. It moves nothing.
func (x *Executor) PlanRemote(ctx context.Context, f engine.Expire) ([]Planned, error) {
	state, _ := x.c.Ledger.Log(f.Log)
	knows, _ := x.ledgerKnows(ctx, f.Log, state)
	g := x.c.Generation()
	window := x.c.Ledger.Table(f.Log.Table).Window.At(x.c.Now(), g.Brake.Per)
	var out []Planned
	for _, c := range f.Segments {
		facts, _, err := x.remoteFacts(ctx, g, f.Log, tier.DeleteRemote, c, f.Remote)
		if err != nil {
			return nil, err
		}
		r := &facts.Safety.Remote
		r.Logical, r.Oldest, r.LedgerKnows = true, tier.Yes, knows
		window = window.Plus(1, facts.Seg.Bytes)
		facts.Safety.Window = window
		v := g.Gate.Explain(ctx, facts)
		out = append(out, Planned{tier.DeleteRemote, facts.Seg.Range, facts.Seg.Bytes, v})
		if !v.Delete {
			break
		}
		facts.Log.RemoteBytes -= facts.Seg.Bytes
	}
	return out, nil
}
