package objstore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tierd/tierd/runtime/tier"
)

// The largest documents that are written and read, in bytes. A fact of three files has about 1.1
// kB; each leader epoch of its lineage takes 30 bytes more.
const (
	entryBytesMax      = 1 << 20
	checkpointBytesMax = 64 << 20
)

// blockOf is the block of the level that stands for the position.
func blockOf(level uint8, pos tier.Position) uint64 {
	return uint64(pos) / tier.CheckpointSpan(level)
}

// firstOf is the first position that the block of the level stands for.
func firstOf(level uint8, block uint64) tier.Position {
	return tier.Position(block * tier.CheckpointSpan(level))
}

func checkBlock(level uint8, block uint64) error {
	if level < 1 || level > tier.CheckpointLevelMax {
		return fmt.Errorf("checkpoint of level %d: want 1 to %d", level, tier.CheckpointLevelMax)
	}
	if block > blockOf(level, ^tier.Position(0)) {
		return fmt.Errorf("checkpoint of level %d: block %#x stands for no positions", level, block)
	}
	return nil
}

// entry is a manifest entry as it is stored: one fact, and where it belongs.
type entry struct {
	header
	Ledger  string         `json:"ledger"`
	Log     string         `json:"log"`
	Attempt tier.AttemptID `json:"attempt"`
	Fact    tier.Fact      `json:"fact"`
}

// checkpoint is a manifest checkpoint as it is stored. Facts ascend by position.
type checkpoint struct {
	header
	Ledger string      `json:"ledger"`
	Log    string      `json:"log"`
	Level  uint8       `json:"level"`
	Block  uint64      `json:"block"`
	Facts  []tier.Fact `json:"facts"`
}

// encodeEntry gives the bytes of the entry. They depend on the arguments alone.
func encodeEntry(ledger string, log tier.LogID, attempt tier.AttemptID, f tier.Fact) (
	[]byte, error) {
	if err := checkFact(&f); err != nil {
		return nil, err
	}
	if f.Add != nil && f.Add.Attempt != attempt {
		return nil, fmt.Errorf("position %d: copy of attempt %s, entry of attempt %s",
			f.Position, f.Add.Attempt, attempt)
	}
	data, err := seal(entry{header{documentVersion, kindEntry}, ledger, log.String(), attempt,
		canonical(f)})
	return data, checkSize(data, entryBytesMax, err)
}

// decodeEntry reads the entry that has its place at k.
func decodeEntry(data []byte, ledger string, k Key) (tier.Fact, error) {
	var e entry
	if err := unseal(data, kindEntry, &e); err != nil {
		return tier.Fact{}, err
	}
	if err := checkHome(e.Ledger, e.Log, ledger, k.Log); err != nil {
		return tier.Fact{}, err
	}
	if e.Fact.Position != k.Position || e.Attempt != k.Attempt {
		return tier.Fact{}, fmt.Errorf("is of position %d, attempt %s: want %d, %s: %w",
			e.Fact.Position, e.Attempt, k.Position, k.Attempt, tier.ErrDamaged)
	}
	if err := checkFact(&e.Fact); err != nil {
		return tier.Fact{}, fmt.Errorf("%w: %w", tier.ErrDamaged, err)
	}
	if e.Fact.Add != nil && e.Fact.Add.Attempt != e.Attempt {
		return tier.Fact{}, fmt.Errorf("copy of attempt %s in an entry of attempt %s: %w",
			e.Fact.Add.Attempt, e.Attempt, tier.ErrDamaged)
	}
	trim(&e.Fact)
	return e.Fact, nil
}

// encodeCheckpoint gives the bytes of the checkpoint. They depend on the arguments alone, whatever
// the order of the facts.
func encodeCheckpoint(ledger string, log tier.LogID, level uint8, block uint64,
	facts []tier.Fact) ([]byte, error) {
	c := checkpoint{header{documentVersion, kindCheckpoint}, ledger, log.String(), level, block,
		make([]tier.Fact, len(facts))}
	for i, f := range facts {
		c.Facts[i] = canonical(f)
	}
	slices.SortStableFunc(c.Facts, byPosition)
	if err := checkFacts(level, block, c.Facts); err != nil {
		return nil, err
	}
	data, err := seal(c)
	return data, checkSize(data, checkpointBytesMax, err)
}

