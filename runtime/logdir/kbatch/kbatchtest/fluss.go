package kbatchtest

import (
	"encoding/binary"
	"hash/crc32"
)

// Fluss appends a batch of Fluss to dst. Of the spec count Base, Last, Epoch (magic 2),
// MaxTimestamp as the commit timestamp, Empty, Body, Changes and, from magic 1 on, Statistics.
func Fluss(dst []byte, magic int8, s Spec) []byte {
	at := len(dst)
	sum := 21 // where the checksum stands
	if magic == 2 {
		sum = 25
	}
	header := sum + 27
	if magic > 0 {
		header += 4
	}
	dst = append(dst, make([]byte, header)...)
	dst = filler(dst, s.Statistics)
	dst = filler(dst, s.Body)
	b, le := dst[at:], binary.LittleEndian
	records := int64(s.Last-s.Base) + 1
	if s.Empty {
		records = 0
	}
	le.PutUint64(b, uint64(s.Base))
	le.PutUint32(b[8:], uint32(len(b)-12))
	b[12] = byte(magic)
	le.PutUint64(b[13:], uint64(s.MaxTimestamp))
	if magic == 2 {
		le.PutUint32(b[21:], uint32(s.Epoch))
	}
	le.PutUint16(b[sum+4:], 1) // schema id
	if !s.Changes {
		b[sum+6] = 1
	}
	le.PutUint32(b[sum+7:], uint32(s.Last-s.Base))
	le.PutUint64(b[sum+11:], ^uint64(0)) // no writer id
	le.PutUint32(b[sum+19:], ^uint32(0))
	le.PutUint32(b[sum+23:], uint32(records))
	if magic > 0 {
		le.PutUint32(b[sum+27:], uint32(s.Statistics))
	}
	SealFluss(b)
	return dst
}

// SealFluss gives the batch b of Fluss the checksum of its bytes as they are.
func SealFluss(b []byte) {
	sum := 21
	if b[12] == 2 {
		sum = 25
	}
	binary.LittleEndian.PutUint32(b[sum:],
		crc32.Checksum(b[sum+4:], crc32.MakeTable(crc32.Castagnoli)))
}
