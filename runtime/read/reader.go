package read

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/tierd/tierd/runtime/tier"
)

// ErrUnknownLog is returned for a log that neither ledger nor source knows.
var ErrUnknownLog = errors.New("no such log")

// ErrGone ends a read that was under way when its offsets left the log, once the grace is over.
var ErrGone = errors.New("left the log while it was read")

// ErrIndivisible is returned for a segment that is too large for one answer and, as its layout has
// no records that tierd knows, cannot be cut.
var ErrIndivisible = errors.New("cannot be cut")

// ErrAway is returned for offsets behind what was copied, while their source cannot be read. They
// are not out of range: who was told so would begin elsewhere.
var ErrAway = errors.New("its source cannot be read now")

// OutOfRange says that an offset is none of the log's; [Start, End) are. It is not below Start
// alone: an offset equal to End is where the next record will be, and reads as empty.
type OutOfRange struct {
	Log        tier.LogID
	Offset     tier.Offset
	Start, End tier.Offset
}

// Error implements error.
func (e *OutOfRange) Error() string {
	return fmt.Sprintf("log %s: offset %d is out of range: it has [%d, %d)", e.Log, e.Offset, e.Start,
		e.End)
}

// Ledger is the durable record, as far as reading asks it. Methods are safe for concurrent use.
type Ledger interface {
	// Logs returns the ids of all logs, ascending.
	Logs() []tier.LogID
	// Log returns a copy of the log's durable state.
	Log(id tier.LogID) (tier.LogState, bool)
	// Table returns a copy of the table's durable state.
	Table(name string) tier.TableState
	// Attempt returns the attempt under way at the position; tier.ErrVanished if there is none.
	Attempt(id tier.LogID, pos tier.Position) (tier.Attempt, error)
	// Facts returns the log's facts at the positions [from, to), ascending.
	Facts(id tier.LogID, from, to tier.Position) ([]tier.Fact, error)
}

// File is an open file of a segment in its source.
type File = interface {
	io.ReaderAt
	io.Closer
	Stat() (tier.Stat, error)
	DropCache(off, n int64)
}

// Local is the sources, as far as reading asks them. Methods are safe for concurrent use.
type Local interface {
	// Logs returns the ids of all logs, ascending.
	Logs() []tier.LogID
	// Log returns what the last look showed; false for a log never seen.
	Log(id tier.LogID) (tier.LocalLog, bool)
	// From returns the first segment that ends above the offset.
	From(id tier.LogID, o tier.Offset) (tier.LocalSegment, bool)
	// Open opens a file in the log's directory; tier.ErrVanished if it is not there.
	Open(ctx context.Context, id tier.LogID, name string) (File, error)
	// LogFile is the base name of the file with the records of the segment with the base.
	LogFile(ctx context.Context, id tier.LogID, base tier.Offset) (string, error)
	// CountsBytes reports whether the log's source says that its offsets count the bytes of its
	// files; false where it does not say. The sizes of files show it of no log: they may fit its
	// offsets by chance.
	CountsBytes(id tier.LogID) bool
}

// Config is what a Reader works with. All fields but Suspect and Ahead are required.
type Config struct {
	Ledger Ledger
	Local  Local
	Cache  *Cache
	Now    func() tier.Time
	// Grace is how long objects stay after their offsets left the log, nanoseconds.
	Grace func() tier.Time
	// Suspect is told of a copy whose object the store no longer has, or has with other content. It
	// may be nil, and must not block.
	Suspect func(id tier.LogID, pos tier.Position, why error)
	// Ahead is how many chunks are read ahead of a sequential reader, by whoever runs Run; 0 is none.
	Ahead int
}

// Reader reads logs. It is safe for concurrent use.
type Reader struct {
	c     Config
	hints hints
	ahead chan ahead
	// decodes has a place for each that may decode at one time.
	decodes chan struct{}

	stables stables
	quiet   quiet

	mu      sync.Mutex
	indexes map[tier.LogID]*remoteIndex
	rebuilt rebuilt
}

// New returns a reader.
func New(c Config) *Reader {
	return &Reader{c: c, ahead: make(chan ahead, aheadQueue), decodes: make(chan struct{}, decodesMax),
		indexes: map[tier.LogID]*remoteIndex{}}
}

// Logs returns the ids of all logs that can be read, ascending.
func (r *Reader) Logs() []tier.LogID {
	ids := append(r.c.Local.Logs(), r.c.Ledger.Logs()...)
	slices.SortFunc(ids, tier.LogID.Compare)
	return slices.Compact(ids)
}

// Log is what can be read of a log at one moment.
type Log struct {
	Layout      tier.Layout
	Incarnation string // of the log's generation (Kafka: the topic's id); "" where it has none
	// Start is the first offset that it has, End one past the last that may be read (Kafka: the high
	// watermark).
	Start, End tier.Offset
}

// Log returns what can be read of the log now; false for an unknown one. It does no IO.
func (r *Reader) Log(id tier.LogID) (Log, bool) {
	v, err := r.view(id)
	return Log{v.layout, v.incarnation, v.start, v.end}, err == nil
}

// view is a log as it is now.
type view struct {
	id          tier.LogID
	layout      tier.Layout
	incarnation string
	opened      bool // the ledger has it
	state       tier.LogState
	table       tier.TableState
	local       tier.LocalLog // Usable is false where there is none
	start, end  tier.Offset
}

func (r *Reader) view(id tier.LogID) (view, error) {
	v := view{id: id}
	v.state, v.opened = r.c.Ledger.Log(id)
	local, seen := r.c.Local.Log(id)
	if !v.opened && !(seen && local.Usable) {
		return v, fmt.Errorf("log %s: %w", id, ErrUnknownLog)
	}
	v.local = local
	v.local.Usable = seen && local.Usable
	v.layout, v.incarnation = local.Layout, local.Incarnation
	if v.opened {
		v.table = r.c.Ledger.Table(id.Table)
		v.layout, v.incarnation = v.state.Layout, v.state.Incarnation
		v.start, v.end = v.state.LogStart, v.state.Copied
	} else {
		v.start = local.SourceStart
	}
	if v.local.Usable {
		end := local.LocalEnd
		if local.HasHighWatermark {
			end = min(end, local.HighWatermark)
		}
		v.end = max(v.end, end)
	}
	v.end = max(v.end, v.start)
	return v, nil
}

// Chunk is a piece of a log.
type Chunk struct {
	// Batches are whole record batches, byte for byte as the source wrote them, ascending; the first
	// contains or follows the offset that was asked for. Of a plain log they are the bytes of its
	// files. Empty where there is nothing to read before Next.
	Batches []byte
	// Base is the offset with which Batches begin, as far as it is known without decoding them: it
	// may be below the one that was asked for.
	Base tier.Offset
	// Next is where to read on.
	Next tier.Offset
}

// Read reads from the offset on, at most maxBytes, but at least one whole batch where there is one.
// At the end of the log the chunk is empty, and Next the offset itself.
//
// Of a plain log whose source says that its offsets count bytes it gives exactly the bytes from the
// offset on. Of any other plain log it gives whole segments, however large, up to SegmentBytesMax;
// above that it is ErrIndivisible.
//
// Errors: *OutOfRange, ErrUnknownLog, ErrGone, ErrAway; tier.ErrDamaged and tier.ErrVanished where
// the store no longer has what was archived, and the source neither.
func (r *Reader) Read(ctx context.Context, id tier.LogID, from tier.Offset, maxBytes int64) (
	Chunk, error) {
	c, err := r.Open(id, from)
	if err != nil {
		return Chunk{}, err
	}
	return c.Next(ctx, maxBytes)
}
