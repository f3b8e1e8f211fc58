package exec

import (
	"context"
	"errors"
	"fmt"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// delete deletes the candidates in order until one is kept. Durable sub-steps for each:
//
//  1. fresh facts: directory, files, ledger, manifest entry, objects; guard and policies; the permit
//  2. audit: the intent
//  3. source: rename into the trash, fsync, compare, unlink, fsync
//  4. audit: the outcome
//  5. ledger: LocalDeleted
//
// A stop after 2 leaves an intent without an outcome, which the next start resolves by looking.
func (x *Executor) delete(ctx context.Context, f engine.Delete) (engine.Result, error) {
	src, err := x.source(f.Source)
	if err != nil {
		return failure(tier.CodeSourceVanished, "%v", err), nil
	}
	done := engine.Deleted{Window: f.Window}
	for _, c := range f.Segments {
		window, kept, err := x.deleteOne(ctx, src, f, c, done.Window)
		if err != nil {
			return nil, err
		}
		if kept != nil {
			done.Kept = kept
			break
		}
		done.Window = window
		done.Gone = append(done.Gone, c.Segment)
	}
	state, _ := x.c.Ledger.Log(f.Log)
	done.LogStart, done.Next = state.LogStart, state.Next
	return done, nil
}

// deleteOne asks about one segment and deletes it if it may go. Where kept is not nil it stayed.
func (x *Executor) deleteOne(ctx context.Context, src Source, f engine.Delete,
	c engine.DeleteCandidate, before tier.BrakeWindow) (tier.BrakeWindow, *engine.Kept, error) {
	keep := func(code tier.Code, format string, args ...any) (tier.BrakeWindow, *engine.Kept, error) {
		r := tier.Reason{Code: code, Text: fmt.Sprintf(format, args...)}
		return before, &engine.Kept{Segment: c.Segment, Reasons: []tier.Reason{r}}, nil
	}
	g := x.c.Generation()
	facts, cp, err := x.facts(ctx, g, src, f, c, before)
	if err != nil {
		return before, nil, err
	}
	permit, verdict := g.Gate.Ask(ctx, facts)
	if !verdict.Delete {
		return before, &engine.Kept{Segment: c.Segment, Reasons: verdict.Reasons,
			Due: verdict.Due}, nil
	}
	// Whoever gave up waiting for this call must not find a segment gone later.
	if err := ctx.Err(); err != nil {
		return keep(tier.CodeUnknownOutcome, "given up before anything was deleted: %v", err)
	}
	if facts.Log.State != tier.Enabled && f.Remote.Segments == 0 {
		// No copy is left of what goes: the log's start moves first, durably, where readers look.
		r, err := x.move(ctx, f.Log, tier.StartMoved{Log: f.Log, Start: facts.Seg.Range.Next,
			Cause: tier.MoveExpired, At: x.c.Now()})
		if err != nil {
			return before, nil, err
		}
		if failed, ok := r.(engine.Failed); ok {
			return keep(failed.Reason.Code, "%s", failed.Reason.Text)
		}
	}
	announced, err := x.deletionOf(f, facts, cp, verdict)
	if err != nil {
		return keep(tier.CodeAudit, "no audit record, no deletion: %v", err)
	}
	seq, err := x.c.Audit.Intend(ctx, announced)
	if err != nil {
		if errors.Is(err, ErrRefused) {
			return keep(tier.CodeAudit, "no audit record, no deletion: %v", err)
		}
		return before, nil, fmt.Errorf("audit: %w", err)
	}
	dropErr := src.Drop(context.WithoutCancel(ctx), permit, facts.Target())
	outcome := tier.Outcome{Result: tier.OutcomeDeleted, At: x.c.Now()}
	switch {
	case dropErr == nil:
	case errors.Is(dropErr, ErrChanged):
		outcome.Result, outcome.Text = tier.OutcomeKept, dropErr.Error()
	default:
		outcome.Result, outcome.Text = tier.OutcomeUnknown, dropErr.Error()
	}
	if err := x.c.Audit.Conclude(ctx, seq, outcome); err != nil {
		return before, nil, fmt.Errorf("audit: %w", err)
	}
	if dropErr != nil {
		r := classify(dropErr, tier.CodeUnknownOutcome)
		return before, &engine.Kept{Segment: c.Segment, Reasons: []tier.Reason{r}}, nil
	}
	after := before.At(facts.Now, g.Brake.Per).Plus(1, facts.Seg.Bytes)
	_, err = x.append(ctx, tier.LocalDeleted{Log: f.Log, Range: facts.Seg.Range,
		Bytes: facts.Seg.Bytes, At: x.c.Now(), Window: after})
	if err != nil {
		if errors.Is(err, ErrRefused) {
			return before, nil, fmt.Errorf("ledger: %w", err)
		}
		return before, nil, fatal(err)
	}
	return after, nil, nil
}

// deletionOf is what the audit log is told: enough to ask the policies again years later.
func (x *Executor) deletionOf(f engine.Delete, facts *gate.Facts, cp tier.Copy,
	v gate.Verdict) (tier.Deletion, error) {
	d := tier.Deletion{Action: f.Action, Log: f.Log, Range: facts.Seg.Range,
		Bytes: facts.Seg.Bytes, Epoch: cp.Epoch, Attempt: cp.Attempt, Reasons: v.Reasons,
		Digest: v.Digest, At: facts.Now}
	if len(cp.Content.Files) > 0 {
		d.SHA256 = cp.Content.Files[0].SHA256
		d.Object = cp.Content.Files[0].Name
	}
	if input := x.c.Generation().Input; input != nil {
		var err error
		if d.Input, err = input(facts); err != nil {
			return d, fmt.Errorf("the policies' input: %w", err)
		}
	}
	return d, nil
}
