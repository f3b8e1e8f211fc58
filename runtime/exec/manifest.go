package exec

import (
	"context"
	"errors"
	"slices"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// MayRecord says why nothing may take the log's next position in the manifest; nil if it may. It
// makes sure, once per log and process, that the manifest knows no more than the ledger. A ledger
// that was put back to an older state would hand positions out again. Once it had caught up,
// nothing would tell the copies that it forgot from orphans.
func (x *Executor) MayRecord(ctx context.Context, log tier.LogID) *tier.Reason {
	x.mu.Lock()
	seen := x.seen[log]
	x.mu.Unlock()
	if seen {
		return nil
	}
	state, _ := x.c.Ledger.Log(log)
	switch knows, why := x.ledgerKnows(ctx, log, state); knows {
	case tier.Yes:
		x.mu.Lock()
		x.seen[log] = true
		x.mu.Unlock()
		return nil
	case tier.No:
		return &tier.Reason{Code: tier.CodeLedgerStale, Text: why}
	default:
		return &tier.Reason{Code: tier.CodeStoreError, Text: why}
	}
}

// recordHole records offsets that the source no longer has, if a fresh look confirms it. Durable
// sub-steps: HoleRecorded, the manifest entry, Published.
func (x *Executor) recordHole(ctx context.Context, f engine.RecordHole) (engine.Result, error) {
	if done, err := x.recordedHole(f); done != nil || err != nil {
		return done, err
	}
	src, err := x.source(f.Source)
	if err != nil {
		return failure(tier.CodeSourceVanished, "%v", err), nil
	}
	scan, whole, err := src.Look(ctx, f.Log)
	if err != nil {
		return engine.Failed{Reason: classify(err, tier.CodeSourceUnread)}, nil
	}
	if !whole || len(scan.Segments) == 0 {
		return failure(tier.CodeSourceUnread, "%s: not everything could be read", f.Log), nil
	}
	for _, s := range scan.Segments {
		if s.Base == f.Before.Base && s.Log == f.Before.Log {
			s.Next = f.Before.Next
		}
		if s.Overlaps(f.Range) {
			return failure(tier.CodeRetry, "%s: %s is there after all", f.Log, s.Range), nil
		}
	}
	if why := x.MayRecord(ctx, f.Log); why != nil {
		return engine.Failed{Reason: *why}, nil
	}
	hole := tier.Hole{Range: f.Range, Cause: f.Cause, At: x.c.Now()}
	if x.c.Ledger.Table(f.Log.Table).Since <= x.c.Ledger.Rebuilt() {
		hole.Cause = tier.HoleSourceGone // the epoch is the rebuild's: tiering was not off
	}
	pos, err := x.decide(ctx, tier.HoleRecorded{Log: f.Log, Hole: hole})
	if errors.Is(err, ErrRefused) {
		if done, err := x.recordedHole(f); done != nil || err != nil {
			return done, err
		}
		return failure(tier.CodeRetry, "%v", err), nil
	}
	if err != nil {
		return nil, fatal(err)
	}
	state, _ := x.c.Ledger.Log(f.Log)
	done := engine.HoleDone{Hole: hole, Position: pos, Offset: state.Copied, Next: state.Next}
	if r, err := x.publishFact(ctx, f.Log, pos); err != nil {
		return nil, err
	} else if _, failed := r.(engine.Failed); !failed {
		done.Published = true
	}
	return done, nil
}

// recordedHole answers for a hole that is on record already; nil if it is not. An earlier call may
// have recorded it whose answer nobody waited for: then it is done, but perhaps not published.
func (x *Executor) recordedHole(f engine.RecordHole) (engine.Result, error) {
	state, _ := x.c.Ledger.Log(f.Log)
	i := slices.IndexFunc(state.Holes, func(h tier.Hole) bool { return h.Range == f.Range })
	if i < 0 {
		return nil, nil
	}
	done := engine.HoleDone{Hole: state.Holes[i], Offset: state.Copied, Next: state.Next,
		Published: true}
	for _, pos := range state.Unpublished {
		facts, err := x.c.Ledger.Facts(f.Log, pos, pos+1)
		if err != nil {
			return nil, fatal(err)
		}
		if len(facts) == 1 && facts[0].Hole != nil && facts[0].Hole.Range == f.Range {
			done.Position, done.Published = pos, false
		}
	}
	return done, nil
}

// publishFact puts the ledger's fact at pos into the manifest. It is idempotent: the fact's bytes
// depend on the ledger alone.
func (x *Executor) publishFact(ctx context.Context, log tier.LogID,
	pos tier.Position) (engine.Result, error) {
	if state, ok := x.c.Ledger.Log(log); ok && !slices.Contains(state.Unpublished, pos) {
		return engine.Done{}, nil // by an earlier call: what stands there well is not written over
	}
	facts, err := x.c.Ledger.Facts(log, pos, pos+1)
	if err != nil {
		return nil, fatal(err)
	}
	for _, fact := range facts {
		if err := x.c.Store.ProveFact(ctx, log, tier.AttemptID{}, fact); err != nil {
			return engine.Failed{Reason: classify(err, tier.CodeStoreError)}, nil
		}
	}
	if _, err := x.append(ctx, tier.Published{Log: log, Position: pos}); err != nil {
		return failure(tier.CodeRetry, "%v", err), fatal(err)
	}
	return engine.Done{}, nil
}

// checkpoint writes one block of the manifest as one object. Durable sub-steps: the PUT,
// Checkpointed.
func (x *Executor) checkpoint(ctx context.Context, f engine.Checkpoint) (engine.Result, error) {
	facts, err := x.blockFacts(f.Log, f.Level, f.Block)
	if err != nil {
		return nil, fatal(err)
	}
	if err := x.c.Store.PutCheckpoint(ctx, f.Log, f.Level, f.Block, facts); err != nil {
		return engine.Failed{Reason: classify(err, tier.CodeStoreError)}, nil
	}
	_, err = x.append(ctx, tier.Checkpointed{Log: f.Log, Level: f.Level, Block: f.Block})
	if err != nil {
		return failure(tier.CodeRetry, "%v", err), fatal(err)
	}
	return engine.Done{}, nil
}

// blockFacts are all that a checkpoint is to repeat.
func (x *Executor) blockFacts(log tier.LogID, level uint8, block uint64) ([]tier.Fact, error) {
	span := tier.CheckpointSpan(level)
	from := tier.Position(block * span)
	return x.c.Ledger.Facts(log, from, from+tier.Position(span))
}
