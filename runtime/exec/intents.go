package exec

import (
	"context"
	"errors"
	"fmt"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// ResolveIntents concludes the deletions that were announced and of which no outcome was written:
// the process ended in between. The segment is in place, or it is not; what cannot be looked at now
// is looked at again before anything else of its log is deleted. It is for the start, before the
// first decision. Durable sub-steps for each: LocalDeleted, the audit outcome.
func (x *Executor) ResolveIntents(ctx context.Context) error {
	for _, in := range x.c.Audit.OpenIntents() {
		ended, err := x.resolveIntent(ctx, in)
		if err != nil {
			return err
		}
		if !ended {
			x.mu.Lock()
			x.left[in.Deletion.Log] = append(x.left[in.Deletion.Log], in)
			x.mu.Unlock()
		}
	}
	return nil
}

// resolveLeft looks again at what could not be looked at before. Where it still cannot be told how
// a deletion of the log ended, no other may begin: the brake would not count right, and a segment
// that goes now would be taken for the one that was announced then.
func (x *Executor) resolveLeft(ctx context.Context, f engine.Delete) (*engine.Kept, error) {
	x.mu.Lock()
	left := x.left[f.Log]
	x.mu.Unlock()
	for len(left) > 0 {
		ended, err := x.resolveIntent(ctx, left[0])
		if err != nil {
			return nil, err
		}
		if !ended {
			r := tier.Reason{Code: tier.CodeUnknownOutcome, Text: fmt.Sprintf("how an interrupted "+
				"deletion of %s ended cannot be told yet", left[0].Deletion.Range)}
			return &engine.Kept{Segment: f.Segments[0].Segment, Reasons: []tier.Reason{r}}, nil
		}
		left = left[1:]
		x.mu.Lock()
		x.left[f.Log] = left
		x.mu.Unlock()
	}
	return nil, nil
}

// resolveIntent writes how an announced deletion ended; ended is false where that cannot be told.
func (x *Executor) resolveIntent(ctx context.Context, in tier.Intent) (ended bool, err error) {
	del := in.Deletion
	out := tier.Outcome{Result: tier.OutcomeKept, At: x.c.Now(),
		Text: "found in place after a restart"}
	switch del.Action {
	case tier.DeleteLocal:
		gone, known := x.settledAt(ctx, del)
		if !known {
			return false, nil
		}
		if gone {
			out.Result, out.Text = tier.OutcomeDeleted, "found gone after a restart"
			per := x.c.Generation().Brake.Per
			window := x.c.Ledger.Table(del.Log.Table).Window.At(out.At, per).Plus(1, del.Bytes)
			if err := x.recordDeleted(ctx, del.Log, del.Range, del.Bytes, window); err != nil {
				return false, err
			}
		}
	case tier.DeleteRemote, tier.DisableDelete, tier.DeleteOrphan:
		// The ledger still has what is to go, and asks again for whatever is left of it.
		out.Result, out.Text = tier.OutcomeUnknown, "interrupted; what is left goes by another deletion"
	case tier.AcceptLoss:
		// It deletes nothing, and goes on where it stopped when it is asked for again.
		out.Text = "interrupted"
	default:
		return false, nil
	}
	err = x.c.Audit.Conclude(ctx, in.Seq, out)
	if err != nil && !errors.Is(err, ErrRefused) { // refused: somebody else concluded it meanwhile
		return false, fmt.Errorf("audit: %w", err)
	}
	return true, nil
}

// settledAt puts right what an interrupted drop left, and tells whether the segment is gone; known
// is false where that cannot be told.
func (x *Executor) settledAt(ctx context.Context, del tier.Deletion) (gone, known bool) {
	state, _ := x.c.Ledger.Log(del.Log)
	src, err := x.source(state.Source)
	if err != nil || src.Settle(ctx, del.Log) != nil {
		return false, false
	}
	return looked(ctx, src, del.Log, del.Range)
}

// looked tells whether the segment is gone; known is false where that cannot be told. Where the
// program that owns the log deletes, it is gone when that program has given it up.
func looked(ctx context.Context, src Source, log tier.LogID, r tier.Range) (gone, known bool) {
	if src.LocalDelete() == tier.LocalDeleteRecords {
		o := src.Vet(ctx, log, tier.Content{Range: r})
		return o.Given, o.Asked == tier.Yes && o.SameLog == tier.Yes
	}
	base := r.Base
	scan, whole, err := src.Look(ctx, log)
	if err != nil || !whole {
		return false, false
	}
	for _, s := range scan.Segments {
		if s.Base == base {
			return false, true
		}
	}
	return true, true
}

// recordDeleted makes it durable that a segment is gone by tierd's hand. It comes before the
// outcome in the audit log: with that written, no start would look again.
func (x *Executor) recordDeleted(ctx context.Context, log tier.LogID, r tier.Range, bytes int64,
	window tier.BrakeWindow) error {
	_, err := x.append(ctx, tier.LocalDeleted{Log: log, Range: r, Bytes: bytes, At: x.c.Now(),
		Window: window})
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return nil
}
