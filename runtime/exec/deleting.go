package exec

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/planted"
	"github.com/tierd/tierd/runtime/tier"
)

// delete deletes the candidates in order until one is kept. Durable sub-steps for each:
//
//  1. fresh facts: directory, files, ledger, manifest entry, objects; guard, policies, permit
//  2. audit: the intent
//  3. source: rename into the trash, fsync, compare, unlink, fsync; or the broker gives it up
//  4. ledger: LocalDeleted
//  5. audit: the outcome
//
// A stop after 2 leaves an intent without an outcome, which the next start resolves by looking.
func (x *Executor) delete(ctx context.Context, f engine.Delete) (engine.Result, error) {
	src, err := x.source(f.Source)
	if err != nil {
		return failure(tier.CodeSourceVanished, "%v", err), nil
	}
	done := engine.Deleted{}
	done.Kept, err = x.resolveLeft(ctx, f)
	for i := 0; err == nil && done.Kept == nil && i < len(f.Segments); i++ {
		done.Kept, err = x.deleteOne(ctx, src, f, f.Segments[i])
		if done.Kept == nil {
			done.Gone = append(done.Gone, f.Segments[i].Segment)
		}
	}
	if err != nil {
		return nil, err
	}
	state, _ := x.c.Ledger.Log(f.Log)
	done.LogStart, done.Next, done.Unpublished = state.LogStart, state.Next, state.Unpublished
	done.Window = x.c.Ledger.Table(f.Log.Table).Window
	return done, nil
}

// deleteOne asks about one segment and deletes it if it may go. Where kept is not nil it stayed.
func (x *Executor) deleteOne(ctx context.Context, src Source, f engine.Delete,
	c engine.DeleteCandidate) (*engine.Kept, error) {
	kept := func(why *tier.Reason) *engine.Kept {
		if why == nil {
			return nil
		}
		return &engine.Kept{Segment: c.Segment, Reasons: []tier.Reason{*why}}
	}
	keep := func(code tier.Code, format string, args ...any) (*engine.Kept, error) {
		return kept(&tier.Reason{Code: code, Text: fmt.Sprintf(format, args...)}), nil
	}
	g := x.c.Generation()
	facts, cp, err := x.facts(ctx, g, src, f, c)
	if err != nil {
		return nil, err
	}
	permit, verdict := g.Gate.Ask(ctx, facts)
	if !verdict.Delete {
		return &engine.Kept{Segment: c.Segment, Reasons: verdict.Reasons,
			Due: verdict.Due}, nil
	}
	if err := x.overtaken(ctx, g, facts); err != nil {
		return keep(tier.CodeRetry, "%v", err)
	}
	if why, err := x.startFirst(ctx, f.Log, facts, f.Remote); err != nil || why != nil {
		return kept(why), err
	}
	if facts.Safety.Proof.Identity != tier.Yes {
		cp = tier.Copy{} // where tiering is off it may go, and it is not the file that was copied
	}
	announced, err := x.deletionOf(f, facts, cp, verdict)
	if err == nil && len(cp.Content.Files) == 0 {
		announced.SHA256, err = hashOf(ctx, src, f.Log, facts.Seg.Range.Base, facts.Seg.File)
	}
	if err != nil {
		return keep(tier.CodeAudit, "no audit record, no deletion: %v", err)
	}
	var dropErr error
	if planted.Is(planted.RecordAfterDrop) {
		dropErr = x.drop(ctx, g, src, permit, facts)
	}
	seq, err := x.c.Audit.Intend(ctx, announced)
	if errors.Is(err, ErrRefused) {
		return keep(tier.CodeAudit, "no audit record, no deletion: %v", err)
	}
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	if !planted.Is(planted.RecordAfterDrop) {
		dropErr = x.drop(ctx, g, src, permit, facts)
	}
	outcome := x.ended(context.WithoutCancel(ctx), src, facts.Target(), dropErr)
	if outcome.Result == tier.OutcomeDeleted {
		err := x.recordDeleted(ctx, f.Log, facts.Seg.Range, facts.Seg.Bytes, facts.Safety.Window,
			facts.Seg.OrdinalFromNewest == 0)
		if err != nil {
			return nil, err
		}
	}
	if err := x.c.Audit.Conclude(ctx, seq, outcome); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return keptBy(c.Segment, outcome, dropErr), nil
}

