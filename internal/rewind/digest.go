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
	seen   map[seenAt]uint64
	sum    uint64
}

type seenAt struct {
	at unsafe.Pointer
	of *shape
}

// NewDigester returns one that does not look at what is left out.
func NewDigester(without Without) *Digester {
	return &Digester{shapes: newShapes(without), seen: map[seenAt]uint64{}}
}

// Of gives the 64 bits of what root, which is a pointer, leads to.
func (d *Digester) Of(root any) uint64 {
	clear(d.seen)
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

func (d *Digester) bytes(b []byte) {
	d.word(uint64(len(b)))
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
			d.boxed(to, p.typ)
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
	here := seenAt{to, s}
	if n, seen := d.seen[here]; seen {
		d.word(n)
		return
	}
	n := uint64(len(d.seen) + 1)
	d.seen[here] = n
	d.word(n)
	d.value(to, s)
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
	m := mapAt(at, p.typ)
	d.word(uint64(m.Len()))
	if m.Len() == 0 {
		return
	}
	if p.key.leads {
		panic("rewind: the keys of " + p.typ.String() + " have no order but that of addresses")
	}
	keys, values := entries(m, p)
	order := make([]entry, keys.Len())
	for i := range order {
		order[i] = entry{d.alone(elementAt(keys, i), p.key), i}
	}
	slices.SortFunc(order, entry.compare)
	for _, e := range order {
		d.word(e.sum)
		d.value(elementAt(values, e.i), p.of)
	}
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

func (d *Digester) boxed(at unsafe.Pointer, t reflect.Type) {
	held, of := heldAt(at, t)
	if held == nil {
		d.word(0)
		return
	}
	d.text(of.String())
	d.value(held, d.shapes.see(of))
}
