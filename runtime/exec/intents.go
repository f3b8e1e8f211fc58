package exec

import (
	"context"
	"fmt"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// Settler is a source that can put right what a crash left in its trash, and be looked at.
type Settler interface {
	// Settle finishes or undoes what an interrupted Drop left of a log. An error means that it is not
	// known what the log has.
	Settle(ctx context.Context, id tier.LogID) error
	Look(ctx context.Context, id tier.LogID) (scan tier.Scan, whole bool, err error)
}

// Intents is the audit log's side of what a crash left open.
type Intents interface {
	Audit
	// OpenIntents are the deletions without an outcome, ascending by sequence number.
	OpenIntents() []tier.Intent
}

// ResolveIntents concludes the deletions that were announced and of which no outcome was written:
// the process ended in between. The segment is in place, or it is not; what cannot be looked at
// stays open. It is for the start, before the first decision. Durable sub-steps for each: the
// audit outcome, LocalDeleted.
func ResolveIntents(ctx context.Context, a Intents, l Ledger, source func(name string) Settler,
	now func() tier.Time, brakePer time.Duration) error {
	for _, in := range a.OpenIntents() {
		del := in.Deletion
		state, known := l.Log(del.Log)
		if !known || del.Action != tier.DeleteLocal {
			continue
		}
		gone, ok := looked(ctx, source(state.Source), del)
		if !ok {
			continue
		}
		out := tier.Outcome{Result: tier.OutcomeKept, At: now(), Text: "found in place after a restart"}
		if gone {
			out.Result, out.Text = tier.OutcomeDeleted, "found gone after a restart"
			// The record comes first: with the outcome written, nobody would ask again.
			window := l.Table(del.Log.Table).Window.At(now(), brakePer).Plus(1, del.Bytes)
			_, err := l.Append(ctx, tier.LocalDeleted{Log: del.Log, Range: del.Range, Bytes: del.Bytes,
				At: now(), Window: window})
			if err != nil {
				return fmt.Errorf("ledger: %w", err)
			}
		}
		if err := a.Conclude(ctx, in.Seq, out); err != nil {
			return fmt.Errorf("audit: %w", err)
		}
	}
	return nil
}

// looked tells whether the segment is gone; ok is false where that cannot be told.
func looked(ctx context.Context, s Settler, del tier.Deletion) (gone, ok bool) {
	if s == nil || s.Settle(ctx, del.Log) != nil {
		return false, false
	}
	scan, whole, err := s.Look(ctx, del.Log)
	if err != nil || !whole {
		return false, false
	}
	for _, seg := range scan.Segments {
		if seg.Base == del.Range.Base {
			return false, true
		}
	}
	return true, true
}