// startFirst moves the start of a log over a segment of which no copy is left, durably and where
// readers look, before the segment goes. The reason is why it stays; nil where it need not.
func (x *Executor) startFirst(ctx context.Context, log tier.LogID, facts *gate.Facts,
	remote engine.Extent) (*tier.Reason, error) {
	end := facts.Seg.Range.Next
	if facts.Log.State == tier.Enabled || remote.Segments > 0 && remote.Base < end {
		return nil, nil
	}
	if end > facts.Log.LogStart {
		if why, err := x.copyBelow(log, end); why != nil || err != nil {
			return why, err
		}
		if why := x.MayRecord(ctx, log); why != nil {
			return why, nil
		}
		r, err := x.move(ctx, log, tier.StartMoved{Log: log, Start: end, Cause: tier.MoveExpired,
			At: x.c.Now()})
		if failed, ok := r.(engine.Failed); ok || err != nil {
			return &failed.Reason, err
		}
	}
	if state, _ := x.c.Ledger.Log(log); len(state.Unpublished) > 0 {
		return &tier.Reason{Code: tier.CodeRetry,
			Text: "the start of the log does not stand in its manifest yet"}, nil
	}
	return nil, nil
}

// copyBelow is why the start must not move up to end without a word of the policies: a copy below
// it is part of the log, and ended after the deletion was decided on. It is nil where none is.
func (x *Executor) copyBelow(log tier.LogID, end tier.Offset) (*tier.Reason, error) {
	state, _ := x.c.Ledger.Log(log)
	table := x.c.Ledger.Table(log.Table)
	recorded, err := x.c.Ledger.Facts(log, 0, state.Next)
	if err != nil {
		return nil, fatal(err)
	}
	for i := range recorded {
		if recorded[i].Add == nil {
			continue
		}
		if in, left := ofLog(&state, &table, &recorded[i]); !left && in.Base < end {
			return &tier.Reason{Code: tier.CodeRetry, Text: fmt.Sprintf("a copy of %s has ended, and "+
				"is part of the log", in)}, nil
		}
	}
	return nil, nil
}

// ofLog is what clips leave of a recorded copy's range; left is set where none of it is part of the
// log any more.
func ofLog(s *tier.LogState, t *tier.TableState, f *tier.Fact) (in tier.Range, left bool) {
	in = tier.Clipped(s.Clips, f.Position, f.Add.Content.Range)
	_, left = tier.Left(s, t, f.Position, f.Epoch, in)
	return in, left
}

// keptBy is why a segment whose drop ended like that stayed; nil where it did not.
func keptBy(seg tier.LocalSegment, outcome tier.Outcome, dropErr error) *engine.Kept {
	if outcome.Result == tier.OutcomeDeleted {
		return nil
	}
	code := tier.CodeRetry
	if outcome.Result == tier.OutcomeUnknown {
		code = tier.CodeUnknownOutcome
	}
	return &engine.Kept{Segment: seg, Reasons: []tier.Reason{classify(dropErr, code)}}
}

// errGivenUp: a deletion was stopped, or whoever asked for it waits for it no more.
var errGivenUp = errors.New("given up before anything was deleted")

// stopped says why a deletion that has its permit must not begin any more: until it was announced
// time went by, in which its caller may have gone away, somebody pulled the brake, or another
// configuration came into force. Whoever did that, to hold something perhaps, must not find
// something gone that was there then. The error is errGivenUp.
func (x *Executor) stopped(ctx context.Context, g *Generation, table string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", errGivenUp, err)
	}
	if now := x.c.Generation().Number; now != g.Number && !planted.Is(planted.NotDrained) {
		return fmt.Errorf("%w: configuration %d came into force, and %d had been asked", errGivenUp,
			now, g.Number)
	}
	why := g.Paused()
	if why == nil {
		why = x.c.Ledger.Table(table).Paused
	}
	if why != nil {
		return fmt.Errorf("%w: %s", errGivenUp, why.Text)
	}
	return nil
}

