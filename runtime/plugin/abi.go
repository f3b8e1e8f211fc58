package plugin

import (
	"encoding/binary"

	"github.com/tierd/tierd/runtime/tier"
)

// ABIVersion is the version of the interface that this package speaks. A module says which ones
// it speaks by exporting tierd_abi_v1, and so on.
const ABIVersion = 1

// What the host writes for one batch; see the package comment for the byte diagram.
const (
	headerMagic    = 0x31445254 // "TRD1", little-endian
	headerBytes    = 64
	directoryBytes = 8 // per column
	resultBytes    = 9 // per segment: an int64 and a u8
)

// Column is the id of a column of a batch. Ids are never used again for something else.
type Column uint16

// The columns of ABI v1.
const (
	ColumnBase         Column = 1 + iota // first offset
	ColumnNext                           // one past the last offset
	ColumnBytes                          // of all files of the segment
	ColumnMaxTimestamp                   // ns since the Unix epoch; 0 if there is none usable
	ColumnAge                            // ns; 0 if it is not known
	ColumnLocalBytes                     // of the segment's log, on local disk
	ColumnDiskUsed                       // bytes of the disk that the log lies on
	ColumnDiskFree                       // bytes of the disk that the log lies on
	ColumnTable                          // index in the tables of tierd_configure; -1 if not there
	ColumnLog                            // 0, 1, ... within the batch
	ColumnTiers                          // TierLocal | TierRemote
	ColumnCopied                         // 1 if every offset lies below the copied offset
	ColumnVerified                       // 1 if its copy was verified
	ColumnTierState                      // see the State constants
)

// columnType is a column's element type.
type columnType uint8

const (
	typeInt64 columnType = 1
	typeUint8 columnType = 2
)

// The columns that the host writes, in order of their place: first the int64 ones, then the u8.
const (
	int64Columns = 10
	uint8Columns = 4
	columns      = int64Columns + uint8Columns
	dataStart    = headerBytes + columns*directoryBytes
)

// The bits of ColumnTiers.
const (
	TierLocal  uint8 = 1 << 0 // the segment is on local disk
	TierRemote uint8 = 1 << 1 // the segment is in the object store
)

// The values of ColumnTierState.
const (
	StateUnknown   uint8 = 0
	StateEnabled   uint8 = 1
	StateDisabling uint8 = 2
	StateDisabled  uint8 = 3
)

func stateByte(s tier.TierState) uint8 {
	switch s {
	case tier.Enabled:
		return StateEnabled
	case tier.Disabling:
		return StateDisabling
	case tier.Disabled:
		return StateDisabled
	default:
		return StateUnknown
	}
}

// Action is what a plugin asks for a segment.
type Action uint8

// The actions.
const (
	ActionNone Action = 0
	ActionHold Action = 1 // do not copy it yet
	ActionKeep Action = 2 // do not delete it locally
)

// inputBytes is the size of a batch of n segments.
func inputBytes(n int) int { return dataStart + int64Columns*8*n + uint8Columns*padded(n) }

// padded rounds up to a multiple of 8, so that every column is aligned.
func padded(n int) int { return (n + 7) &^ 7 }

// encode writes the batch of n segments into in, which has inputBytes(n) bytes.
func (b *Batch) encode(in []byte, n int) {
	le := binary.LittleEndian
	le.PutUint32(in[0:], headerMagic)
	le.PutUint32(in[4:], headerBytes)
	le.PutUint32(in[8:], columns)
	le.PutUint32(in[12:], uint32(n))
	le.PutUint32(in[16:], uint32(len(in)))
	le.PutUint32(in[20:], uint32(b.Tables.Len()))
	le.PutUint32(in[24:], uint32(len(b.Logs)))
	le.PutUint32(in[28:], 0)
	le.PutUint64(in[32:], uint64(b.Now))
	clear(in[40:headerBytes])
	var at [columns][]byte
	end := dataStart
	for i := range columns {
		typ, size := typeInt64, 8*n
		if i >= int64Columns {
			typ, size = typeUint8, padded(n)
		}
		entry := in[headerBytes+directoryBytes*i:]
		le.PutUint16(entry[0:], uint16(i+1))
		entry[2], entry[3] = byte(typ), 0
		le.PutUint32(entry[4:], uint32(end))
		at[i] = in[end : end+size : end+size]
		end += size
	}
	row := 0
	for i := range b.Logs {
		l := &b.Logs[i]
		encodeLog(&at, l, int64(i), row)
		encodeSegments(&at, l.Segments, row)
		row += len(l.Segments)
	}
}

// encodeLog fills the columns that are the same for all segments of a log, from the row on.
func encodeLog(at *[columns][]byte, l *Log, index int64, row int) {
	values := [...]struct {
		column Column
		v      uint64
	}{
		{ColumnLocalBytes, uint64(l.LocalBytes)},
		{ColumnDiskUsed, uint64(l.DiskUsedBytes)},
		{ColumnDiskFree, uint64(l.DiskFreeBytes)},
		{ColumnTable, uint64(int64(l.Table))},
		{ColumnLog, uint64(index)},
	}
	n := len(l.Segments)
	for _, v := range values {
		c := at[v.column-1][8*row : 8*(row+n)]
		for len(c) >= 8 {
			binary.LittleEndian.PutUint64(c, v.v)
			c = c[8:]
		}
	}
	state := stateByte(l.State)
	c := at[ColumnTierState-1][row : row+n]
	for i := range c {
		c[i] = state
	}
}

// encodeSegments fills the columns that differ from segment to segment, from the row on.
func encodeSegments(at *[columns][]byte, segments []Segment, row int) {
	n := len(segments)
	wide := func(c Column) []byte { return at[c-1][8*row : 8*(row+n)] }
	narrow := func(c Column) []byte { return at[c-1][row : row+n] }
	base, next, size := wide(ColumnBase), wide(ColumnNext), wide(ColumnBytes)
	newest, age := wide(ColumnMaxTimestamp), wide(ColumnAge)
	tiers, copied, verified := narrow(ColumnTiers), narrow(ColumnCopied), narrow(ColumnVerified)
	le := binary.LittleEndian
	for i := range segments {
		s := &segments[i]
		le.PutUint64(base[8*i:], uint64(s.Base))
		le.PutUint64(next[8*i:], uint64(s.Next))
		le.PutUint64(size[8*i:], uint64(s.Bytes))
		le.PutUint64(newest[8*i:], uint64(s.MaxTime))
		le.PutUint64(age[8*i:], uint64(s.Age))
		tiers[i] = bit(s.Local)*TierLocal | bit(s.Remote)*TierRemote
		copied[i] = bit(s.Copied)
		verified[i] = bit(s.Verified)
	}
}

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
