package tier

import (
	"encoding/hex"
	"fmt"
)

// Stat is what a file system says of a file. It identifies a file cheaply: where it differs from
// what was recorded, the content is hashed again.
type Stat struct {
	Inode   uint64 `json:"inode"`
	Size    int64  `json:"size"`  // bytes
	ModTime Time   `json:"mtime"` // nanoseconds since the Unix epoch
}

// Mark stands for the names and identities of some files, whatever their order: it is the exclusive
// or of the files' own marks, and changes with any of them.
type Mark uint64

// MarkOf is the mark of one file: 64-bit FNV-1a over its name and what its stat says.
func MarkOf(name string, s Stat) Mark {
	const prime = 1099511628211
	h := uint64(14695981039346656037)
	for _, c := range []byte(name) {
		h = (h ^ uint64(c)) * prime
	}
	for _, n := range [...]uint64{s.Inode, uint64(s.Size), uint64(s.ModTime)} {
		for shift := 0; shift < 64; shift += 8 {
			h = (h ^ n>>shift&0xff) * prime
		}
	}
	return Mark(h)
}

// SHA256 is the SHA-256 of a file's whole content.
type SHA256 [32]byte

// String gives 64 lower-case hexadecimal digits.
func (h SHA256) String() string { return hex.EncodeToString(h[:]) }

// MarshalText gives the hexadecimal form.
func (h SHA256) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText reads the hexadecimal form.
func (h *SHA256) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(h)) {
		return fmt.Errorf("sha256 %q: want 64 hexadecimal digits", text)
	}
	_, err := hex.Decode(h[:], text)
	if err != nil {
		return fmt.Errorf("sha256 %q: %w", text, err)
	}
	return nil
}

// LocalSegment is one segment as a scan of its directory saw it. It is kept for every segment on
// disk, so it holds no strings and no pointers.
type LocalSegment struct {
	Range
	Bytes   int64      // of all files of the segment
	Log     Stat       // of the file that holds the records; identifies the segment
	Rest    Mark       // of all its other files; 0 if it has none
	Waits   WaitReason // why the segment is not closed; WaitsForNothing if it is
	MaxTime Time       // largest record timestamp if the scan knows it; absent otherwise
}

// Closed reports whether the segment can no longer grow and every replica that must have it has.
func (s LocalSegment) Closed() bool { return s.Waits == WaitsForNothing }

// WaitReason says why a segment is not closed yet.
type WaitReason uint8

// Why a segment is not closed. The zero value is "active", so that a segment that nobody judged
// is never taken for closed.
const (
	WaitsForRoll          WaitReason = iota // nothing follows it: it can still grow
	WaitsForHighWatermark                   // replicas may still truncate it
	WaitsForRecoveryPoint                   // the source has not fsynced it
	WaitsForNothing                         // closed
)

// Code is the stable word for the reason.
func (w WaitReason) Code() Code {
	switch w {
	case WaitsForHighWatermark:
		return CodeHighWatermark
	case WaitsForRecoveryPoint:
		return CodeRecoveryPoint
	default:
		return CodeActiveSegment
	}
}

// Scan is one look at one log in its source directory. Segments ascend by base.
type Scan struct {
	Log         LogID
	Source      string // name of the configured source
	Layout      Layout
	Dir         string // path below the source's directory, slash-separated; for people
	Incarnation string // identity of the log's generation (Kafka: topic id); "" where there is none
	Segments    []LocalSegment
	// Dropping are segments whose files are still there, and which the source's own program has
	// given up at tierd's request. They are no part of the log any more.
	Dropping    []LocalSegment
	SourceStart Offset // the source's own log start
	// HighWatermark is exclusive; HasHighWatermark is false where the layout has none.
	HighWatermark    Offset
	HasHighWatermark bool
	LocalEnd         Offset // end of the last record seen, also in the active segment
	// Lineage is what the source itself keeps on record of its leader epochs, ascending; nil where it
	// keeps nothing, or nothing that can be read. It says nothing of offsets below its first entry.
	Lineage   []EpochStart
	Compacted bool
	// Changelog: the log's own program recovers a table from it, and needs it locally whatever was
	// copied (Fluss: a table with a primary key). True also where it is not shown to be no such log.
	Changelog bool
	Whole     bool // everything of the log could be read; false proves nothing
	Problems  []Problem
}

// LocalLog is what a reader needs to know of the last look at a log's source.
type LocalLog struct {
	Source      string // name of the configured source
	Layout      Layout
	Incarnation string // as in Scan
	// Usable: the source has the log, and it is the one that the ledger knows. Where it is false, what
	// follows says nothing.
	Usable bool
	// Away: the source as a whole cannot be read now, or was not yet. What it has of the log is not
	// known, and may be more than what was copied.
	Away             bool
	SourceStart      Offset // the source's own log start
	HighWatermark    Offset // exclusive
	HasHighWatermark bool   // false where the layout has none
	LocalEnd         Offset // end of the last record seen
	// Lineage is what the source itself keeps on record, as in Scan. It must not be changed.
	Lineage []EpochStart
}

// Problem is something in a source that an operator should know of: a name that is no number, two
// files with the same base, a link, a file without permission.
type Problem struct {
	Path string // below the source's directory
	Reason
}

// EpochStart says that Epoch wrote the offsets from Start on, up to the next EpochStart.
type EpochStart struct {
	Epoch LeaderEpoch `json:"epoch"`
	Start Offset      `json:"start"`
}

// FileDigest is the content of one file of a segment, as read once and in order.
type FileDigest struct {
	Name   string `json:"name"` // base name, as in the source's directory
	Size   int64  `json:"size"` // bytes
	SHA256 SHA256 `json:"sha256"`
	CRC32C uint32 `json:"crc32c"`
}

// SourceFile is a file of a segment with its identity on disk.
type SourceFile struct {
	FileDigest
	Stat Stat `json:"stat"`
}

// Content is what one pass over all files of a segment found: the first file holds the records.
type Content struct {
	Range    Range        `json:"range"`
	Files    []SourceFile `json:"files"`
	Lineage  []EpochStart `json:"lineage"`  // ascending; empty where batches carry no epoch
	MaxTime  Time         `json:"max_time"` // largest usable record timestamp; absent if none
	Batches  int64        `json:"batches"`
	LastNext Offset       `json:"last_next"` // one past the last offset found; Range.Next may be larger
	// Problems are for an operator and not of the content: files of the segment that were left out.
	Problems []Problem `json:"-"`
}

// Bytes is the size of all files together.
func (c Content) Bytes() int64 {
	var n int64
	for _, f := range c.Files {
		n += f.Size
	}
	return n
}
