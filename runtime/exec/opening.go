package exec

import (
	"context"
	"errors"
	"fmt"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// open makes the ledger know a log, from where it begins now. Durable sub-step: LogOpened.
func (x *Executor) open(ctx context.Context, f engine.Open) (engine.Result, error) {
	start, err := x.begins(ctx, f.Source, f.Log, f.Start)
	if err != nil {
		return engine.Failed{Reason: classify(err, tier.CodeSourceUnread)}, nil
	}
	_, err = x.decide(ctx, tier.LogOpened{Log: f.Log, Source: f.Source, Layout: f.Layout,
		Incarnation: f.Incarnation, Epoch: x.epoch(f.Log), Start: start, State: f.State,
		At: x.c.Now()})
	if errors.Is(err, ErrRefused) {
		return failure(tier.CodeIncarnation, "%v", err), nil
	}
	if err != nil {
		return nil, fatal(err)
	}
	if err := x.governNew(ctx, f.Log.Table); err != nil {
		return nil, err
	}
	return x.opened(f.Log)
}

// opened tells of a log that was opened just now, or whose epoch was.
func (x *Executor) opened(log tier.LogID) (engine.Result, error) {
	state, ok := x.c.Ledger.Log(log)
	if !ok {
		return nil, fmt.Errorf("ledger: %s is not there after it was opened", log)
	}
	return engine.Opened{State: state, Table: x.c.Ledger.Table(log.Table)}, nil
}

// openEpoch brings a log into its table's tier epoch; where nothing older counts in it, from where
// the log begins now. Durable sub-step: EpochOpened. The manifest entry that it may take follows as
// a Publish.
func (x *Executor) openEpoch(ctx context.Context, f engine.OpenEpoch) (engine.Result, error) {
	start := f.Start
	if f.Fresh {
		var err error
		if start, err = x.begins(ctx, f.Source, f.Log, f.Start); err != nil {
			return engine.Failed{Reason: classify(err, tier.CodeSourceUnread)}, nil
		}
	}
	if why := x.MayRecord(ctx, f.Log); why != nil {
		return engine.Failed{Reason: *why}, nil
	}
	_, err := x.decide(ctx, tier.EpochOpened{Log: f.Log, Epoch: f.Epoch, Fresh: f.Fresh,
		Start: start, At: x.c.Now()})
	if errors.Is(err, ErrRefused) {
		if s, _ := x.c.Ledger.Log(f.Log); s.Epoch == f.Epoch {
			return x.opened(f.Log) // by an earlier call that was given up
		}
		return failure(tier.CodeTierEpoch, "%v", err), nil
	}
	if err != nil {
		return nil, fatal(err)
	}
	return x.opened(f.Log)
}

// begins is where the log begins now: at scanned, where it began when the engine saw it, or lower,
// where its owner has brought a segment back since. What lies below the start of a log is neither
// copied nor missed, so nothing that is there may be left out.
func (x *Executor) begins(ctx context.Context, source string, log tier.LogID,
	scanned tier.Offset) (tier.Offset, error) {
	src, err := x.source(source)
	if err != nil {
		return 0, err
	}
	scan, whole, err := src.Look(ctx, log)
	if err != nil {
		return 0, err
	}
	if !whole {
		return 0, fmt.Errorf("%s: not everything could be read", log)
	}
	if len(scan.Segments) > 0 {
		return min(scanned, scan.Segments[0].Base), nil
	}
	return scanned, nil
}
