package kbatch

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/tierd/tierd/runtime/tier"
)

// HeaderMax is the size of the longest header, in bytes.
const HeaderMax = headerV2

// Sizes in bytes: of what all of Kafka's magics share, of each magic's header, and of its smallest
// batch.
const (
	prefix   = 17
	overhead = 12 // bytes of a batch that its length does not count
	headerV0 = 18
	headerV1 = 26
	headerV2 = 61
	leastV0  = headerV0 + 8 // the lengths of key and value
	leastV1  = headerV1 + 8
	leastV2  = headerV2
)

// Bits of the attributes.
const (
	maskCodec         = 0x07
	bitAppendTime     = 0x08
	bitTransactional  = 0x10
	bitControl        = 0x20
	bitDeletesHorizon = 0x40
)

// ErrTorn says that the bytes end in the middle of a batch. It wraps tier.ErrDamaged; at the end
// of a segment that is being written it is no damage, but a batch that is not whole yet.
var ErrTorn = fmt.Errorf("cut short: %w", tier.ErrDamaged)

// NoTimestamp is what Kafka writes where a batch has no timestamp.
const NoTimestamp int64 = -1

// Codec is how the records of a batch are compressed. Values beyond Zstd are kept as they are.
type Codec uint8

// The codecs.
const (
	None Codec = iota
	Gzip
	Snappy
	LZ4
	Zstd
)

// String gives Kafka's name of the codec.
func (c Codec) String() string {
	if int(c) < len(codecNames) {
		return codecNames[c]
	}
	return fmt.Sprintf("codec(%d)", uint8(c))
}

var codecNames = [...]string{"none", "gzip", "snappy", "lz4", "zstd"}

// Batch is what the header of one record batch says.
type Batch struct {
	Format   Format
	Position int64 // of its first byte in the file
	Size     int64 // bytes, with the header
	Magic    int8
	CRC      uint32 // as stored
	// Base and Last are the offsets that the batch stands for, both inclusive. For a wrapper of
	// magic 0 or 1 the base is not known, and Base is Last; see Wrapper.
	Base, Last tier.Offset
	// Epoch is the leader epoch that wrote the batch; NoLeaderEpoch in magic 0 and 1 of both formats.
	Epoch tier.LeaderEpoch
	// MaxTimestamp is in milliseconds since the Unix epoch; NoTimestamp or another negative number
	// where there is none.
	MaxTimestamp  int64
	ProducerID    int64 // -1 where there is none; of Fluss, the writer id
	Records       int32 // 1 for a single message; -1 for a wrapper, whose count is not known
	Codec         Codec
	AppendTime    bool // MaxTimestamp is the broker's, not the producer's
	Transactional bool
	Control       bool // a transaction marker
	DeleteHorizon bool // the base timestamp is the delete horizon of a compacted log
	// AppendOnly: the records append. Of Fluss alone, where those of a changelog are changes.
	AppendOnly bool
}

// Wrapper reports whether the batch is a compressed message of magic 0 or 1, of which only the
// last offset is known.
func (b *Batch) Wrapper() bool { return b.Format == Kafka && b.Magic < 2 && b.Codec != None }

// Next is one past the last offset of the batch.
func (b *Batch) Next() tier.Offset { return b.Last + 1 }

// Parse is Format.Parse of Kafka.
func Parse(p []byte, pos, room int64) (Batch, error) { return Kafka.Parse(p, pos, room) }

// parseKafka reads what is particular to the magics of Kafka. p holds the header.
func (b *Batch) parseKafka(p []byte) error {
	if b.Magic == 2 {
		return b.parseV2(p)
	}
	return b.parseV01(p)
}

func (b *Batch) parseV2(p []byte) error {
	if b.Size < leastV2 {
		return damaged(b, "a length of %d, where at least %d is needed", b.Size-overhead,
			leastV2-overhead)
	}
	b.Epoch = tier.LeaderEpoch(binary.BigEndian.Uint32(p[12:]))
	b.CRC = binary.BigEndian.Uint32(p[17:])
	attributes := binary.BigEndian.Uint16(p[21:])
	delta := int32(binary.BigEndian.Uint32(p[23:]))
	b.MaxTimestamp = int64(binary.BigEndian.Uint64(p[35:]))
	b.ProducerID = int64(binary.BigEndian.Uint64(p[43:]))
	b.Records = int32(binary.BigEndian.Uint32(p[57:]))
	b.Codec = Codec(attributes & maskCodec)
	b.AppendTime = attributes&bitAppendTime != 0
	b.Transactional = attributes&bitTransactional != 0
	b.Control = attributes&bitControl != 0
	b.DeleteHorizon = attributes&bitDeletesHorizon != 0
	if b.Epoch < tier.NoLeaderEpoch {
		return damaged(b, "leader epoch %d", b.Epoch)
	}
	return b.spanning(delta)
}

// spanning sets the last offset, which is delta behind the first, and checks the number of records
// against it.
func (b *Batch) spanning(delta int32) error {
	switch {
	case delta < 0:
		return damaged(b, "last offset delta %d", delta)
	case int64(b.Base) > math.MaxInt64-1-int64(delta):
		return damaged(b, "last offset delta %d leaves the range of offsets", delta)
	case b.Records < 0 || int64(b.Records) > int64(delta)+1:
		return damaged(b, "%d records in %d offsets", b.Records, int64(delta)+1)
	}
	b.Last = b.Base + tier.Offset(delta)
	return nil
}

func (b *Batch) parseV01(p []byte) error {
	least := int64(leastV0)
	if b.Magic == 1 {
		least = leastV1
	}
	if b.Size < least {
		return damaged(b, "a length of %d, where at least %d is needed", b.Size-overhead,
			least-overhead)
	}
	b.Epoch, b.ProducerID = tier.NoLeaderEpoch, -1
	b.CRC = binary.BigEndian.Uint32(p[12:])
	b.Codec = Codec(p[17] & maskCodec)
	b.MaxTimestamp, b.Records = NoTimestamp, 1
	if b.Magic == 1 {
		b.AppendTime = p[17]&bitAppendTime != 0
		b.MaxTimestamp = int64(binary.BigEndian.Uint64(p[18:]))
	}
	if b.Wrapper() {
		b.Records = -1
	}
	return nil
}

// checksum returns the table that the batch's checksum is made with, and the first byte that it
// covers.
func (b *Batch) checksum() (table *crc32.Table, from int) {
	if b.Format == Fluss {
		return castagnoli, flussChecked(b.Magic)
	}
	if b.Magic == 2 {
		return castagnoli, 21
	}
	return crc32.IEEETable, 16
}

// castagnoli never changes; making it once lets the hardware instruction be used.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Next is Format.Next of Kafka.
func Next(r io.ReaderAt, pos, size int64) (Batch, error) { return Kafka.Next(r, pos, size) }

// torn says that the bytes from pos on are too few even for a header.
func torn(pos, room int64) error {
	return fmt.Errorf("byte %d: %d bytes are too few for a batch: %w", pos, room, ErrTorn)
}

// tornBatch says how much of the batch is missing.
func tornBatch(b *Batch, format string, args ...any) error {
	return fmt.Errorf("byte %d: batch at offset %d: %s: %w", b.Position, b.Base,
		fmt.Sprintf(format, args...), ErrTorn)
}

// damaged says what contradicts itself in the batch.
func damaged(b *Batch, format string, args ...any) error {
	return fmt.Errorf("byte %d: batch at offset %d: %s: %w", b.Position, b.Base,
		fmt.Sprintf(format, args...), tier.ErrDamaged)
}
