package exec

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

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
	in, err := x.resolveLog(ctx, f.Log)
	if err != nil || in == nil {
		return nil, err
	}
	r := tier.Reason{Code: tier.CodeUnknownOutcome, Text: fmt.Sprintf("how an interrupted "+
		"deletion of %s ended cannot be told yet", in.Deletion.Range)}
	return &engine.Kept{Segment: f.Segments[0].Segment, Reasons: []tier.Reason{r}}, nil
}

// resolveLog resolves what is left of a log, in order, and returns the first that cannot be told
// yet; nil if there is none.
func (x *Executor) resolveLog(ctx context.Context, log tier.LogID) (*tier.Intent, error) {
	x.mu.Lock()
	left := x.left[log]
	x.mu.Unlock()
	for i := range left {
		if ended, err := x.resolveIntent(ctx, left[i]); err != nil || !ended {
			return &left[i], err
		}
		x.mu.Lock()
		if x.left[log] = left[i+1:]; i+1 == len(left) {
			delete(x.left, log)
		}
		x.mu.Unlock()
	}
	return nil, nil
}

// resolveAllLeft looks again at every log that has something left, also where nothing more of it is
// to be deleted: an intent does not stay open because its log is gone.
func (x *Executor) resolveAllLeft(ctx context.Context) error {
	x.mu.Lock()
	logs := slices.SortedFunc(maps.Keys(x.left), tier.LogID.Compare)
	x.mu.Unlock()
	for _, log := range logs {
		if _, err := x.resolveLog(ctx, log); err != nil {
			return err
		}
	}
	return nil
}

// resolveIntent writes how an announced deletion ended; ended is false where that cannot be told.
func (x *Executor) resolveIntent(ctx context.Context, in tier.Intent) (ended bool, err error) {
	del := in.Deletion
	out := tier.Outcome{Result: tier.OutcomeKept, At: x.c.Now(),
		Text: "found in place after a restart"}
	switch del.Action {
	case tier.DeleteLocal:
		if state, known := x.c.Ledger.Log(del.Log); known && x.c.Source(state.Source) == nil {
			out.Result = tier.OutcomeUnknown
			out.Text = fmt.Sprintf("interrupted, and its source %q is not configured any more",
				state.Source)
			break
		}
		gone, emptied, known := x.settledAt(ctx, del)
		if !known {
			return false, nil
		}
		if gone {
			out.Result, out.Text = tier.OutcomeDeleted, "found gone after a restart"
			per := x.c.Generation().Brake.Per
			window := x.c.Ledger.Table(del.Log.Table).Window.At(out.At, per).Plus(1, del.Bytes)
			if err := x.recordDeleted(ctx, del.Log, del.Range, del.Bytes, window, emptied); err != nil {
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
func (x *Executor) settledAt(ctx context.Context, del tier.Deletion) (gone, emptied, known bool) {
	state, _ := x.c.Ledger.Log(del.Log)
	src, err := x.source(state.Source)
	if err != nil {
		return false, false, false
	}
	if err := src.Settle(ctx, del.Log); err != nil && !errors.Is(err, ErrVanished) {
		return false, false, false
	}
	return looked(ctx, src, del.Log, del.Range)
}

// looked tells whether the segment is gone, and whether nothing of its log is there; known is false
// where that cannot be told. Where the program that owns the log deletes, it is gone when that
// program has given it up.
func looked(ctx context.Context, src Source, log tier.LogID, r tier.Range) (
	gone, emptied, known bool) {
	if src.LocalDelete() == tier.LocalDeleteRecords {
		o := src.Vet(ctx, log, tier.Content{Range: r})
		return o.Given, false, o.Asked == tier.Yes && o.SameLog == tier.Yes
	}
	base := r.Base
	scan, whole, err := src.Look(ctx, log)
	if errors.Is(err, ErrVanished) {
		return true, true, true // the whole log is, while its source is there
	}
	if err != nil || !whole {
		return false, false, false
	}
	for _, s := range scan.Segments {
		if s.Base == base {
			return false, false, true
		}
	}
	return true, len(scan.Segments) == 0, true
}

// recordDeleted makes it durable that a segment is gone by tierd's hand. It comes before the
// outcome in the audit log: with that written, no start would look again.
func (x *Executor) recordDeleted(ctx context.Context, log tier.LogID, r tier.Range, bytes int64,
	window tier.BrakeWindow, emptied bool) error {
	_, err := x.append(ctx, tier.LocalDeleted{Log: log, Range: r, Bytes: bytes, At: x.c.Now(),
		Window: window, Emptied: emptied})
	return unexpected(err)
}
