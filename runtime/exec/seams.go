package exec

import (
	"context"
	"errors"
	"io"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/tier"
)

// The errors that the executor branches on. Adapters wrap them.
var (
	ErrVanished = tier.ErrVanished // the file or object is not there (any more)
	ErrDamaged  = tier.ErrDamaged  // the content contradicts itself or its checksum
	ErrChanged  = tier.ErrChanged  // the file changed while it was read
	ErrRefused  = tier.ErrRefused  // the ledger refused the record: it would break an invariant
	errNoSource = errors.New("no such source")
)

// Ledger is the durable record. All methods are safe for concurrent use.
type Ledger interface {
	// Append makes r durable before it returns, together with whatever else is appended at the same
	// time. The position is the one that a CopyStarted or HoleRecorded was given. An error that
	// wraps ErrRefused concerns this record alone; any other error means that nothing is known to be
	// durable any more, and the process must end.
	Append(ctx context.Context, r tier.Record) (tier.Position, error)
	// Log returns a copy of the log's durable state.
	Log(id tier.LogID) (tier.LogState, bool)
	// Table returns a copy of the table's durable state; the zero state for one never seen.
	Table(name string) tier.TableState
	// Rebuilt is when the ledger was put together from what the store has; absent if it never was.
	Rebuilt() tier.Time
	// Err is the error that broke the ledger; nil while it is well.
	Err() error
	Recorded
}

// Recorded reads what a ledger has at the positions of its logs.
type Recorded interface {
	// Copy returns the finished copy at the position; ErrVanished if there is none.
	Copy(id tier.LogID, pos tier.Position) (tier.Copy, error)
	// Attempt returns the attempt under way at the position; ErrVanished if there is none.
	Attempt(id tier.LogID, pos tier.Position) (tier.Attempt, error)
	// Abandoned returns the tombstone at the position, and when the attempt was abandoned;
	// ErrVanished if there is none.
	Abandoned(id tier.LogID, pos tier.Position) (tier.Attempt, tier.Time, error)
	// Facts returns the log's facts at the positions [from, to), ascending.
	Facts(id tier.LogID, from, to tier.Position) ([]tier.Fact, error)
	// Named reports whether the attempt is under way, finished or a tombstone.
	Named(a tier.AttemptID) (bool, error)
}

// Source reads and drops the segments of one configured source. Methods are safe for concurrent
// use.
type Source interface {
	// Look scans one log afresh, past every cache. Whole is false where anything of the directory
	// could not be read.
	Look(ctx context.Context, id tier.LogID) (scan tier.Scan, whole bool, err error)
	SegmentFiles
	Dropper
}

// SegmentFiles reads the files of a source's segments.
type SegmentFiles interface {
	// Read passes once over the files of the segment in order, checks every batch, and returns
	// digests and facts. ErrDamaged, ErrVanished and ErrChanged are wrapped.
	Read(ctx context.Context, id tier.LogID, r tier.Range) (tier.Content, error)
	// Batches calls fn with the offsets and the leader epoch of each batch on disk that has an offset
	// in r, ascending, also in the active segment; an error of fn ends the walk. It finds none where
	// the source does not know what is in its files.
	Batches(ctx context.Context, id tier.LogID, r tier.Range,
		fn func(batch tier.Range, epoch tier.LeaderEpoch) error) error
	// Stat returns the identity that the file of a segment has now.
	Stat(ctx context.Context, id tier.LogID, name string) (tier.Stat, error)
	// LogFile is the base name of the file that holds the records of the segment with the base.
	LogFile(ctx context.Context, id tier.LogID, base tier.Offset) (name string, err error)
	// Open opens one file of a segment; name is a base name from Content.
	Open(ctx context.Context, id tier.LogID, name string) (SourceReader, error)
}

// Dropper drops segments of a source, or has the program that owns them do so.
type Dropper interface {
	// LocalDelete is the configured way to delete.
	LocalDelete() tier.LocalDelete
	// Owned tells whether tierd holds the source's lock; Yes where the layout has none.
	Owned() tier.Truth
	// Vet asks the running program that owns the log about a segment with the content of its copy,
	// where it is the one that is to delete (LocalDeleteRecords). What is not known is not yes.
	Vet(ctx context.Context, id tier.LogID, copied tier.Content) gate.OwnerFacts
	// Drop removes the segment's files, the one with the records first to vanish from its name, and
	// spends the permit. It is done only if the file with the records is still target.File. A nil
	// error means that the names are durably gone.
	Drop(ctx context.Context, p gate.Permit, target gate.Target) error
	// Settle finishes or undoes what an interrupted Drop left of a log. An error means that it is
	// not known what the log has.
	Settle(ctx context.Context, id tier.LogID) error
}

