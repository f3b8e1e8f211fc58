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
	a, at, err := x.c.Ledger.Abandoned(f.Log, f.Position)
	if errors.Is(err, ErrVanished) {
		return engine.Done{}, nil
	}
	if err != nil {
		return nil, fatal(err)
	}
	g := x.c.Generation()
	old := tier.TruthOf(x.c.Now() >= at+g.OrphanAge)
	var manifest knowledge
	for _, name := range a.Names {
		object, err := x.c.Store.FileKey(a.Object(f.Log, name))
		if err == nil {
			_, err = x.c.Store.Size(ctx, object)
		}
		if errors.Is(err, ErrVanished) {
			continue
		}
		if err != nil {
			return engine.Failed{Reason: classify(err, tier.CodeStoreError)}, nil
		}
		kept, err := x.removeOrphan(ctx, g, f.Log, object, manifest.of(ctx, x, f.Log), tier.Yes, old)
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

// orphanFacts are what guard and policies may know of an object that nothing names.
func (x *Executor) orphanFacts(ctx context.Context, g *Generation, log tier.LogID, object string,
	knows, unnamed, old tier.Truth) *gate.Facts {
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
	r.LedgerKnows, r.Unnamed, r.OldEnough = knows, unnamed, old
	x.pauseFacts(g, facts, governed)
	return facts
}

// removeOrphan asks about one object that nothing names, and removes it.
func (x *Executor) removeOrphan(ctx context.Context, g *Generation, log tier.LogID, object string,
	knows, unnamed, old tier.Truth) (*engine.KeptRemote, error) {
	facts := x.orphanFacts(ctx, g, log, object, knows, unnamed, old)
	permit, v := g.Gate.Ask(ctx, facts)
	if !v.Delete {
		return &engine.KeptRemote{Reasons: v.Reasons, Due: v.Due}, nil
	}
	return x.deleteObjects(ctx, g, facts, v, tier.Deletion{},
		func(ctx context.Context) error {
			if err := x.stopped(ctx, g, log.Table); err != nil {
				return err
			}
			return x.c.Store.DeleteObject(ctx, permit, facts.Target())
		})
}

// found is what a listing of the store shows that nothing names.
type found struct {
	orphans []tier.StoredObject
	stale   *tier.Reason // something that the ledger never wrote: it is an older one
	now     tier.Time    // once all was listed
	young   bool         // the ledger was rebuilt not long ago
}

// findOrphans looks at every object under the ledger's id for those that nothing names: no copy,
// attempt or tombstone the files of an attempt or its manifest entry, and no checkpoint that a
// later one does not stand for.
func (x *Executor) findOrphans(ctx context.Context, g *Generation) (out found, err error) {
	err = x.c.Store.Objects(ctx, func(o tier.StoredObject) error {
		state, known := x.c.Ledger.Log(o.Log)
		if out.stale == nil {
			out.stale = newer(o, state, known)
		}
		live, err := x.live(o, state, known)
		if err == nil && !live {
			out.orphans = append(out.orphans, o)
		}
		return err
	})
	out.now = x.c.Now()
	// What a rebuilt ledger does not name may be what the old one did: somebody has time to look.
	rebuilt := x.c.Ledger.Rebuilt()
	out.young = rebuilt != 0 && out.now-rebuilt <= g.OrphanAge
	return out, err
}

// olderLedger says what to do about a ledger that the manifests know more than.
const olderLedger = "the ledger is an older one; stop tierd, and make a new one of what the " +
	"store has: tierd rebuild --replace"

// newer says why the object is one that this ledger cannot have written: it is an older one then.
// A log is opened before anything of it is stored, and a rebuild opens all that the store has.
func newer(o tier.StoredObject, s tier.LogState, known bool) *tier.Reason {
	text := ""
	switch {
	case !known:
		text = "%s is of a log that the ledger never opened: " + olderLedger
	case o.Entry && o.Position >= s.Next:
		text = "%s is at a position that the ledger never handed out: " + olderLedger
	default:
		return nil
	}
	return &tier.Reason{Code: tier.CodeLedgerStale, Text: fmt.Sprintf(text, o.Key)}
}

// old tells whether an orphan is old enough to go.
func (f *found) old(g *Generation, o *tier.StoredObject) tier.Truth {
	return tier.TruthOf(o.Modified > 0 && f.now-o.Modified > g.OrphanAge && !f.young)
}

// sweep removes what nothing names, and what probes left behind. Before, it looks again how
// deletions ended that a crash interrupted. Durable sub-steps for each: audit record, DELETE, audit
// outcome; of a probe's object the DELETE alone.
func (x *Executor) sweep(ctx context.Context) (engine.Result, error) {
	if err := x.resolveAllLeft(ctx); err != nil {
		return nil, err
	}
	g := x.c.Generation()
	found, err := x.findOrphans(ctx, g)
	if err != nil {
		if broken := x.c.Ledger.Err(); broken != nil {
			return nil, fatal(broken)
		}
		return engine.Failed{Reason: classify(err, tier.CodeStoreError)}, nil
	}
	done := engine.Swept{Stale: found.stale}
	if done.Stale != nil {
		done.Kept = int64(len(found.orphans))
		return done, nil
	}
	if g.Paused() == nil {
		n, err := x.c.Store.ForgetProbes(ctx, found.now-g.OrphanAge)
		if done.Objects += n; err != nil {
			return engine.Failed{Reason: classify(err, tier.CodeStoreError)}, nil
		}
	}
	var manifests knowledge
	for i := range found.orphans {
		o := &found.orphans[i]
		old := found.old(g, o)
		if old != tier.Yes {
			done.Kept++
			continue
		}
		// Between the listing and now it may have got a name.
		state, known := x.c.Ledger.Log(o.Log)
		live, err := x.live(*o, state, known)
		if err != nil {
			return nil, fatal(err)
		}
		kept, err := x.removeOrphan(ctx, g, o.Log, o.Key, manifests.of(ctx, x, o.Log),
			tier.TruthOf(!live), old)
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

// knowledge remembers of one log whether the ledger knows all of its manifest. A listing is ordered
// by log, and a log may have very many orphans: its manifest is listed again once for all of them.
type knowledge struct {
	log    tier.LogID
	knows  tier.Truth
	listed bool
}

func (k *knowledge) of(ctx context.Context, x *Executor, log tier.LogID) tier.Truth {
	if !k.listed || k.log != log {
		state, _ := x.c.Ledger.Log(log)
		k.log, k.listed = log, true
		k.knows, _ = x.ledgerKnows(ctx, log, state)
	}
	return k.knows
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
