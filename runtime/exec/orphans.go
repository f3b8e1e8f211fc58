package exec

import (
	"context"
	"errors"
	"fmt"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/planted"
	"github.com/tierd/tierd/runtime/tier"
)

// clear removes what an abandoned attempt may have left after all, and then forgets it. Durable
// sub-steps: audit record, DELETE of each object, audit outcome, TombstoneCleared.
func (x *Executor) clear(ctx context.Context, f engine.Clear) (engine.Result, error) {
	a, err := x.c.Ledger.Abandoned(f.Log, f.Position)
	if errors.Is(err, ErrVanished) {
		return engine.Done{}, nil
	}
	if err != nil {
		return nil, fatal(err)
	}
	for _, name := range a.Names {
		key := objectKey(f.Log, a, name)
		err := x.c.Store.StatFile(ctx, key, 0)
		if errors.Is(err, ErrVanished) {
			continue
		}
		if err != nil && !errors.Is(err, ErrDamaged) { // damaged: it is there, with a size
			return engine.Failed{Reason: classify(err, tier.CodeStoreError)}, nil
		}
		object, err := x.c.Store.FileKey(key)
		if err != nil {
			return failure(tier.CodeStoreError, "%v", err), nil
		}
		kept, err := x.removeOrphan(ctx, x.c.Generation(), f.Log, object, tier.Yes, tier.Yes)
		if err != nil {
			return nil, err
		}
		if kept != nil && !kept.Failed {
			return engine.StaysAll{Kept: *kept}, nil
		}
		if kept != nil {
			return engine.Failed{Reason: kept.Reasons[0]}, nil
		}
	}
	_, err = x.append(ctx, tier.TombstoneCleared{Log: f.Log, Position: f.Position, At: x.c.Now()})
	if errors.Is(err, ErrRefused) {
		return failure(tier.CodeRetry, "%v", err), nil
	}
	return engine.Done{}, fatal(err)
}

// removeOrphan asks about one object that nothing names, and removes it.
func (x *Executor) removeOrphan(ctx context.Context, g *Generation, log tier.LogID, object string,
	unnamed, old tier.Truth) (*engine.KeptRemote, error) {
	durable := x.c.Ledger.Table(log.Table)
	table, governed := x.settings(g, durable, log.Table)
	state, _ := x.c.Ledger.Log(log)
	facts := &gate.Facts{Action: tier.DeleteOrphan, Now: x.c.Now(), Table: table, Node: g.Node(),
		Log: gate.LogFacts{ID: log, Layout: state.Layout, State: durable.State, Epoch: durable.Epoch,
			Copied: state.Copied, LogStart: state.LogStart},
		Seg: gate.SegmentFacts{Object: object},
		Safety: gate.SafetyFacts{Brake: g.Brake, ClockTolerance: g.Tolerance,
			DropWay: x.localDelete(state)}}
	g.extern(facts)
	r := &facts.Safety.Remote
	r.Clocks, r.Clock = g.Clocks(ctx)
	r.LedgerKnows, _ = x.ledgerKnows(ctx, log, state)
	r.Unnamed, r.OldEnough = unnamed, old
	x.pauseFacts(g, facts, governed)
	permit, v := g.Gate.Ask(ctx, facts)
	if !v.Delete {
		return &engine.KeptRemote{Reasons: v.Reasons, Due: v.Due}, nil
	}
	return x.deleteObjects(ctx, g, facts, v, tier.Deletion{},
		func(ctx context.Context) error {
			return x.c.Store.DeleteObject(ctx, permit, facts.Target())
		})
}

// sweep looks at every object under the ledger's id and removes those that nothing names: no copy,
// attempt or tombstone the files of an attempt or its manifest entry, and no checkpoint that a
// later one does not stand for. Before, it looks again how deletions ended that a crash
// interrupted. Durable sub-steps for each: audit record, DELETE, audit outcome.
func (x *Executor) sweep(ctx context.Context) (engine.Result, error) {
	if err := x.resolveAllLeft(ctx); err != nil {
		return nil, err
	}
	g := x.c.Generation()
	var done engine.Swept
	var orphans []tier.StoredObject
	err := x.c.Store.Objects(ctx, func(o tier.StoredObject) error {
		state, known := x.c.Ledger.Log(o.Log)
		if o.Entry && known && o.Position >= state.Next && done.Stale == nil {
			done.Stale = &tier.Reason{Code: tier.CodeLedgerStale, Text: fmt.Sprintf(
				"%s is at a position that the ledger never handed out: the ledger is an older one", o.Key)}
		}
		live, err := x.live(o, state, known)
		if err == nil && !live {
			orphans = append(orphans, o)
		}
		return err
	})
	if err != nil {
		if broken := x.c.Ledger.Err(); broken != nil {
			return nil, fatal(broken)
		}
		return engine.Failed{Reason: classify(err, tier.CodeStoreError)}, nil
	}
	if done.Stale != nil {
		done.Kept = int64(len(orphans))
		return done, nil
	}
	now := x.c.Now()
	// What a rebuilt ledger does not name may be what the old one did: somebody has time to look.
	young := x.c.Ledger.Rebuilt() != 0 && now-x.c.Ledger.Rebuilt() <= g.OrphanAge
	for _, o := range orphans {
		old := tier.TruthOf(o.Modified > 0 && now-o.Modified > g.OrphanAge && !young)
		if old != tier.Yes {
			done.Kept++
			continue
		}
		// Between the listing and now it may have got a name.
		state, known := x.c.Ledger.Log(o.Log)
		live, err := x.live(o, state, known)
		if err != nil {
			return nil, fatal(err)
		}
		kept, err := x.removeOrphan(ctx, g, o.Log, o.Key, tier.TruthOf(!live), old)
		if err != nil {
			return nil, err
		}
		if kept != nil {
			done.Kept++
			continue
		}
		done.Objects++
	}
	return done, nil
}

// live reports whether something names the object.
func (x *Executor) live(o tier.StoredObject, s tier.LogState, known bool) (bool, error) {
	switch {
	case !known:
		return false, nil // of a log that this ledger never had
	case o.Checkpoint:
		above := int(o.Level) // index of the level above
		return above >= len(s.Checkpoints) ||
			o.Block >= s.Checkpoints[above]*tier.CheckpointRadix, nil
	case o.Entry:
		// Also where a checkpoint stands for it: a local deletion is proved by the entry itself.
		if o.Attempt == (tier.AttemptID{}) {
			return true, nil // a start, a hole, an epoch: small, and part of the record
		}
	}
	if planted.Is(planted.ListingIsProof) {
		_, found, err := x.c.Store.NewestEntry(context.Background(), o.Log)
		return found, err
	}
	if planted.Is(planted.AttemptUnchecked) {
		return false, nil
	}
	return x.c.Ledger.Named(o.Attempt)
}
