package kbatch

import "hash/crc32"

// Check compares the checksum of the batch with its bytes, all of which p must hold. An error wraps
// tier.ErrDamaged.
func (b *Batch) Check(p []byte) error {
	table, from := b.checksum()
	if int64(len(p)) < b.Size {
		return tornBatch(b, "%d of its %d bytes are there", len(p), b.Size)
	}
	if sum := crc32.Checksum(p[from:b.Size], table); sum != b.CRC {
		return damaged(b, "crc 0x%08x computed, 0x%08x stored", sum, b.CRC)
	}
	return nil
}
