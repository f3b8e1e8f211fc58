package api

import (
	"context"
	"io"
	"unicode/utf8"

	"github.com/tierd/tierd/runtime/tier"
)

// Archive is what the content of logs is read from. Methods are safe for concurrent use; errors are
// as those of a Backend, CodeOutOfRange, CodeGone and CodeDamaged among them.
type Archive interface {
	// Readable lists all logs with what of them can be read.
	Readable(ctx context.Context) (*ReadableLogs, error)
	// Read reads a log from a place on, at most maxBytes, but at least one batch where there is one.
	Read(ctx context.Context, log tier.LogID, from Place, maxBytes int64) (*Piece, error)
	// Records decodes what Read gives: of a Kafka log, records from the place on.
	Records(ctx context.Context, log tier.LogID, from Place, maxBytes int64) (*Records, error)
	// File opens one file of the copied segment that begins at base, as the store has it; an empty
	// name is the file with the records. The caller closes it.
	File(ctx context.Context, log tier.LogID, base tier.Offset, name string) (*File, error)
}

// Place is where in a log to read from: an offset, or the first record at or after a timestamp in
// milliseconds since the Unix epoch; where both are nil, the log start.
type Place struct {
	Offset    *tier.Offset
	Timestamp *int64
}

// Piece is a part of a log as it was written.
type Piece struct {
	Bytes []byte
	// Base is the offset of the first batch, which may be below the one asked for; Next is where to
	// read on. They are equal at the end of the log.
	Base, Next tier.Offset
	Start, End tier.Offset // what of the log can be read now
}

// File is a file of a copied segment.
type File struct {
	Name   string
	Size   int64 // bytes
	SHA256 tier.SHA256
	// Where the bytes turn out not to be those of SHA256, Read ends in an error before the last of
	// them.
	io.ReadSeeker
	io.Closer
}

// ReadableLogs is what can be read: GET /api/v1/logs.
type ReadableLogs struct {
	Logs List[ReadableLog] `json:"logs"` // ascending by table and name
}

// ReadableLog is what of one log can be read.
type ReadableLog struct {
	Log    string      `json:"log"` // table/name
	Layout tier.Layout `json:"layout"`
	// Incarnation tells a log from one of the same name before it; null where its layout has none.
	Incarnation *string `json:"incarnation"`
	// Start is the first offset that can be read, End one past the last.
	Start tier.Offset `json:"start"`
	End   tier.Offset `json:"end"`
}

// Records is a part of a log, decoded: GET .../records?format=json.
type Records struct {
	Log     string       `json:"log"`
	Records List[Record] `json:"records"`
	// Next is where to read on. At the end of the log it is the offset that was asked for.
	Next tier.Offset `json:"next"`
	// Start and End are what of the log can be read now.
	Start tier.Offset `json:"start"`
	End   tier.Offset `json:"end"`
}

// Record is one record of a Kafka log.
type Record struct {
	Offset    tier.Offset `json:"offset"`
	Timestamp int64       `json:"timestamp_ms"` // since the Unix epoch; -1 where there is none
	Key       Bytes       `json:"key"`
	Value     Bytes       `json:"value"`
	Headers   List[Field] `json:"headers"`
	Control   bool        `json:"control"` // a transaction marker
}

// Field is a header of a record.
type Field struct {
	Key   string `json:"key"`
	Value Bytes  `json:"value"`
}

// Bytes are bytes in JSON: as text where they are UTF-8, else in base64. Both are null for a null.
type Bytes struct {
	Text   *string `json:"text"`
	Base64 []byte  `json:"base64"`
}

// BytesOf returns p, nil for a null, for JSON.
func BytesOf(p []byte) Bytes {
	if p == nil || !utf8.Valid(p) {
		return Bytes{Base64: p}
	}
	s := string(p)
	return Bytes{Text: &s}
}

// Copies is what the ledger holds of a log, for those who check or restore an archive: GET
// .../copies.
type Copies struct {
	Log         string      `json:"log"`
	LedgerID    string      `json:"ledger_id"`
	Layout      tier.Layout `json:"layout"`
	Incarnation string      `json:"incarnation"` // "" where the layout has none
	Source      string      `json:"source"`
	// LogStart and CopiedOffset are those of the log. Once its table was turned off with delete, or
	// dropped, nothing that was copied counts: then both are LogStart.
	LogStart     tier.Offset `json:"log_start"`
	CopiedOffset tier.Offset `json:"copied_offset"`
	Holes        List[Hole]  `json:"holes"`
	// Positions are how many manifest positions were handed out; Next is the one to ask on with, and
	// equal to it at the end.
	Positions tier.Position `json:"positions"`
	Next      tier.Position `json:"next"`
	// Facts are those of the positions from the one asked for up to Next, as the manifest has them.
	Facts List[tier.Fact] `json:"facts"`
	// Counted are, for the copies among Facts that are part of the log, the offsets that count: less
	// than they hold where a later copy or a divergence took some. Ascending by base.
	Counted List[Counted] `json:"counted"`
	// Unpublished are the positions whose facts the manifest does not have yet.
	Unpublished List[tier.Position] `json:"unpublished"`
	// Attempts are the ids of attempts that are under way or abandoned: what they have in the store
	// is no orphan.
	Attempts List[tier.AttemptID] `json:"attempts"`
	// Checkpoints are the numbers of leading blocks of each level, from 1 on, that the store has.
	Checkpoints List[uint64] `json:"checkpoints"`
}

// Counted is a range of offsets with the position of the copy that holds them.
type Counted struct {
	Base     tier.Offset   `json:"base"`
	Next     tier.Offset   `json:"next"`
	Position tier.Position `json:"position"`
}
