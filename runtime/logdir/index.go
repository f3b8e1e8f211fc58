package logdir

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/tier"
)

// Sizes of the entries of Kafka's indexes, in bytes. All integers are big-endian; relative offsets
// count from the segment's base.
//
//	.index     i32 relative offset, i32 position of a batch
//	.timeindex i64 timestamp, i32 relative offset
//	.txnindex  i16 version 0, i64 producer id, i64 first offset, i64 last offset, i64 last stable
const (
	indexEntryBytes     = 8
	timeIndexEntryBytes = 12
	txnIndexEntryBytes  = 34
)

// An index is checked for what it promises to a reader, not for how brokers happen to write it: the
// entries of one append differ between versions, what a lookup must not miss does not.
//
//   - .index: the position is that of a batch, and every batch before it lies below the offset.
//   - .timeindex: no batch that lies wholly below the offset has a later timestamp.
//   - .txnindex: an aborted transaction ends within the segment.
//
// Entries ascend. So a tail of zeros does not fit, as a preallocated index has it after a crash.
type indexRule interface {
	// entry takes the next entry. It reports false if the entry points beyond the batches seen so
	// far; then it is called again.
	entry(e []byte, log *seenBatches) (taken bool, err error)
	// end is called after the last batch, when all entries were taken.
	end(log *seenBatches) error
}

// seenBatches is what was seen of a log: its batch b, and all those before it.
type seenBatches struct {
	base    tier.Offset // of the segment
	at      bool        // there is a batch b: not before the first, and not after the last
	b       kbatch.Batch
	next    tier.Offset // one past the last offset of the batches before b
	maxTime int64       // largest timestamp of the batches before b
}

// see moves on to the next batch.
func (s *seenBatches) see(b *kbatch.Batch) {
	s.pass()
	s.at, s.b = true, *b
}

// pass leaves the last batch behind.
func (s *seenBatches) pass() {
	if s.at {
		s.next, s.maxTime = s.b.Next(), max(s.maxTime, s.b.MaxTimestamp)
	}
	s.at = false
}

// indexCheck compares an index with its log while the log streams past.
type indexCheck struct {
	in    *bufio.Reader
	rule  indexRule
	buf   []byte // one entry
	have  bool   // buf holds an entry that was not taken yet
	count int    // entries taken
	err   error  // the first mismatch, or why the index could not be read
}

// newIndexCheck returns the check for an index with the ending ext; nil for a file of another kind.
func newIndexCheck(ext string, in io.Reader) *indexCheck {
	c := &indexCheck{}
	switch ext {
	case extIndex:
		c.rule, c.buf = &offsetRule{offset: -1, position: -1}, make([]byte, indexEntryBytes)
	case extTimeIndex:
		c.rule, c.buf = &timeRule{offset: -1, time: -1}, make([]byte, timeIndexEntryBytes)
	case extTxnIndex:
		c.rule, c.buf = &txnRule{last: -1}, make([]byte, txnIndexEntryBytes)
	default:
		return nil
	}
	c.in = bufio.NewReaderSize(in, 64<<10)
	return c
}

// advance takes all entries that the batches seen so far can judge.
func (c *indexCheck) advance(log *seenBatches) {
	// Ends: each round takes an entry of the index, or returns.
	for c.err == nil {
		if !c.have {
			_, err := io.ReadFull(c.in, c.buf)
			switch {
			case err == io.EOF:
				return
			case err == io.ErrUnexpectedEOF:
				c.err = fmt.Errorf("its size is no multiple of %d: %w", len(c.buf), tier.ErrDamaged)
				return
			case err != nil:
				c.err = err
				return
			}
			c.have = true
		}
		taken, err := c.rule.entry(c.buf, log)
		if err != nil {
			c.err = c.mismatch(err)
		}
		if err != nil || !taken {
			return
		}
		c.have = false
		c.count++
	}
}

// end judges what is left after the last batch.
func (c *indexCheck) end(log *seenBatches) error {
	c.advance(log)
	switch {
	case c.err != nil:
	case c.have:
		c.err = c.mismatch(errors.New("it points beyond the end of the log"))
	default:
		if err := c.rule.end(log); err != nil {
			c.err = c.mismatch(err)
		}
	}
	return c.err
}

func (c *indexCheck) mismatch(err error) error {
	return fmt.Errorf("entry %d: %w: %w", c.count, err, tier.ErrDamaged)
}

// offsetRule is the rule of an .index.
type offsetRule struct{ offset, position int64 }

func (r *offsetRule) entry(e []byte, log *seenBatches) (bool, error) {
	offset := int64(log.base) + int64(binary.BigEndian.Uint32(e))
	position := int64(binary.BigEndian.Uint32(e[4:]))
	switch {
	case offset <= r.offset || position <= r.position:
		return false, fmt.Errorf("offset %d at byte %d does not ascend", offset, position)
	case !log.at || position > log.b.Position:
		return false, nil
	case position < log.b.Position:
		return false, fmt.Errorf("no batch begins at byte %d", position)
	case offset < int64(log.next):
		return false, fmt.Errorf("offset %d at byte %d, and a batch before it ends at offset %d",
			offset, position, log.next-1)
	}
	r.offset, r.position = offset, position
	return true, nil
}

func (r *offsetRule) end(log *seenBatches) error {
	if r.offset >= int64(log.next) {
		return fmt.Errorf("the log ends before offset %d", r.offset)
	}
	return nil
}

// timeRule is the rule of a .timeindex.
type timeRule struct{ time, offset int64 }

func (r *timeRule) entry(e []byte, log *seenBatches) (bool, error) {
	time := int64(binary.BigEndian.Uint64(e))
	offset := int64(log.base) + int64(binary.BigEndian.Uint32(e[8:]))
	switch {
	case time <= r.time || offset < r.offset:
		return false, fmt.Errorf("timestamp %d at offset %d does not ascend", time, offset)
	case !log.at || offset > int64(log.b.Last):
		return false, nil
	case time < log.maxTime:
		return false, fmt.Errorf("timestamp %d at offset %d, and a batch before it has %d",
			time, offset, log.maxTime)
	}
	r.time, r.offset = time, offset
	return true, nil
}

func (r *timeRule) end(log *seenBatches) error {
	if r.time > log.maxTime {
		return fmt.Errorf("the log has no timestamp as late as %d", r.time)
	}
	return nil
}

// txnRule is the rule of a .txnindex.
type txnRule struct{ last int64 }

func (r *txnRule) entry(e []byte, log *seenBatches) (bool, error) {
	version := int16(binary.BigEndian.Uint16(e))
	first, last := int64(binary.BigEndian.Uint64(e[10:])), int64(binary.BigEndian.Uint64(e[18:]))
	switch {
	case version != 0:
		return false, fmt.Errorf("version %d, where 0 is known", version)
	case first < 0 || first > last || last < int64(log.base):
		return false, fmt.Errorf("an aborted transaction from offset %d to %d", first, last)
	case last <= r.last:
		return false, fmt.Errorf("last offset %d does not ascend", last)
	case !log.at || last > int64(log.b.Last):
		return false, nil
	}
	r.last = last
	return true, nil
}

func (*txnRule) end(*seenBatches) error { return nil }