// SourceReader is an open segment file. It is an alias, so that an adapter can return its own name
// for the same methods.
type SourceReader = interface {
	io.ReaderAt
	io.Closer
	Stat() (tier.Stat, error)
	// DropCache hints that the bytes [off, off+n) will not be read again soon.
	DropCache(off, n int64)
}

// Store is the object store as tierd lays it out. Methods are safe for concurrent use, keep to
// the context's deadline as far as the provider does, and wrap ErrVanished for a missing object
// and ErrDamaged for one that is not what it should be.
type Store interface {
	StoredFiles
	Manifest
	Checkpoints
	Collector
}

// StoredFiles puts files of segments into the store, and looks at them there.
type StoredFiles interface {
	// AttemptKey is the key prefix of an attempt's files; FileKey the key of one.
	AttemptKey(k tier.ObjectKey) (string, error)
	FileKey(k tier.ObjectKey) (string, error)
	// PutFile uploads one file of a segment, size bytes of r, as one object, byte for byte.
	PutFile(ctx context.Context, k tier.ObjectKey, r io.ReaderAt, size int64) error
	// VerifyFile compares the stored object with the digest: its size always, and what mode says of
	// its content, read back and compared with local (which may be nil for VerifyFull).
	VerifyFile(ctx context.Context, k tier.ObjectKey, d tier.FileDigest, mode tier.VerifyMode,
		local io.ReaderAt) error
	// StatFile checks that the object is there with the size.
	StatFile(ctx context.Context, k tier.ObjectKey, size int64) error
}

// Manifest writes the manifests of logs, and reads single entries back.
type Manifest interface {
	// ProveFact writes the manifest entry of one fact and reads it back: it is there as it was
	// written, or the error is ErrVanished or ErrDamaged.
	ProveFact(ctx context.Context, log tier.LogID, attempt tier.AttemptID, f tier.Fact) error
	// Fact reads one manifest entry back and checks it.
	Fact(ctx context.Context, log tier.LogID, pos tier.Position,
		attempt tier.AttemptID) (tier.Fact, error)
	// NewestEntry lists the log's manifest for the highest position that has an entry.
	NewestEntry(ctx context.Context, log tier.LogID) (pos tier.Position, found bool, err error)
}

// Checkpoints writes those of manifests, and reads them back.
type Checkpoints interface {
	// PutCheckpoint writes the manifest checkpoint of the block at the level.
	PutCheckpoint(ctx context.Context, log tier.LogID, level uint8, block uint64,
		facts []tier.Fact) error
	// Checkpoint reads one checkpoint back and checks it. Size is that of the object, in bytes.
	Checkpoint(ctx context.Context, log tier.LogID, level uint8, block uint64) (facts []tier.Fact,
		size int64, err error)
}

// Collector finds objects that are to go, and removes them.
type Collector interface {
	// Objects lists all objects of logs under the ledger's id.
	Objects(ctx context.Context, fn func(tier.StoredObject) error) error
	// Size is the size of the object with the key, in bytes.
	Size(ctx context.Context, key string) (int64, error)
	// DeleteFiles spends the permit for the files of the target's attempt and deletes them; one that
	// is not there is a success. DeleteObject does so for the one object that is the target.
	DeleteFiles(ctx context.Context, p gate.Permit, t gate.Target, keys []tier.ObjectKey) error
	DeleteObject(ctx context.Context, p gate.Permit, t gate.Target) error
	// ForgetProbes deletes what probes of before the time left behind, and says how many objects.
	ForgetProbes(ctx context.Context, before tier.Time) (removed int64, err error)
}

// Audit is the deletion log.
type Audit interface {
	// Intend makes the record of a deletion that is about to happen durable. Without it there is no
	// deletion.
	Intend(ctx context.Context, d tier.Deletion) (seq uint64, err error)
	// Conclude makes the outcome of the intended deletion seq durable.
	Conclude(ctx context.Context, seq uint64, o tier.Outcome) error
	// OpenIntents are the deletions without an outcome, ascending by sequence number.
	OpenIntents() []tier.Intent
}
