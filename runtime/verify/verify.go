package verify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/tier"
)

// Kind is a stable word for what was found.
type Kind string

// The kinds of findings.
const (
	KindManifest Kind = "manifest" // an object of the manifest is damaged, missing or says otherwise
	KindStale    Kind = "stale"    // the manifest knows more than the ledger
	KindLost     Kind = "lost"     // an object is not there
	KindSize     Kind = "size"     // an object has another size
	KindContent  Kind = "content"  // an object has another hash
	KindBatch    Kind = "batch"    // a record batch contradicts its checksum, or its place
	KindGap      Kind = "gap"      // offsets that nothing accounts for
	KindHole     Kind = "hole"     // offsets that are recorded as being in neither tier
	KindOrphan   Kind = "orphan"   // an object that nothing names
	KindOwner    Kind = "owner"    // the object that says whose ledger it is; of no log
	// KindUnread is an object, or a listing, that the store did not give: what it has is not known.
	KindUnread Kind = "unread"
)

// Finding is something that is not as it should be, or that is worth knowing.
type Finding struct {
	Kind     Kind
	Log      tier.LogID
	Range    tier.Range    // of the copy or hole; empty where it is of neither
	Position tier.Position // of the copy, where it is of one
	Object   string        // key in the store; "" where it is of none
	Text     string
	Notice   bool // it is as it should be, and worth knowing
}

// Fails tells whether something is not as it should be.
func (f *Finding) Fails() bool { return !f.Notice && f.Kind != KindUnread }

// Store is the object store, as far as verifying asks it. Methods are safe for concurrent use;
// tier.ErrVanished and tier.ErrDamaged are wrapped. What is tier.ErrUnread is a finding of its own;
// any other error ends the look.
type Store interface {
	Files
	// Facts reads the manifest of a log, and what in it is not as it should be, by key.
	Facts(ctx context.Context, log tier.LogID) ([]tier.Fact, map[string]error, error)
	// Entry reads an entry of the manifest, and Block a checkpoint, each by its name, whatever else
	// would serve in its place; key is where it lies.
	Entry(ctx context.Context, log tier.LogID, pos tier.Position, attempt tier.AttemptID) (
		f tier.Fact, key string, err error)
	Block(ctx context.Context, log tier.LogID, level uint8, block uint64) (facts []tier.Fact,
		key string, err error)
	// Objects lists all objects of logs.
	Objects(ctx context.Context, fn func(tier.StoredObject) error) error
}

// Files is the part of a Store that has the objects of copies.
type Files interface {
	// FileKey is the key of a file.
	FileKey(k tier.ObjectKey) (string, error)
	// StatFile checks that the object is there with the size.
	StatFile(ctx context.Context, k tier.ObjectKey, size int64) error
	// ReadFile fills the buffers with the bytes from off on.
	ReadFile(ctx context.Context, k tier.ObjectKey, off int64, bufs ...[]byte) error
}

// Log is what the ledger holds of a log.
type Log struct {
	ID           tier.LogID
	Layout       tier.Layout
	Start        tier.Offset // of the readable log
	Copied       tier.Offset
	Holes        []tier.Hole
	Positions    tier.Position  // that were handed out
	Facts        []tier.Fact    // ascending by position
	Counted      []tier.Counted // ascending by base
	Unpublished  []tier.Position
	Attempts     []tier.AttemptID // under way or abandoned
	Checkpointed []uint64         // leading blocks of each level that the store has
}

// Copies returns the copies of the log that count, each once, ascending by base.
func (l *Log) Copies() []tier.Copy {
	var out []tier.Copy
	seen := map[tier.Position]bool{}
	for _, c := range l.Counted {
		if f, ok := l.fact(c.Position); ok && f.Add != nil && !seen[c.Position] {
			seen[c.Position] = true
			out = append(out, *f.Add)
		}
	}
	return out
}

func (l *Log) fact(pos tier.Position) (tier.Fact, bool) {
	i, ok := l.find(pos)
	if !ok {
		return tier.Fact{}, false
	}
	return l.Facts[i], true
}

// find returns where the fact of the position is, or would be.
func (l *Log) find(pos tier.Position) (int, bool) {
	return slices.BinarySearchFunc(l.Facts, pos, func(f tier.Fact, pos tier.Position) int {
		return int(int64(f.Position) - int64(pos))
	})
}

// Gaps returns the offsets between start and copied offset that neither a copy nor a hole accounts
// for, and the recorded holes, as findings.
func (l *Log) Gaps() []Finding {
	var out []Finding
	left := tier.RangeSet{}.Add(tier.Range{Base: l.Start, Next: l.Copied})
	for _, c := range l.Counted {
		left = left.Subtract(c.Range)
	}
	for _, h := range l.Holes {
		left = left.Subtract(h.Range)
		if h.Next <= l.Start {
			continue
		}
		for _, r := range l.uncopied(h.Range) { // what it had may have come back, and been copied
			out = append(out, Finding{Kind: KindHole, Log: l.ID, Range: r, Notice: true,
				Text: fmt.Sprintf("in neither tier: %s, recorded %s", h.Cause, h.At)})
		}
	}
	for _, r := range left {
		out = append(out, Finding{Kind: KindGap, Log: l.ID, Range: r,
			Text: "below the copied offset, and neither a copy nor a hole has them"})
	}
	return out
}

