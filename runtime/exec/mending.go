package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tierd/tierd/runtime/planted"
	"github.com/tierd/tierd/runtime/tier"
)

// Mending is what a look at one object of a manifest came to.
type Mending string

// What a look may come to.
const (
	MendSound  Mending = "good"
	MendAgain  Mending = "mended" // it was gone or damaged, and was written again
	MendStrays Mending = "bad"    // it is sound, and not what the ledger says; nothing was written
)

// MendManifest looks at each object that the manifest of the log is to have by what the ledger
// holds: from the position on, the entries of copies that are part of the log, of holes and of
// marks; then the checkpoints. What is gone or damaged it writes again, with what the ledger holds
// of it. Nothing is recorded: a stop anywhere leaves less to be written, and whoever comes next
// finds it by looking.
//
// An object that is sound and says otherwise, or was written by a newer tierd, stays: whose it is,
// only a rebuild finds out. An entry of a copy that left its log stays away. Each object is told,
// with why it was not good; an error of tell ends the look.
//
// reached is the position to go on from after an error. One that wraps ErrRefused says that nothing
// may be written, since the manifest knows more than the ledger.
func (x *Executor) MendManifest(ctx context.Context, log tier.LogID, from tier.Position,
	tell func(m Mending, why error) error) (reached tier.Position, err error) {
	state, ok := x.c.Ledger.Log(log)
	if !ok {
		return from, nil
	}
	for ; from < state.Next; from += tier.CheckpointRadix {
		facts, err := x.c.Ledger.Facts(log, from, from+tier.CheckpointRadix)
		if err != nil {
			return from, err
		}
		for i := range facts {
			if err := x.mendEntry(ctx, log, facts[i].Position, tell); err != nil {
				return facts[i].Position, err
			}
		}
	}
	for i, n := range state.Checkpoints {
		level, block := uint8(i+1), uint64(0)
		if i+1 < len(state.Checkpoints) {
			block = state.Checkpoints[i+1] * tier.CheckpointRadix // a higher one stands for those below
		}
		for ; block < n; block++ {
			if err := x.mendCheckpoint(ctx, log, level, block, tell); err != nil {
				return state.Next, err
			}
		}
	}
	return state.Next, nil
}

// toldFact is the fact that the manifest is to have an entry of, by what the ledger holds now; nil
// where it is to have none. What is not published yet is for the engine to have published.
func (x *Executor) toldFact(log tier.LogID, pos tier.Position) (*tier.Fact, error) {
	facts, err := x.c.Ledger.Facts(log, pos, pos+1)
	if err != nil || len(facts) == 0 {
		return nil, err
	}
	f := &facts[0]
	state, _ := x.c.Ledger.Log(log)
	if f.Add == nil {
		if slices.Contains(state.Unpublished, pos) {
			return nil, nil
		}
		return f, nil
	}
	table := x.c.Ledger.Table(log.Table)
	_, left := ofLog(&state, &table, f)
	if (left || table.Leaves() || f.Epoch < table.Fresh) && !planted.Is(planted.LeftSaidAgain) {
		return nil, nil // it left the log, or is about to
	}
	return f, nil
}

func (x *Executor) mendEntry(ctx context.Context, log tier.LogID, pos tier.Position,
	tell func(Mending, error) error) error {
	f, err := x.toldFact(log, pos)
	if f == nil || err != nil {
		return err
	}
	var attempt tier.AttemptID
	if f.Add != nil {
		attempt = f.Add.Attempt
	}
	look := func() (otherwise, err error) {
		got, err := x.c.Store.Fact(ctx, log, pos, attempt)
		if err == nil && !f.Says(&got) {
			otherwise = fmt.Errorf("the entry at position %d, of attempt %s, says otherwise than the ledger",
				pos, attempt)
		}
		return otherwise, err
	}
	return x.mend(ctx, log, look, tell, func() (bool, error) {
		// The look took time, in which the copy may have left its log.
		if f, err = x.toldFact(log, pos); f == nil || err != nil {
			return false, err
		}
		return true, x.c.Store.ProveFact(ctx, log, attempt, *f)
	})
}

func (x *Executor) mendCheckpoint(ctx context.Context, log tier.LogID, level uint8, block uint64,
	tell func(Mending, error) error) error {
	facts, err := x.blockFacts(log, level, block)
	if err != nil {
		return err
	}
	look := func() (otherwise, err error) {
		got, err := x.c.Store.Checkpoint(ctx, log, level, block)
		if pos, differ := firstUnsaid(facts, got); err == nil && differ {
			otherwise = fmt.Errorf("checkpoint %d of level %d says otherwise of position %d than the ledger",
				block, level, pos)
		}
		return otherwise, err
	}
	return x.mend(ctx, log, look, tell, func() (bool, error) {
		return true, x.c.Store.PutCheckpoint(ctx, log, level, block, facts)
	})
}

// firstUnsaid is the position of the first fact that is not among those told; both ascend.
func firstUnsaid(facts, told []tier.Fact) (pos tier.Position, found bool) {
	for i := range facts {
		for len(told) > 0 && told[0].Position < facts[i].Position {
			told = told[1:]
		}
		if len(told) == 0 || told[0].Position != facts[i].Position || !facts[i].Says(&told[0]) {
			return facts[i].Position, true
		}
	}
	return 0, false
}

// mend has an object written again that is gone or damaged, and tells of it. It looks twice: what a
// store gives less of once is sound, and an upload in its place may be cut. Any other error of a
// look leaves open what is there, but that it is a newer one's.
func (x *Executor) mend(ctx context.Context, log tier.LogID, look func() (otherwise, err error),
	tell func(Mending, error) error, write func() (bool, error)) error {
	var lacks error
	for range 2 {
		otherwise, err := look()
		switch {
		case errors.Is(err, ErrVanished), errors.Is(err, ErrDamaged):
			lacks = err
			continue
		case errors.Is(err, tier.ErrNewer):
			return tell(MendStrays, err)
		case err != nil:
			return err
		case otherwise != nil:
			return tell(MendStrays, otherwise)
		}
		return tell(MendSound, nil)
	}
	if planted.Is(planted.LostNotSaid) {
		return tell(MendAgain, lacks)
	}
	if why := x.MayRecord(ctx, log); why != nil {
		if why.Code == tier.CodeLedgerStale {
			return fmt.Errorf("%w: %s", ErrRefused, why.Text)
		}
		return errors.New(why.Text)
	}
	written, err := write()
	switch {
	case err != nil:
		return fmt.Errorf("%v; to write it again: %w", lacks, err)
	case !written:
		return nil
	}
	return tell(MendAgain, lacks)
}
