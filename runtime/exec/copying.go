package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/planted"
	"github.com/tierd/tierd/runtime/tier"
)

// copy performs the copy protocol. Durable sub-steps, in order:
//
//  1. the files are read once, checked and hashed; nothing is written
//  2. ledger: CopyStarted, with the names of everything that may appear in the store
//  3. store: each file, then its verification; the identity on disk is compared again
//  4. store: the manifest entry, and a look that it is what it should be
//  5. ledger: CopyFinished, the commit for deletion
//
// A stop between any two of them leaves an attempt that Resolve finishes or abandons by looking.
func (x *Executor) copy(ctx context.Context, f engine.Copy) (engine.Result, error) {
	src, err := x.source(f.Source)
	if err != nil {
		return failure(tier.CodeSourceVanished, "%v", err), nil
	}
	content, failed := x.read(ctx, src, f)
	if failed != nil {
		return failed, nil
	}
	for _, p := range content.Problems {
		x.trouble(p)
	}
	state, _ := x.c.Ledger.Log(f.Log)
	if content.Files[0].Stat != f.Segment.Log ||
		state.Layout == tier.LayoutPlain && content.Bytes() != f.Segment.Bytes {
		return failure(tier.CodeChanged, "%s %s: changed since it was scanned", f.Log,
			f.Segment.Range), nil
	}
	if f.HasKnown {
		r, done, err := x.reidentify(ctx, f.Log, f.Known, content)
		if err != nil || done {
			return r, err
		}
	}
	if d, found, err := x.disputed(f, &content); err != nil || found {
		return d, err
	}
	if err := ctx.Err(); err != nil {
		// Nobody waits for this call any more, or will hear of an attempt that it begins.
		return failure(tier.CodeRetry, "copy of %s %s: %v", f.Log, f.Segment.Range, err), nil
	}
	if why := x.MayRecord(ctx, f.Log); why != nil {
		return engine.Failed{Reason: *why}, nil
	}
	attempt := tier.Attempt{ID: x.c.NewAttempt(), Epoch: f.Epoch, Range: content.Range,
		StartedAt: x.c.Now()}
	for _, file := range content.Files {
		attempt.Names = append(attempt.Names, file.Name)
	}
	attempt.Position, err = x.decide(ctx, tier.CopyStarted{Log: f.Log, Attempt: attempt})
	if errors.Is(err, ErrRefused) {
		return failure(tier.CodeTierEpoch, "%v", err), nil
	}
	if err != nil {
		return nil, fatal(err)
	}
	x.setAttempt(f.ID, &attempt)
	defer x.setAttempt(f.ID, nil)
	if err := ctx.Err(); err != nil {
		// Whoever gave this call up a moment ago has not heard of the attempt: nobody else ends it.
		return x.abandon(ctx, f.Log, attempt, err.Error())
	}
	if err := x.upload(ctx, src, f.Log, attempt, content); err != nil {
		r := classify(err, tier.CodeStoreError)
		return engine.Failed{Reason: r, Attempt: &attempt}, nil
	}
	return x.finish(ctx, f.Log, attempt, content)
}

// TryRead reads a segment as a copy of it would, and returns how that would fail, which concerns
// its files alone; nil where they are sound.
func (x *Executor) TryRead(ctx context.Context, f engine.Copy) engine.Result {
	src, err := x.source(f.Source)
	if err != nil {
		return failure(tier.CodeSourceVanished, "%v", err)
	}
	_, failed := x.read(ctx, src, f)
	return failed
}

// read reads the files of a copy; failed is nil where it could.
func (x *Executor) read(ctx context.Context, src Source, f engine.Copy) (
	content tier.Content, failed engine.Result) {
	content, err := src.Read(ctx, f.Log, f.Segment.Range)
	if err != nil {
		return content, x.unread(ctx, src, f, err)
	}
	return content, nil
}

// unread answers a segment that could not be read: damage is quarantined, unless it was accepted,
// and the rest is tried again.
func (x *Executor) unread(ctx context.Context, src Source, f engine.Copy, err error) engine.Result {
	damaged := errors.Is(err, ErrDamaged)
	if damaged {
		known, hashErr := x.lossKnown(ctx, src, f.Log, f.Segment)
		switch {
		case known:
			return engine.LossKnown{Segment: f.Segment}
		case hashErr != nil:
			return engine.Failed{Reason: classify(hashErr, tier.CodeUnreadable)}
		}
	}
	r := classify(err, tier.CodeUnreadable)
	return engine.Failed{Reason: r, Quarantine: damaged, Segment: f.Segment}
}

// reidentify records the new identity of files whose content is still that of the copy at pos.
func (x *Executor) reidentify(ctx context.Context, log tier.LogID, pos tier.Position,
	content tier.Content) (r engine.Result, done bool, err error) {
	known, err := x.c.Ledger.Copy(log, pos)
	if err != nil {
		if errors.Is(err, ErrVanished) {
			return nil, false, nil
		}
		return nil, false, fatal(err)
	}
	state, _ := x.c.Ledger.Log(log)
	// A copy that reaches further than the file does is of when nothing followed it so soon.
	further := known.Content.Range.Next > content.Range.Next
	if known.Epoch < state.Fresh || further || !sameContent(known.Content, content) {
		return nil, false, nil
	}
	_, err = x.append(ctx, tier.CopyReidentified{Log: log, Position: pos, Files: content.Files})
	if errors.Is(err, ErrRefused) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fatal(err)
	}
	return x.copied(log, pos)
}