// uncopied is what of the range no copy that counts has.
func (l *Log) uncopied(r tier.Range) tier.RangeSet {
	left := tier.RangeSet{}.Add(r)
	i, _ := slices.BinarySearchFunc(l.Counted, r.Base, func(c tier.Counted, b tier.Offset) int {
		return cmp.Compare(c.Base, b)
	})
	for i = max(i-1, 0); i < len(l.Counted) && l.Counted[i].Base < r.Next; i++ {
		left = left.Subtract(l.Counted[i].Range)
	}
	return left
}

// Sizes looks at each object of the copy.
func Sizes(ctx context.Context, s Files, log tier.LogID, c *tier.Copy) ([]Finding, error) {
	var out []Finding
	for _, file := range c.Content.Files {
		k := c.Object(log, file.Name)
		f, err := found(s, log, c, k, KindSize, s.StatFile(ctx, k, file.Size))
		if err != nil {
			return out, err
		}
		out = append(out, f...)
	}
	return out, nil
}

// found makes a finding of an error that says something about the object; any other stays one.
func found(s Files, log tier.LogID, c *tier.Copy, k tier.ObjectKey, kind Kind, err error) (
	[]Finding, error) {
	switch {
	case err == nil:
		return nil, nil
	case errors.Is(err, tier.ErrVanished):
		kind = KindLost
	case errors.Is(err, tier.ErrUnread):
		kind = KindUnread
	case !errors.Is(err, tier.ErrDamaged):
		return nil, err
	}
	key, errKey := s.FileKey(k)
	if errKey != nil {
		return nil, errKey
	}
	return []Finding{{Kind: kind, Log: log, Range: c.Content.Range, Position: c.Position, Object: key,
		Text: err.Error()}}, nil
}

// blockBytes is how much of an object is read at once.
const blockBytes = 4 << 20

// Reading reads objects from end to end. The zero value reads as fast as it can.
type Reading struct {
	// Pace is called before so many bytes are read; it may wait. Nil never waits.
	Pace func(ctx context.Context, bytes int) error
	// Done is told of bytes that were read. It may be nil.
	Done func(bytes int64)
	buf  []byte
}

// Content reads every object of the copy back, and compares size, SHA-256 and CRC32C; in layouts of
// record batches also the checksum, the order and the range of each.
func (r *Reading) Content(ctx context.Context, s Files, log tier.LogID, layout tier.Layout,
	c *tier.Copy) ([]Finding, error) {
	var out []Finding
	for i, file := range c.Content.Files {
		k := c.Object(log, file.Name)
		var walker *kbatch.Walker
		if format, ok := kbatch.FormatOf(layout); i == 0 && ok {
			order := kbatch.NewOrder(c.Content.Range)
			walker = format.NewWalker(file.Size, func(b kbatch.Batch) error { return order.Add(&b) })
		}
		kind, err := r.file(ctx, s, k, file.FileDigest, walker)
		f, err := found(s, log, c, k, kind, err)
		if err != nil {
			return out, err
		}
		out = append(out, f...)
	}
	return out, nil
}

// file reads one object.
func (r *Reading) file(ctx context.Context, s Files, k tier.ObjectKey, d tier.FileDigest,
	walker *kbatch.Walker) (Kind, error) {
	if err := s.StatFile(ctx, k, d.Size); err != nil {
		return KindSize, err
	}
	if n := min(blockBytes, d.Size); int64(len(r.buf)) < n {
		r.buf = make([]byte, n)
	}
	sha, crc := sha256.New(), crc32.New(crc32.MakeTable(crc32.Castagnoli))
	var walked error
	for off := int64(0); off < d.Size; {
		block := r.buf[:min(blockBytes, d.Size-off)]
		if r.Pace != nil {
			if err := r.Pace(ctx, len(block)); err != nil {
				return "", err
			}
		}
		if err := s.ReadFile(ctx, k, off, block); err != nil {
			return KindSize, err
		}
		sha.Write(block)
		crc.Write(block)
		if walker != nil && walked == nil {
			_, walked = walker.Write(block)
		}
		if off += int64(len(block)); r.Done != nil {
			r.Done(int64(len(block)))
		}
	}
	if walker != nil && walked == nil {
		walked = walker.Close()
	}
	if got := tier.SHA256(sha.Sum(nil)); got != d.SHA256 {
		err := fmt.Errorf("sha256 %s, want %s: %w", got, d.SHA256, tier.ErrDamaged)
		if walked != nil {
			err = fmt.Errorf("%w: %w", walked, err)
		}
		return KindContent, err
	}
	if got := crc.Sum32(); got != d.CRC32C {
		return KindContent, fmt.Errorf("crc32c %08x, want %08x: %w", got, d.CRC32C, tier.ErrDamaged)
	}
	return KindBatch, walked
}

// Chosen tells whether a subset of the fraction, from 0 to 1, holds the copy. Which ones it holds
// depends on the seed, so that checks of a part come to all in time.
func Chosen(c *tier.Copy, fraction float64, seed uint64) bool {
	h := sha256.Sum256(binary.BigEndian.AppendUint64(c.Attempt[:len(c.Attempt):len(c.Attempt)], seed))
	return float64(binary.BigEndian.Uint64(h[:])>>11)/(1<<53) < fraction
}
