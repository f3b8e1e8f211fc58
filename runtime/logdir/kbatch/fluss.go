package kbatch

import (
	"encoding/binary"

	"github.com/tierd/tierd/runtime/tier"
)

// Sizes in bytes of Fluss's batches: of what all magics share, and of each magic's header, which is
// also the smallest batch.
const (
	flussPrefix   = 13
	flussHeaderV0 = 48
	flussHeaderV1 = 52
	flussHeaderV2 = 56
)

// bitAppendOnly is set in the attributes where the records append, and are no changes.
const bitAppendOnly = 0x01

// flussHeader returns the number of header bytes of the magic; 0 for one that does not exist.
func flussHeader(magic int8) int {
	switch magic {
	case 0:
		return flussHeaderV0
	case 1:
		return flussHeaderV1
	case 2:
		return flussHeaderV2
	default:
		return 0
	}
}

// flussChecked returns the first byte that the checksum covers, which stands just before it: the
// schema id. Magic 2 has a leader epoch in front of the checksum.
func flussChecked(magic int8) int {
	if magic == 2 {
		return 29
	}
	return 25
}

// parseFluss reads what is particular to the magics of Fluss. p holds the header.
func (b *Batch) parseFluss(p []byte) error {
	header := flussHeader(b.Magic)
	if b.Size < int64(header) {
		return damaged(b, "a length of %d, where at least %d is needed", b.Size-overhead,
			header-overhead)
	}
	le := binary.LittleEndian
	b.MaxTimestamp = int64(le.Uint64(p[13:]))
	b.Epoch, b.AppendTime = tier.NoLeaderEpoch, true
	if b.Magic == 2 {
		b.Epoch = tier.LeaderEpoch(le.Uint32(p[21:]))
	}
	rest := p[flussChecked(b.Magic)-4:]
	b.CRC = le.Uint32(rest)
	b.AppendOnly = rest[6]&bitAppendOnly != 0
	delta := int32(le.Uint32(rest[7:]))
	b.ProducerID = int64(le.Uint64(rest[11:]))
	b.Records = int32(le.Uint32(rest[23:]))
	if b.Epoch < tier.NoLeaderEpoch {
		return damaged(b, "leader epoch %d", b.Epoch)
	}
	if b.Magic > 0 {
		if n := int32(le.Uint32(rest[27:])); n < 0 || int64(n) > b.Size-int64(header) {
			return damaged(b, "%d bytes of statistics in a batch of %d", n, b.Size)
		}
	}
	return b.spanning(delta)
}
