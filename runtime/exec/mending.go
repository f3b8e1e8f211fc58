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

// MendAt is where a look at the manifest of a log stands: before the first entry at the position or
// above it or, where Level is not 0, before the checkpoint of the block; then Position is 0. The
// zero value is the beginning.
type MendAt struct {
	Position tier.Position `json:"position"`
	Level    uint8         `json:"level,omitempty"`
	Block    uint64        `json:"block,omitempty"`
}

// Behind is where a look goes on that leaves out the object at at.
func (at MendAt) Behind() MendAt {
	if at.Level == 0 {
		at.Position++
	} else {
		at.Block++
	}
	return at
}

// Mended is what a look at one object came to.
type Mended struct {
	At      MendAt
	Mending Mending
	Bytes   int64 // that the store gave of a checkpoint; entries are small, and not counted
	Why     error // nil where it is sound
}

// WithheldError says that the store did not give an object, or did not take it. Whether it gives
// and takes others is another question.
type WithheldError struct{ Err error }

// Error is what the store said; it names the key.
func (e *WithheldError) Error() string { return e.Err.Error() }

// Unwrap returns it.
func (e *WithheldError) Unwrap() error { return e.Err }

// MendManifest looks at each object that the manifest of the log is to have by what the ledger
// holds: behind from, the entries of copies that are part of the log, of holes and of marks; then
// the checkpoints. What is gone or damaged it writes again, with what the ledger holds of it.
// Nothing is recorded: a stop anywhere leaves less to be written, and whoever comes next finds it
// by looking.
//
// An object that is sound and says otherwise, or was written by a newer tierd, stays: whose it is,
// only a rebuild finds out. An entry of a copy that left its log stays away. Each object is told,
// with why it was not good; an error of tell ends the look.
//
// reached is where to go on from after an error. It is a WithheldError where it is of the object
// there; whoever will not wait for that one goes on behind it. One that wraps ErrRefused says that
// nothing may be written, since the manifest knows more than the ledger.
func (x *Executor) MendManifest(ctx context.Context, log tier.LogID, from MendAt,
	tell func(Mended) error) (reached MendAt, err error) {
	if from.Level == 0 {
		pos, err := x.mendEntries(ctx, log, from.Position, tell)
		if err != nil {
			return MendAt{Position: pos}, err
		}
		from = MendAt{Level: 1}
	}
	for {
		// The look took time, in which there may be others, or some are not wanted any more.
		state, _ := x.c.Ledger.Log(log)
		at, more := from.block(state.Checkpoints)
		if !more {
			return at, nil
		}
		if err := x.mendCheckpoint(ctx, log, at, tell); err != nil {
			return at, err
		}
		from = at.Behind()
	}
}

// block is the first checkpoint at at or behind it, where there are so many of each level; a higher
// one stands for those below. more is false where there is none.
func (at MendAt) block(blocks []uint64) (_ MendAt, more bool) {
	for ; int(at.Level) <= len(blocks); at.Level, at.Block = at.Level+1, 0 {
		if int(at.Level) < len(blocks) {
			at.Block = max(at.Block, blocks[at.Level]*tier.CheckpointRadix)
		}
		if at.Block < blocks[at.Level-1] {
			return at, true
		}
	}
	return at, false
}

// mendEntries looks at the entries from the position on; reached is that of the one that failed.
func (x *Executor) mendEntries(ctx context.Context, log tier.LogID, from tier.Position,
	tell func(Mended) error) (reached tier.Position, err error) {
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
	return from, nil
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
	tell func(Mended) error) error {
	f, err := x.toldFact(log, pos)
	if f == nil || err != nil {
		return err
	}
	var attempt tier.AttemptID
	if f.Add != nil {
		attempt = f.Add.Attempt
	}
	m := mend{log: log, at: MendAt{Position: pos}}
	m.look = func() (_ int64, otherwise, err error) {
		got, err := x.c.Store.Fact(ctx, log, pos, attempt)
		if err == nil && !f.Says(&got) {
			otherwise = fmt.Errorf("the entry at position %d, of attempt %s, says otherwise than the ledger",
				pos, attempt)
		}
		return 0, otherwise, err
	}
	m.write = func() (wanted bool, err error) {
		if f, err = x.toldFact(log, pos); f == nil || err != nil {
			return false, err
		}
		return true, withheld(x.c.Store.ProveFact(ctx, log, attempt, *f))
	}
	return x.mend(ctx, &m, tell)
}

func (x *Executor) mendCheckpoint(ctx context.Context, log tier.LogID, at MendAt,
	tell func(Mended) error) error {
	facts, err := x.blockFacts(log, at.Level, at.Block)
	if err != nil {
		return err
	}
	m := mend{log: log, at: at}
	m.look = func() (size int64, otherwise, err error) {
		got, size, err := x.c.Store.Checkpoint(ctx, log, at.Level, at.Block)
		if pos, differ := firstUnsaid(facts, got); err == nil && differ {
			otherwise = fmt.Errorf("checkpoint %d of level %d says otherwise of position %d than the ledger",
				at.Block, at.Level, pos)
		}
		return size, otherwise, err
	}
	m.write = func() (wanted bool, err error) {
		state, _ := x.c.Ledger.Log(log)
		if now, more := at.block(state.Checkpoints); !more || now != at {
			return false, nil
		}
		return true, withheld(x.c.Store.PutCheckpoint(ctx, log, at.Level, at.Block, facts))
	}
	return x.mend(ctx, &m, tell)
}

// withheld says of an error of the store that it is of one object.
func withheld(err error) error {
	if err == nil {
		return nil
	}
	return &WithheldError{err}
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

// mend is one object that is looked at.
type mend struct {
	log tier.LogID
	at  MendAt
	// look reads it; otherwise is set where it is sound and not what the ledger says.
	look func() (size int64, otherwise, err error)
	// write writes it again, where it is still wanted: the look took time, in which it may have left
	// its log.
	write func() (wanted bool, err error)
}

// mend has an object written again that is gone or damaged, and tells of it. It looks twice: what a
// store gives less of once is sound, and an upload in its place may be cut. Any other error of a
// look leaves open what is there, but that it is a newer one's.
func (x *Executor) mend(ctx context.Context, m *mend, tell func(Mended) error) error {
	told := Mended{At: m.at, Mending: MendSound}
	say := func(what Mending, why error) error {
		told.Mending, told.Why = what, why
		return tell(told)
	}
	var lacks error
	for range 2 {
		size, otherwise, err := m.look()
		told.Bytes += size
		switch {
		case errors.Is(err, ErrVanished), errors.Is(err, ErrDamaged):
			lacks = err
			continue
		case errors.Is(err, tier.ErrNewer):
			return say(MendStrays, err)
		case err != nil:
			return withheld(err)
		case otherwise != nil:
			return say(MendStrays, otherwise)
		}
		return say(MendSound, nil)
	}
	if planted.Is(planted.LostNotSaid) {
		return say(MendAgain, lacks)
	}
	if why := x.MayRecord(ctx, m.log); why != nil {
		if why.Code == tier.CodeLedgerStale {
			return fmt.Errorf("%w: %s", ErrRefused, why.Text)
		}
		return withheld(fmt.Errorf("%v; whether it may be written again: %s", lacks, why.Text))
	}
	written, err := m.write()
	switch {
	case err != nil:
		return fmt.Errorf("%v; to write it again: %w", lacks, err)
	case !written:
		return nil
	}
	return say(MendAgain, lacks)
}
