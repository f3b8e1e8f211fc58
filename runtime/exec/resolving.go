package exec

import (
	"context"
	"errors"
	"slices"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// resolve finds out what an attempt of unknown outcome left behind. If all its objects are in the
// store with the content that the source still has, it is finished; if the look shows that one is
// not, it is abandoned, and its names stay as a tombstone: "not there" may only mean "not there
// yet". A look that fails decides nothing.
func (x *Executor) resolve(ctx context.Context, f engine.Resolve) (engine.Result, error) {
	a, err := x.c.Ledger.Attempt(f.Log, f.Attempt.Position)
	if errors.Is(err, ErrVanished) || err == nil && a.ID != f.Attempt.ID {
		return x.settled(f)
	}
	if err != nil {
		return nil, fatal(err)
	}
	if a.Epoch != x.epoch(f.Log) {
		return x.abandon(ctx, f.Log, a, "its tier epoch is over")
	}
	fact, err := x.c.Store.Fact(ctx, f.Log, a.Position, a.ID)
	switch {
	case err == nil && fact.Add != nil:
		return x.finishFound(ctx, f.Log, a, *fact.Add)
	case err == nil || errors.Is(err, ErrDamaged):
		return x.abandon(ctx, f.Log, a, "its manifest entry is damaged")
	case !errors.Is(err, ErrVanished):
		return engine.Failed{Reason: classify(err, tier.CodeStoreError), Attempt: &a}, nil
	}
	return x.finishUploads(ctx, f, a)
}

// settled answers an attempt that is under way no more: it was finished or abandoned.
func (x *Executor) settled(f engine.Resolve) (engine.Result, error) {
	c, err := x.c.Ledger.Copy(f.Log, f.Attempt.Position)
	if err == nil && c.Attempt == f.Attempt.ID {
		r, _, err := x.copied(f.Log, f.Attempt.Position)
		return r, err
	}
	if err != nil && !errors.Is(err, ErrVanished) {
		return nil, fatal(err)
	}
	state, _ := x.c.Ledger.Log(f.Log)
	done := engine.Abandoned{Next: state.Next}
	a, _, err := x.c.Ledger.Abandoned(f.Log, f.Attempt.Position)
	if err != nil && !errors.Is(err, ErrVanished) {
		return nil, fatal(err)
	}
	if err == nil && a.ID == f.Attempt.ID {
		// By a call that was given up: whoever asks now has to clear it. Counted from now, nothing of
		// it goes too early.
		done.Tombstone = &engine.Tombstone{Position: a.Position, At: x.c.Now()}
	}
	return done, nil
}

// finishFound commits an attempt whose manifest entry is in the store, if all its objects are.
func (x *Executor) finishFound(ctx context.Context, log tier.LogID, a tier.Attempt,
	c tier.Copy) (engine.Result, error) {
	for _, file := range c.Content.Files {
		err := x.c.Store.VerifyFile(ctx, a.Object(log, file.Name), file.FileDigest,
			tier.VerifyFull, nil)
		if r, stop, err := x.verdict(ctx, log, a, err); stop {
			return r, err
		}
	}
	return x.commit(ctx, log, a, c)
}

// finishUploads looks at the objects of an attempt that got no manifest entry.
func (x *Executor) finishUploads(ctx context.Context, f engine.Resolve,
	a tier.Attempt) (engine.Result, error) {
	src, err := x.source(f.Source)
	if err != nil {
		return x.abandon(ctx, f.Log, a, err.Error())
	}
	// The cheap question first: most attempts that a crash left behind never came this far.
	last := a.Names[len(a.Names)-1]
	local, err := src.Stat(ctx, f.Log, last)
	if err != nil {
		return x.unseen(ctx, f.Log, a, err)
	}
	err = x.c.Store.StatFile(ctx, a.Object(f.Log, last), local.Size)
	if r, stop, err := x.verdict(ctx, f.Log, a, err); stop {
		return r, err
	}
	content, err := src.Read(ctx, f.Log, a.Range)
	if err != nil {
		return x.unseen(ctx, f.Log, a, err)
	}
	if !sameNames(a.Names, content.Files) {
		return x.abandon(ctx, f.Log, a, "the segment has other files now than were being copied")
	}
	for _, file := range content.Files {
		err := x.c.Store.VerifyFile(ctx, a.Object(f.Log, file.Name), file.FileDigest,
			tier.VerifyFull, nil)
		if r, stop, err := x.verdict(ctx, f.Log, a, err); stop {
			return r, err
		}
	}
	return x.finish(ctx, f.Log, a, content)
}

// unseen answers a look at the source that gave an error.
func (x *Executor) unseen(ctx context.Context, log tier.LogID, a tier.Attempt,
	err error) (engine.Result, error) {
	for _, gone := range []error{ErrVanished, ErrChanged, ErrDamaged} {
		if errors.Is(err, gone) {
			return x.abandon(ctx, log, a, "the source no longer has what was being copied")
		}
	}
	return engine.Failed{Reason: classify(err, tier.CodeUnreadable), Attempt: &a}, nil
}

// verdict answers a look at one object: stop is true where the answer is already known.
func (x *Executor) verdict(ctx context.Context, log tier.LogID, a tier.Attempt,
	err error) (r engine.Result, stop bool, fatalErr error) {
	switch {
	case err == nil:
		return nil, false, nil
	case errors.Is(err, ErrVanished) || errors.Is(err, ErrDamaged):
		r, fatalErr = x.abandon(ctx, log, a, err.Error())
		return r, true, fatalErr
	default:
		return engine.Failed{Reason: classify(err, tier.CodeStoreError), Attempt: &a}, true, nil
	}
}

func sameNames(names []string, files []tier.SourceFile) bool {
	return slices.EqualFunc(names, files, func(name string, f tier.SourceFile) bool {
		return name == f.Name
	})
}

func (x *Executor) abandon(ctx context.Context, log tier.LogID, a tier.Attempt,
	cause string) (engine.Result, error) {
	at := x.c.Now()
	_, err := x.append(ctx, tier.CopyAbandoned{Log: log, Position: a.Position, Cause: cause, At: at})
	if errors.Is(err, ErrRefused) {
		return x.settled(engine.Resolve{Log: log, Attempt: a})
	}
	if err != nil {
		return nil, fatal(err)
	}
	state, _ := x.c.Ledger.Log(log)
	return engine.Abandoned{Next: state.Next,
		Tombstone: &engine.Tombstone{Position: a.Position, At: at}}, nil
}