// decodeCheckpoint reads the checkpoint that has its place at k.
func decodeCheckpoint(data []byte, ledger string, k Key) ([]tier.Fact, error) {
	var c checkpoint
	if err := unseal(data, kindCheckpoint, &c); err != nil {
		return nil, err
	}
	if err := checkHome(c.Ledger, c.Log, ledger, k.Log); err != nil {
		return nil, err
	}
	if c.Level != k.Level || c.Block != k.Block {
		return nil, fmt.Errorf("is of level %d, block %#x: want %d, %#x: %w",
			c.Level, c.Block, k.Level, k.Block, tier.ErrDamaged)
	}
	if err := checkFacts(c.Level, c.Block, c.Facts); err != nil {
		return nil, fmt.Errorf("%w: %w", tier.ErrDamaged, err)
	}
	for i := range c.Facts {
		trim(&c.Facts[i])
	}
	return c.Facts, nil
}

// checkHome checks that a document lies where it belongs: a copied or misplaced one proves nothing.
func checkHome(ledger, log, wantLedger string, wantLog tier.LogID) error {
	if ledger != wantLedger || log != wantLog.String() {
		return fmt.Errorf("is of ledger %q, log %q: want %q, %q: %w",
			ledger, log, wantLedger, wantLog, tier.ErrDamaged)
	}
	return nil
}

func checkSize(data []byte, bytesMax int, err error) error {
	if err == nil && len(data) > bytesMax {
		return fmt.Errorf("%d bytes: want at most %d", len(data), bytesMax)
	}
	return err
}

func byPosition(a, b tier.Fact) int { return cmp.Compare(a.Position, b.Position) }

// checkFacts checks what a checkpoint holds.
func checkFacts(level uint8, block uint64, facts []tier.Fact) error {
	if err := checkBlock(level, block); err != nil {
		return err
	}
	for i := range facts {
		f := &facts[i]
		if blockOf(level, f.Position) != block {
			return fmt.Errorf("position %d is not in block %#x of level %d", f.Position, block, level)
		}
		if i > 0 && facts[i-1].Position >= f.Position {
			return fmt.Errorf("position %d follows position %d", f.Position, facts[i-1].Position)
		}
		if err := checkFact(f); err != nil {
			return err
		}
	}
	return nil
}

// checkFact checks the invariants of one fact, before it is written and after it was read.
func checkFact(f *tier.Fact) error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("fact at position %d: "+format, append([]any{f.Position}, args...)...)
	}
	var set []string
	if f.Add != nil {
		set = append(set, "add")
	}
	if f.Hole != nil {
		set = append(set, "hole")
	}
	if f.Start != nil {
		set = append(set, "start")
	}
	if f.Clip != nil {
		set = append(set, "clip")
	}
	if f.Open != nil {
		set = append(set, "open")
	}
	switch {
	case len(set) != 1:
		return wrong("want one of add, hole, start, clip and open, not [%s]", strings.Join(set, " "))
	case f.Copied < 0:
		return wrong("copied offset %d is negative", f.Copied)
	case f.Start != nil && *f.Start < 0, f.Clip != nil && *f.Clip < 0,
		f.Open != nil && *f.Open < 0:
		return wrong("%s at a negative offset", set[0])
	case f.Hole != nil && (f.Hole.Empty() || f.Hole.Base < 0):
		return wrong("hole %s is no range", f.Hole.Range)
	case f.Add == nil:
		return nil
	case f.Add.Position != f.Position || f.Add.Epoch != f.Epoch:
		return wrong("copy of position %d, epoch %d in a fact of epoch %d",
			f.Add.Position, f.Add.Epoch, f.Epoch)
	case f.Add.Content.Range.Empty() || f.Add.Content.Range.Base < 0:
		return wrong("copy of %s, which is no range", f.Add.Content.Range)
	case len(f.Add.Content.Files) == 0:
		return wrong("copy without files")
	}
	for i, file := range f.Add.Content.Files {
		if err := CheckName(file.Name); err != nil {
			return wrong("%w", err)
		}
		for _, other := range f.Add.Content.Files[:i] {
			if other.Name == file.Name {
				return wrong("two files %q", file.Name)
			}
		}
		if file.Size < 0 {
			return wrong("file %q of %d bytes", file.Name, file.Size)
		}
	}
	return nil
}

// canonical returns f with its empty lists not nil, so that equal facts have equal bytes.
func canonical(f tier.Fact) tier.Fact {
	if f.Add != nil && f.Add.Content.Lineage == nil {
		add := *f.Add
		add.Content.Lineage = []tier.EpochStart{}
		f.Add = &add
	}
	return f
}

// trim makes the empty lists of a decoded fact nil, as they are in a fact that was never stored.
func trim(f *tier.Fact) {
	if f.Add != nil && len(f.Add.Content.Lineage) == 0 {
		f.Add.Content.Lineage = nil
	}
}
