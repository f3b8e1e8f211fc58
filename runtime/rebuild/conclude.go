package rebuild

import (
	"context"
	"errors"

	"github.com/tierd/tierd/runtime/tier"
)

// Audit is the deletion log.
type Audit interface {
	OpenIntents() []tier.Intent
	Conclude(ctx context.Context, seq uint64, o tier.Outcome) error
}

// Source is where the local segments of a log are.
type Source interface {
	// Settle finishes or undoes what an interrupted deletion left of a log.
	Settle(ctx context.Context, id tier.LogID) error
	// Look scans one log afresh; whole is false where anything could not be read.
	Look(ctx context.Context, id tier.LogID) (scan tier.Scan, whole bool, err error)
}

// Conclude writes how announced deletions ended of which the lost ledger can no more be asked. The
// new one never knew of them, and a start that came to look would find that a segment is gone which
// was never copied. source gives where a log is; nil where no source has it.
func Conclude(ctx context.Context, a Audit, source func(tier.LogID) Source, now tier.Time) error {
	for _, in := range a.OpenIntents() {
		out := tier.Outcome{Result: tier.OutcomeUnknown, At: now,
			Text: "interrupted, and the ledger was rebuilt since"}
		if src := source(in.Deletion.Log); src != nil && in.Deletion.Action == tier.DeleteLocal {
			switch gone, known := lookFor(ctx, src, in.Deletion); {
			case known && gone:
				out.Result, out.Text = tier.OutcomeDeleted, "found gone when the ledger was rebuilt"
			case known:
				out.Result, out.Text = tier.OutcomeKept, "found in place when the ledger was rebuilt"
			}
		}
		if err := a.Conclude(ctx, in.Seq, out); err != nil && !errors.Is(err, tier.ErrRefused) {
			return err
		}
	}
	return nil
}

// lookFor tells whether the segment is gone; known is false where that cannot be told.
func lookFor(ctx context.Context, src Source, d tier.Deletion) (gone, known bool) {
	if src.Settle(ctx, d.Log) != nil {
		return false, false
	}
	scan, whole, err := src.Look(ctx, d.Log)
	if err != nil || !whole {
		return false, false
	}
	for _, s := range scan.Segments {
		if s.Base == d.Range.Base {
			return false, true
		}
	}
	return true, true
}
