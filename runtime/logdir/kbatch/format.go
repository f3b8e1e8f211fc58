package kbatch

import (
	"encoding/binary"
	"io"
	"math"

	"github.com/tierd/tierd/runtime/tier"
)

// Format is whose record batches they are. The zero value is Kafka's.
type Format uint8

// The formats.
const (
	Kafka Format = iota
	Fluss
)

// FormatOf is the format of the batches in segments of the layout; false where it is not known
// what is in them.
func FormatOf(l tier.Layout) (f Format, ok bool) {
	switch l {
	case tier.LayoutKafka:
		return Kafka, true
	case tier.LayoutFluss:
		return Fluss, true
	}
	return 0, false
}

// prefix is how many bytes all magics of the format share; the magic is the last of them.
func (f Format) prefix() int {
	if f == Fluss {
		return flussPrefix
	}
	return prefix
}

// headerSize returns the number of header bytes of the magic; 0 for one that does not exist.
func (f Format) headerSize(magic int8) int {
	if f == Fluss {
		return flussHeader(magic)
	}
	switch magic {
	case 0:
		return headerV0
	case 1:
		return headerV1
	case 2:
		return headerV2
	default:
		return 0
	}
}

func (f Format) order() binary.ByteOrder {
	if f == Fluss {
		return binary.LittleEndian
	}
	return binary.BigEndian
}

// Parse reads the header of the batch that begins with p, at the byte position pos of a file that
// has room more bytes from there on. p must hold the header, or all of room where that is less;
// HeaderMax bytes always do. It returns ErrTorn if the batch does not end within room, with what
// the header says where that is whole, and wraps tier.ErrDamaged if the header contradicts itself.
// The checksum is not looked at.
func (f Format) Parse(p []byte, pos, room int64) (Batch, error) {
	prefix := f.prefix()
	if len(p) < prefix {
		return Batch{}, torn(pos, room)
	}
	magic := int8(p[prefix-1])
	size := f.headerSize(magic)
	base, length := int64(f.order().Uint64(p)), int32(f.order().Uint32(p[8:]))
	b := Batch{Format: f, Position: pos, Size: overhead + int64(length), Magic: magic,
		Base: tier.Offset(base), Last: tier.Offset(base)}
	if size == 0 {
		return b, damaged(&b, "magic %d, where 0, 1 or 2 is known", magic)
	}
	if len(p) < size {
		return Batch{}, torn(pos, room)
	}
	if base < 0 || base == math.MaxInt64 {
		return b, damaged(&b, "no such offset")
	}
	var err error
	if f == Fluss {
		err = b.parseFluss(p)
	} else {
		err = b.parseKafka(p)
	}
	if err == nil && b.Size > room {
		err = tornBatch(&b, "it has %d bytes, and %d are left", b.Size, room)
	}
	return b, err
}

// Next reads the header at pos of a log file that has size bytes. It returns io.EOF at its end,
// and what Parse returns. The checksum is not looked at.
func (f Format) Next(r io.ReaderAt, pos, size int64) (Batch, error) {
	if pos >= size {
		return Batch{}, io.EOF
	}
	var head [HeaderMax]byte
	n, err := r.ReadAt(head[:min(HeaderMax, size-pos)], pos)
	if err != nil && err != io.EOF {
		return Batch{}, err
	}
	return f.Parse(head[:n], pos, size-pos)
}
