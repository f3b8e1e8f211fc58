package kafka

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/tierd/tierd/runtime/tier"
)

// emptyBatch is a batch of magic 2 without records that stands for the offsets [base, next), as
// compaction leaves one where records were. Clients pass over it, and that is all it is for: the
// protocol has no other way to tell a reader that nothing follows up to next.
func emptyBatch(base, next tier.Offset) []byte {
	const size = 61
	b := make([]byte, size)
	none := ^uint64(0)
	binary.BigEndian.PutUint64(b, uint64(base))
	binary.BigEndian.PutUint32(b[8:], size-12)
	binary.BigEndian.PutUint32(b[12:], ^uint32(0)) // no leader epoch
	b[16] = 2
	binary.BigEndian.PutUint32(b[23:], uint32(next-base-1))
	binary.BigEndian.PutUint64(b[27:], none) // no timestamps
	binary.BigEndian.PutUint64(b[35:], none)
	binary.BigEndian.PutUint64(b[43:], none) // no producer
	binary.BigEndian.PutUint16(b[51:], ^uint16(0))
	binary.BigEndian.PutUint32(b[53:], ^uint32(0))
	binary.BigEndian.PutUint32(b[17:],
		crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}
