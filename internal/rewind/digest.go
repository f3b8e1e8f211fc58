package rewind

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"reflect"
	"slices"
	"unsafe"
)

// Digester tells worlds apart: those of which it says the same number are alike, but for what is
// left out, for addresses, and for the order in which maps are walked. It is not safe for
// concurrent use.
type Digester struct {
	shapes shapes
	seen   seen
	sum    uint64
}

// NewDigester returns one that does not look at what is left out.
func NewDigester(without Without) *Digester {
	return &Digester{shapes: newShapes(without)}
}

// Of gives the 64 bits of what root, which is a pointer, leads to.
func (d *Digester) Of(root any) uint64 {
	d.seen.forget()
	d.sum = 0
	v := reflect.ValueOf(root)
	d.value(v.UnsafePointer(), d.shapes.see(v.Type().Elem()))
	return d.sum
}

// Odd numbers without a pattern, by which words are mixed: of the golden ratio, and of the root of
// 3.
const (
	oddOne = 0x9e3779b97f4a7c15
	oddTwo = 0xbb67ae8584caa73b
)

func (d *Digester) word(w uint64) {
	high, low := bits.Mul64(d.sum^w^oddOne, oddTwo)
	d.sum = high ^ low ^ w<<1 ^ bits.RotateLeft64(d.sum, 29)
}

// words takes two at once, in about the time of one.
func (d *Digester) words(a, b uint64) {
	high, low := bits.Mul64(d.sum^a^oddOne, b^oddTwo)
	d.sum = high ^ low ^ a<<1 ^ bits.RotateLeft64(d.sum^b, 29)
}

func (d *Digester) bytes(b []byte) {
	d.word(uint64(len(b)))
	for ; len(b) >= 16; b = b[16:] {
		d.words(binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]))
	}
	for ; len(b) >= 8; b = b[8:] {
		d.word(binary.LittleEndian.Uint64(b))
	}
	if len(b) > 0 {
		var last [8]byte
		copy(last[:], b)
		d.word(binary.LittleEndian.Uint64(last[:]))
	}
}

func (d *Digester) value(at unsafe.Pointer, s *shape) {
	for i := range s.parts {
		p := &s.parts[i]
		to := unsafe.Add(at, p.at)
		switch p.kind {
		case plain:
			d.bytes(bytesAt(to, p.size))
		case text:
			d.text(*(*string)(to))
		case pointer:
			d.pointer(*(*unsafe.Pointer)(to), d.shapes.follow(p))
		case unknown:
			s.never(to)
		case list:
			d.list(to, d.shapes.follow(p))
		case table:
			d.table(to, p)
		case boxed:
			d.boxed(p.look(to).Elem())
		}
	}
}

func (d *Digester) text(s string) { d.bytes(unsafe.Slice(unsafe.StringData(s), len(s))) }

// pointer goes into what it leads to once; where it leads there again, it says so.
func (d *Digester) pointer(to unsafe.Pointer, s *shape) {
	if to == nil {
		d.word(0)
		return
	}
	n, before := d.seen.meet(to, s, 1)
	d.word(n)
	if !before {
		d.value(to, s)
	}
}

func (d *Digester) list(at unsafe.Pointer, of *shape) {
	first, n := listAt(at)
	d.word(uint64(n))
	size := of.typ.Size()
	if of.solid {
		d.bytes(bytesAt(first, uintptr(n)*size))
		return
	}
	for i := range n {
		d.value(unsafe.Add(first, uintptr(i)*size), of)
	}
}

// table goes through a map in the order of what its keys come to.
func (d *Digester) table(at unsafe.Pointer, p *part) {
	d.shapes.follow(p)
	m := p.look(at)
	n := m.Len()
	d.word(uint64(n))
	if n == 0 {
		return
	}
	if p.key.leads {
		panic("rewind: the keys of " + p.typ.String() + " have no order but that of addresses")
	}
	r := p.borrow(n)
	fill(m, r.keys, r.values)
	keys, keySize := r.keys.UnsafePointer(), p.key.typ.Size()
	for i := range n {
		r.order[i] = entry{d.alone(unsafe.Add(keys, uintptr(i)*keySize), p.key), i}
	}
	slices.SortFunc(r.order[:n], entry.compare)
	values, size := r.values.UnsafePointer(), p.of.typ.Size()
	for _, e := range r.order[:n] {
		d.word(e.sum)
		d.value(unsafe.Add(values, uintptr(e.i)*size), p.of)
	}
	p.spare = append(p.spare, r)
}

// room is where the entries of a map are laid out.
type room struct {
	keys, values reflect.Value // slices
	order        []entry
}

// borrow gives room for n entries: to make it anew takes longer than to look at them. What a map
// has may be another map of the same part, so that there can be several.
func (p *part) borrow(n int) *room {
	if last := len(p.spare) - 1; last >= 0 {
		r := p.spare[last]
		p.spare = p.spare[:last]
		if len(r.order) >= n {
			return r
		}
	}
	n = max(2*n, 8)
	return &room{reflect.MakeSlice(p.key.list, n, n), reflect.MakeSlice(p.of.list, n, n),
		make([]entry, n)}
}

// entry is what a key comes to, and which one it is.
type entry struct {
	sum uint64
	i   int
}

func (e entry) compare(other entry) int { return cmp.Compare(e.sum, other.sum) }

// alone gives what a value comes to, whatever was before.
func (d *Digester) alone(at unsafe.Pointer, s *shape) uint64 {
	before := d.sum
	d.sum = 0
	d.value(at, s)
	sum := d.sum
	d.sum = before
	return sum
}

func (d *Digester) boxed(held reflect.Value) {
	if !held.IsValid() {
		d.word(0)
		return
	}
	d.text(held.Type().String())
	s := d.shapes.see(held.Type())
	if to := s.pointer(); to != nil {
		d.pointer(held.UnsafePointer(), d.shapes.follow(to))
		return
	}
	if len(s.parts) > 0 {
		d.value(copyOf(held), s)
	}
}