// copied reads back what the ledger holds and reports it.
func (x *Executor) copied(log tier.LogID, pos tier.Position) (engine.Result, bool, error) {
	c, err := x.c.Ledger.Copy(log, pos)
	if err != nil {
		return nil, false, err
	}
	state, _ := x.c.Ledger.Log(log)
	return engine.Copied{Remote: c.Remote(), Offset: state.Copied, Next: state.Next}, true, nil
}

// sameContent reports whether both have the same files with the same bytes.
func sameContent(a, b tier.Content) bool {
	return a.Range.Base == b.Range.Base && len(a.Files) > 0 &&
		slices.EqualFunc(a.Files, b.Files, func(x, y tier.SourceFile) bool {
			return x.FileDigest == y.FileDigest
		})
}

// upload puts and verifies every file, and sees that the files on disk are still those that were
// read.
func (x *Executor) upload(ctx context.Context, src Source, log tier.LogID, a tier.Attempt,
	content tier.Content) error {
	for _, file := range content.Files {
		if err := x.uploadFile(ctx, src, log, a, file); err != nil {
			return err
		}
	}
	for _, file := range content.Files {
		now, err := src.Stat(ctx, log, file.Name)
		if err != nil {
			return fmt.Errorf("look at %s %s again: %w", log, file.Name, err)
		}
		if now != file.Stat {
			return fmt.Errorf("%s %s: %w while it was copied", log, file.Name, ErrChanged)
		}
	}
	return nil
}

func (x *Executor) uploadFile(ctx context.Context, src Source, log tier.LogID, a tier.Attempt,
	file tier.SourceFile) (err error) {
	r, err := src.Open(ctx, log, file.Name)
	if err != nil {
		return fmt.Errorf("open %s %s: %w", log, file.Name, err)
	}
	defer func() {
		if cerr := r.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("close %s %s: %w", log, file.Name, cerr)
		}
	}()
	opened, err := r.Stat()
	if err != nil {
		return fmt.Errorf("stat %s %s: %w", log, file.Name, err)
	}
	if opened != file.Stat {
		return fmt.Errorf("%s %s: %w between check and upload", log, file.Name, ErrChanged)
	}
	key := a.Object(log, file.Name)
	if err := x.c.Store.PutFile(ctx, key, r, file.Size); err != nil {
		return err
	}
	if planted.Is(planted.AdvanceBeforeVerify) {
		return nil
	}
	mode := x.c.Generation().Verify
	if err := x.c.Store.VerifyFile(ctx, key, file.FileDigest, mode, r); err != nil {
		return err
	}
	r.DropCache(0, file.Size)
	return nil
}

// finish puts the manifest entry and commits the attempt.
func (x *Executor) finish(ctx context.Context, log tier.LogID, a tier.Attempt,
	content tier.Content) (engine.Result, error) {
	c := tier.Copy{Attempt: a.ID, Position: a.Position, Epoch: a.Epoch, Content: content,
		ModTime: content.Files[0].Stat.ModTime, Verified: x.c.Generation().Verify,
		FinishedAt: x.c.Now()}
	state, _ := x.c.Ledger.Log(log)
	fact := tier.Fact{Position: a.Position, Epoch: a.Epoch, At: c.FinishedAt,
		Copied: x.copiedWith(log, content.Range), Add: &c, Incarnation: state.Incarnation}
	// It is read back: the copy is proved from it, and a store may keep less than it was given.
	if err := x.c.Store.ProveFact(ctx, log, a.ID, fact); err != nil {
		return engine.Failed{Reason: classify(err, tier.CodeStoreError), Attempt: &a}, nil
	}
	return x.commit(ctx, log, a, c)
}

// copiedWith is the copied offset that the fact may claim: never more than the ledger will hold
// once it is committed.
func (x *Executor) copiedWith(log tier.LogID, r tier.Range) tier.Offset {
	state, _ := x.c.Ledger.Log(log)
	if r.Base <= state.Copied {
		return max(state.Copied, r.Next)
	}
	return state.Copied
}

// commit makes the finished copy durable: from here on it counts.
func (x *Executor) commit(ctx context.Context, log tier.LogID, a tier.Attempt,
	c tier.Copy) (engine.Result, error) {
	_, err := x.append(ctx, tier.CopyFinished{Log: log, Copy: c})
	if errors.Is(err, ErrRefused) {
		// Abandoned meanwhile, or of an epoch that ended: it never counts, and is collected.
		return x.abandon(ctx, log, a, err.Error())
	}
	if err != nil {
		return nil, fatal(err)
	}
	r, _, err := x.copied(log, a.Position)
	return r, err
}
