package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/tierd/tierd/runtime/tier"
)

// Logs are the logs that can be read. Implementations are safe for concurrent use.
type Logs interface {
	// List gives all logs of layout kafka, in any order.
	List() []Log
	// Bounds gives the offsets that can be read: from the log start up to the high watermark. It
	// does no IO: it is asked for each partition of each request.
	Bounds(id tier.LogID) (tier.Range, bool)
	// Stable gives the last stable offset: every transaction that began below it has ended.
	Stable(ctx context.Context, id tier.LogID) (tier.Offset, error)
	// Read gives whole batches: from the one that holds offset from, or the first one after it, up
	// to bytesMax of them, and at least one if there is one below the high watermark.
	Read(ctx context.Context, id tier.LogID, from tier.Offset, bytesMax int) (Chunk, error)
	// ForTime gives the first record whose timestamp is at least ms, in milliseconds since the Unix
	// epoch, with its own timestamp.
	ForTime(ctx context.Context, id tier.LogID, ms int64) (at tier.Offset, atMS int64, ok bool,
		err error)
	// Epochs gives the leader epochs that wrote the log, ascending, with the first offset of each. As
	// Bounds it does no IO.
	Epochs(id tier.LogID) ([]tier.EpochStart, error)
	// Aborted gives the aborted transactions that have records in r.
	Aborted(ctx context.Context, id tier.LogID, r tier.Range) ([]Aborted, error)
}

// Log is one log and its topic's id, as Kafka writes it: 22 characters of base64; empty where the
// broker gave none.
type Log struct {
	ID      tier.LogID
	TopicID string
}

// Chunk is a run of whole batches. The reader does not change the bytes, and keeps them until its
// answer is sent.
type Chunk struct {
	Batches []byte
	Next    tier.Offset // where the next chunk begins; beyond holes and what compaction left out
}

// Aborted is one aborted transaction, as a .txnindex has it.
type Aborted struct {
	ProducerID int64
	First      tier.Offset
}

// The errors of Logs that have an answer of their own.
var (
	// ErrGone: the offsets left the log while they were read.
	ErrGone = errors.New("no longer in the log")
	// ErrUnknownLog: there is no such log.
	ErrUnknownLog = errors.New("no such log")
)

// OutOfRange says that an offset is not in the log, which has Range.
type OutOfRange struct{ tier.Range }

// Error says what is in the log.
func (e *OutOfRange) Error() string { return fmt.Sprintf("out of range: the log has %v", e.Range) }
