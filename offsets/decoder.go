package offsets

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tierd/tierd/runtime/tier"
)

// nameBytesMax bounds the names of files, logs and tables.
const nameBytesMax = 4096

// decoder reads a body from its start. After the first mistake it is bad, and all it gives is
// zero; end tells. It never takes memory for more than the body can hold.
type decoder struct {
	b     []byte
	bad   bool
	words map[string]string
}

// end reports whether the body was read well and to its last byte.
func (d *decoder) end() error {
	if d.bad {
		return fmt.Errorf("%w: the value cannot be read", tier.ErrDamaged)
	}
	if len(d.b) > 0 {
		return fmt.Errorf("%w: the value has %d bytes too many", tier.ErrDamaged, len(d.b))
	}
	return nil
}

// take returns the next n bytes, which belong to the body; nil if there are not so many.
func (d *decoder) take(n int) []byte {
	if d.bad || n > len(d.b) {
		d.bad = true
		return nil
	}
	out := d.b[:n:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if d.bad || n <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	if d.bad || n <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) uint32() uint32 {
	v := d.uint()
	if v > math.MaxUint32 {
		d.bad = true
		return 0
	}
	return uint32(v)
}

func (d *decoder) int32() int32 {
	v := d.int()
	if v < math.MinInt32 || v > math.MaxInt32 {
		d.bad = true
		return 0
	}
	return int32(v)
}

// count reads the number of things that follow, each of at least one byte.
func (d *decoder) count() int {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.bad = true
		return 0
	}
	return int(n)
}

func (d *decoder) flag() bool {
	b := d.take(1)
	if b != nil && b[0] > 1 {
		d.bad = true
	}
	return !d.bad && b[0] == 1
}

func (d *decoder) string() string { return string(d.take(d.count())) }

// word reads a text that is often the same, and returns the same string for the same text.
func (d *decoder) word() string {
	b := d.take(d.count())
	if s, ok := d.words[string(b)]; ok {
		return s
	}
	s := string(b)
	if d.words != nil {
		d.words[s] = s
	}
	return s
}

// rangeOf reads a base and the number of offsets from there.
func (d *decoder) rangeOf() tier.Range {
	r := tier.Range{Base: tier.Offset(d.int())}
	r.Next = r.Base + tier.Offset(d.int())
	return r
}

func (d *decoder) ranges() tier.RangeSet {
	var out tier.RangeSet
	for range d.count() {
		out = append(out, d.rangeOf())
	}
	return out
}

// verifyModes are the modes by the byte that stands for them.
var verifyModes = [...]tier.VerifyMode{"", tier.VerifySize, tier.VerifySample, tier.VerifyFull}

func verifyByte(m tier.VerifyMode) byte {
	for i, mode := range verifyModes {
		if m == mode {
			return byte(i)
		}
	}
	return 0
}

func (d *decoder) verifyMode() tier.VerifyMode {
	b := d.take(1)
	if b == nil || int(b[0]) >= len(verifyModes) {
		d.bad = true
		return ""
	}
	return verifyModes[b[0]]
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendRange(b []byte, r tier.Range) []byte {
	b = binary.AppendVarint(b, int64(r.Base))
	return binary.AppendVarint(b, int64(r.Next-r.Base))
}

func appendRanges(b []byte, s tier.RangeSet) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	for _, r := range s {
		b = appendRange(b, r)
	}
	return b
}
