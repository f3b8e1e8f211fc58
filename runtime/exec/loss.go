package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// AcceptLoss puts on record that an operator accepts the loss of a damaged segment, so that copying
// goes on behind it. Durable sub-steps: the audit record and its outcome, the hole, the acceptance.
// Repeating it after a stop between any two of them goes on where it stopped. The damaged file
// stays: only an operator's own hand removes what was never copied.
//
// why says why the loss is not accepted, and wraps ErrRefused where that is not for the source to
// say; err is one that ends the process.
func (x *Executor) AcceptLoss(ctx context.Context, source string, log tier.LogID,
	s tier.LocalSegment) (ev *engine.LossAccepted, why, err error) {
	sum, why := x.damaged(ctx, source, log, s)
	if why != nil {
		return nil, why, nil
	}
	if r := x.MayRecord(ctx, log); r != nil {
		return nil, fmt.Errorf("%w: log %q: %s: %s", ErrRefused, log, r.Code, r.Text), nil
	}
	// The looks before take time, in which the table may have been turned off.
	if why := x.waits(log); why != nil {
		return nil, why, nil
	}
	ctx = context.WithoutCancel(ctx) // whoever asked may go; half of it would be news to the engine
	reason := tier.Reason{Code: tier.CodeQuarantined,
		Text: "an operator accepted the loss; the damaged file stays"}
	seq, err := x.c.Audit.Intend(ctx, tier.Deletion{Action: tier.AcceptLoss, Log: log, Range: s.Range,
		Bytes: s.Log.Size, SHA256: sum, At: x.c.Now(), Reasons: []tier.Reason{reason}})
	if err == nil {
		err = x.c.Audit.Conclude(ctx, seq, tier.Outcome{Result: tier.OutcomeKept, At: x.c.Now()})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("audit: %w", err)
	}
	ev, why, err = x.recordLoss(ctx, tier.LossAccepted{Log: log, Range: s.Range, SHA256: sum,
		At: x.c.Now()})
	if ev != nil {
		ev.Segment = s
	}
	return ev, why, err
}

// LossKnown reports whether a segment is one whose loss was accepted, as a copy of it would find.
func (x *Executor) LossKnown(ctx context.Context, source string, log tier.LogID,
	s tier.LocalSegment) (bool, error) {
	src, err := x.source(source)
	if err != nil {
		return false, err
	}
	return x.lossKnown(ctx, src, log, s)
}

// lossKnown reports whether a segment that is damaged is one whose loss was accepted: its log file
// has the bytes that were given up, whatever times it has, and wherever it came from.
func (x *Executor) lossKnown(ctx context.Context, src Source, log tier.LogID,
	s tier.LocalSegment) (bool, error) {
	state, _ := x.c.Ledger.Log(log)
	given := slices.DeleteFunc(state.Accepted, func(a tier.LossAccepted) bool {
		return a.Range != s.Range
	})
	if len(given) == 0 {
		return false, nil
	}
	sum, err := hashOf(ctx, src, log, s.Base, s.Log)
	return err == nil && slices.ContainsFunc(given, func(a tier.LossAccepted) bool {
		return a.SHA256 == sum
	}), err
}

// damaged makes sure that the segment is, since only the loss of what cannot be copied can be
// accepted, and identifies the file whose loss it is.
func (x *Executor) damaged(ctx context.Context, source string, log tier.LogID,
	s tier.LocalSegment) (sum tier.SHA256, err error) {
	src, err := x.source(source)
	if err != nil {
		return sum, err
	}
	look := func() error {
		_, err := src.Read(ctx, log, s.Range)
		switch {
		case err == nil:
			return fmt.Errorf("%w: log %q: the segment %s is not damaged; it is copied", ErrRefused, log,
				s.Range)
		case errors.Is(err, ErrDamaged):
			return nil
		}
		return err
	}
	if err := look(); err != nil {
		return sum, err
	}
	sum, err = hashOf(ctx, src, log, s.Base, s.Log)
	if errors.Is(err, ErrChanged) {
		return sum, fmt.Errorf("%w: %w just now; look again", ErrRefused, err)
	}
	if err == nil {
		err = look() // the bytes that were hashed may be sound ones, put back since
	}
	return sum, err
}

// waits makes sure that copying waits for the log's damaged segment. Of a table that does not tier
// nothing is copied, and no hole could be recorded.
func (x *Executor) waits(log tier.LogID) error {
	state, known := x.c.Ledger.Log(log)
	t := x.c.Ledger.Table(log.Table)
	switch {
	case !known:
		return fmt.Errorf("%w: log %q: the ledger does not have it yet; try again", ErrRefused, log)
	case t.State != tier.Enabled || state.Epoch != t.Epoch:
		return fmt.Errorf("%w: log %q: its table is %s, in tier epoch %d, and the log in %d: nothing of "+
			"it is copied now, and nothing waits for this segment; when it is ENABLED, try again",
			ErrRefused, log, t.State, t.Epoch, state.Epoch)
	}
	return nil
}

// recordLoss makes the hole and the acceptance durable. The hole begins where nothing is copied
// yet: a new leader may have rolled its first segment elsewhere. None is needed, and it is refused,
// where the offsets were passed already. Any other refusal is one of the loss.
func (x *Executor) recordLoss(ctx context.Context, loss tier.LossAccepted) (
	ev *engine.LossAccepted, why, err error) {
	r := loss.Range
	state, _ := x.c.Ledger.Log(loss.Log)
	r.Base = max(r.Base, min(state.Copied, r.Next))
	hole := tier.Hole{Range: r, Cause: tier.HoleLossAccepted, At: x.c.Now()}
	ev = &engine.LossAccepted{Accepted: loss}
	pos, err := x.append(ctx, tier.HoleRecorded{Log: loss.Log, Hole: hole})
	state, _ = x.c.Ledger.Log(loss.Log)
	if err == nil {
		ev.Hole = &engine.HoleDone{Hole: hole, Position: pos, Offset: state.Copied, Next: state.Next}
	}
	passed := r.Empty() || slices.ContainsFunc(state.Holes, func(h tier.Hole) bool {
		return h.Base <= r.Base && r.Next <= h.Next
	})
	if err == nil || errors.Is(err, ErrRefused) && passed {
		_, err = x.append(ctx, ev.Accepted)
	}
	if errors.Is(err, ErrRefused) {
		return nil, err, nil
	}
	return ev, nil, err
}
