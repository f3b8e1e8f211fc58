package meter

import (
	"fmt"
	"unicode/utf8"
)

// reader decodes the WebAssembly binary format. The first error sticks; after it every method
// returns a zero value, so that a caller may check once.
type reader struct {
	b   []byte
	p   int
	at  int // position of b within the whole file, for messages
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: at byte %d: "+format,
			append([]any{ErrMalformed, r.at + r.p}, args...)...)
		r.p = len(r.b)
	}
}

func (r *reader) unsupported(proposal string) {
	if r.err == nil {
		r.err = fmt.Errorf("at byte %d: %w", r.at+r.p, &UnsupportedError{Proposal: proposal})
		r.p = len(r.b)
	}
}

func (r *reader) rest() int { return len(r.b) - r.p }

func (r *reader) u8() byte {
	if r.rest() < 1 {
		r.fail("unexpected end")
		return 0
	}
	r.p++
	return r.b[r.p-1]
}

// take returns the next n bytes, which alias the module.
func (r *reader) take(n uint32) []byte {
	if uint64(n) > uint64(r.rest()) {
		r.fail("%d bytes are announced where %d are left", n, r.rest())
		return nil
	}
	r.p += int(n)
	return r.b[r.p-int(n) : r.p : r.p]
}

// u32 reads an unsigned LEB128 number of at most 32 bits.
func (r *reader) u32() uint32 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := r.u8()
		v |= uint64(c&0x7f) << shift
		if c&0x80 == 0 {
			if v > 1<<32-1 {
				break
			}
			return uint32(v)
		}
	}
	r.fail("a number is longer than 32 bits")
	return 0
}

// signed passes over a signed LEB128 number of at most the given bits and returns it.
func (r *reader) signed(bits int) int64 {
	var v int64
	for shift := 0; shift < bits; shift += 7 {
		c := r.u8()
		v |= int64(c&0x7f) << shift
		if c&0x80 == 0 {
			if c&0x40 != 0 && shift+7 < 64 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
	r.fail("a number is longer than %d bits", bits)
	return 0
}

// count reads the length of a vector whose elements take at least size bytes each.
func (r *reader) count(size int) int {
	n := r.u32()
	if uint64(n)*uint64(size) > uint64(r.rest()) {
		r.fail("%d elements are announced where %d bytes are left", n, r.rest())
		return 0
	}
	return int(n)
}

func (r *reader) name() string {
	b := r.take(r.u32())
	if !utf8.Valid(b) {
		r.fail("a name is not valid UTF-8")
		return ""
	}
	return string(b)
}

// valueType reads a value type of the core specification.
func (r *reader) valueType() ValueType {
	switch t := r.u8(); t {
	case 0x7f, 0x7e, 0x7d, 0x7c, 0x70, 0x6f:
		return ValueType(t)
	default:
		r.notValueType(t)
		return 0
	}
}

func (r *reader) notValueType(t byte) {
	switch {
	case t == 0x7b:
		r.unsupported("fixed-width SIMD")
	case t == 0x69 || t == 0x74:
		r.unsupported("exception handling")
	case t == 0x63 || t == 0x64:
		r.unsupported("typed function references")
	case t >= 0x6a && t <= 0x73:
		r.unsupported("garbage collection")
	default:
		r.fail("%#x is no value type", t)
	}
}

// limits reads the limits of a memory or table.
func (r *reader) limits() Limits {
	flags := r.u8()
	switch {
	case flags&^0x0f != 0:
		r.fail("%#x are no limits", flags)
	case flags&0x08 != 0:
		r.unsupported("custom page sizes")
	case flags&0x04 != 0:
		r.unsupported("64-bit memory")
	case flags&0x02 != 0:
		r.unsupported("threads")
	}
	l := Limits{Min: r.u32()}
	if flags&1 != 0 {
		l.HasMax, l.Max = true, r.u32()
		if l.Max < l.Min {
			r.fail("the maximum %d is below the minimum %d", l.Max, l.Min)
		}
	}
	return l
}