// drop drops the segment, unless it was stopped. A drop that has begun goes on to its end, because
// half of one is no better.
func (x *Executor) drop(ctx context.Context, g *Generation, src Source, p gate.Permit,
	facts *gate.Facts) error {
	if err := x.overtaken(ctx, g, facts); err != nil {
		return err
	}
	return src.Drop(context.WithoutCancel(ctx), p, facts.Target())
}

// overtaken says why a local deletion that has its permit must not begin any more: it was stopped,
// or its table is in another tier state by now, in which other limits govern what is local, and a
// segment may need a proof that it did not need before.
func (x *Executor) overtaken(ctx context.Context, g *Generation, facts *gate.Facts) error {
	table := facts.Log.ID.Table
	if err := x.stopped(ctx, g, table); err != nil {
		return err
	}
	now := x.c.Ledger.Table(table).State
	if now != facts.Log.State && !planted.Is(planted.NotDrained) {
		return fmt.Errorf("%w: the table %s became %s, and was %s when it was asked about", errGivenUp,
			table, now, facts.Log.State)
	}
	return nil
}

// ended tells how a drop ended that returned err. Where the error does not say that nothing was
// removed, a look does; only where that cannot tell either does the outcome stay unknown.
func (x *Executor) ended(ctx context.Context, src Source, t gate.Target, err error) tier.Outcome {
	out := tier.Outcome{Result: tier.OutcomeDeleted, At: x.c.Now()}
	if err == nil {
		return out
	}
	out.Result, out.Text = tier.OutcomeUnknown, err.Error()
	for _, harmless := range []error{ErrChanged, ErrVanished, errGivenUp} {
		if errors.Is(err, harmless) {
			out.Result = tier.OutcomeKept
			return out
		}
	}
	gone, _, known := looked(ctx, src, t.Log, t.Range)
	switch {
	case planted.Is(planted.UnknownIsFailure):
		out.Result = tier.OutcomeKept
	case planted.Is(planted.UnknownIsSuccess):
		out.Result = tier.OutcomeDeleted
	case known && gone:
		out.Result = tier.OutcomeDeleted
	case known:
		out.Result = tier.OutcomeKept
	}
	return out
}

// deletionOf is what the audit log is told: enough to ask the policies again years later.
func (x *Executor) deletionOf(f engine.Delete, facts *gate.Facts, cp tier.Copy,
	v gate.Verdict) (tier.Deletion, error) {
	d := tier.Deletion{Action: f.Action, Log: f.Log, Range: facts.Seg.Range,
		Bytes: facts.Seg.Bytes, Epoch: cp.Epoch, Attempt: cp.Attempt, Reasons: v.Reasons,
		Digest: v.Digest, Data: v.Data, At: facts.Now}
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

// hashOf is the SHA-256 of the local file with the records of the segment at base. It must still be
// the file that want says: otherwise the error wraps ErrChanged.
func hashOf(ctx context.Context, src SegmentFiles, log tier.LogID, base tier.Offset,
	want tier.Stat) (sum tier.SHA256, err error) {
	name, err := src.LogFile(ctx, log, base)
	if err != nil {
		return sum, err
	}
	r, err := src.Open(ctx, log, name)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	is, err := r.Stat()
	if err == nil && is != want {
		err = ErrChanged
	}
	if err != nil {
		return sum, fmt.Errorf("%s %s: %w", log, name, err)
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(r, 0, want.Size)); err != nil {
		return sum, fmt.Errorf("read %s %s: %w", log, name, err)
	}
	r.DropCache(0, want.Size)
	return tier.SHA256(h.Sum(nil)), nil
}
