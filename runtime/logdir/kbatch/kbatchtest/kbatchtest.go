// Package kbatchtest builds the bytes of record batches of Kafka and Fluss, for tests. What it
// writes as records is filler: no reader of headers looks at it.
package kbatchtest

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/tier"
)

// Spec is what a batch shall say. The zero Spec is a batch of magic 2 with one record at offset 0
// in epoch 0, at the Unix epoch.
type Spec struct {
	Base, Last    tier.Offset // inclusive; in magic 0 and 1 only Last is written
	Epoch         tier.LeaderEpoch
	MaxTimestamp  int64 // milliseconds since the Unix epoch
	Codec         kbatch.Codec
	AppendTime    bool
	Transactional bool
	Control       bool
	DeleteHorizon bool
	Empty         bool // no records, as compaction leaves it
	Body          int  // bytes of filler after the header
	Changes       bool // Fluss: of a changelog
	Statistics    int  // Fluss: bytes of filler between header and body
}

// V2 appends a batch of magic 2 to dst.
func V2(dst []byte, s Spec) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, kbatch.HeaderMax)...)
	dst = filler(dst, s.Body)
	b := dst[at:]
	records := int64(s.Last-s.Base) + 1
	if s.Empty {
		records = 0
	}
	binary.BigEndian.PutUint64(b, uint64(s.Base))
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	binary.BigEndian.PutUint32(b[12:], uint32(s.Epoch))
	b[16] = 2
	binary.BigEndian.PutUint16(b[21:], uint16(s.attributes()))
	binary.BigEndian.PutUint32(b[23:], uint32(s.Last-s.Base))
	binary.BigEndian.PutUint64(b[27:], uint64(s.MaxTimestamp))
	binary.BigEndian.PutUint64(b[35:], uint64(s.MaxTimestamp))
	binary.BigEndian.PutUint64(b[43:], ^uint64(0)) // no producer id
	binary.BigEndian.PutUint16(b[51:], ^uint16(0))
	binary.BigEndian.PutUint32(b[53:], ^uint32(0))
	binary.BigEndian.PutUint32(b[57:], uint32(records))
	Seal(b)
	return dst
}

// V01 appends a message of magic 0 or 1 to dst: a wrapper if it has a codec.
func V01(dst []byte, magic int8, s Spec) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, 18+8*int(magic))...)
	dst = binary.BigEndian.AppendUint32(dst, ^uint32(0)) // no key
	dst = binary.BigEndian.AppendUint32(dst, uint32(s.Body))
	dst = filler(dst, s.Body)
	b := dst[at:]
	binary.BigEndian.PutUint64(b, uint64(s.Last))
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	b[16], b[17] = byte(magic), s.attributes()
	if magic == 1 {
		binary.BigEndian.PutUint64(b[18:], uint64(s.MaxTimestamp))
	}
	Seal(b)
	return dst
}

// Seal gives the batch b the checksum of its bytes as they are.
func Seal(b []byte) {
	if b[16] == 2 {
		sum := crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli))
		binary.BigEndian.PutUint32(b[17:], sum)
		return
	}
	binary.BigEndian.PutUint32(b[12:], crc32.ChecksumIEEE(b[16:]))
}

func (s *Spec) attributes() byte {
	a := byte(s.Codec)
	for bit, set := range map[byte]bool{0x08: s.AppendTime, 0x10: s.Transactional,
		0x20: s.Control, 0x40: s.DeleteHorizon} {
		if set {
			a |= bit
		}
	}
	return a
}

func filler(dst []byte, n int) []byte {
	for i := range n {
		dst = append(dst, byte(i*7))
	}
	return dst
}
