package rewind

import (
	"encoding/binary"
	"math/bits"
	"reflect"
	"slices"
	"strings"
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
	return &Digester{shapes: shapes{without, map[reflect.Type]*shape{}}, seen: map[seenAt]uint64{}}
}

// Of gives the 64 bits of what root, which is a pointer, leads to.
func (d *Digester) Of(root any) uint64 {
	clear(d.seen)
	d.sum = 0
	v := reflect.ValueOf(root)
	d.value(v.UnsafePointer(), d.shapes.see(v.Type().Elem()))
	return d.sum
}

// The odd numbers by which words are multiplied: of the golden ratio, and of the root of 3.
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
			if p.size == 8 {
				d.word(*(*uint64)(to))
			} else {
				d.bytes(unsafe.Slice((*byte)(to), p.size))
			}
		case text:
			d.text(*(*string)(to))
		case pointer:
			d.pointer(*(*unsafe.Pointer)(to), d.shapes.follow(p))
		case unknown:
			s.never(to)
		case list:
			d.list((*header)(to), d.shapes.follow(p))
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

func (d *Digester) list(h *header, of *shape) {
	d.word(uint64(h.len))
	size := of.typ.Size()
	if of.solid {
		d.bytes(unsafe.Slice((*byte)(h.data), uintptr(h.len)*size))
		return
	}
	for i := range h.len {
		d.value(unsafe.Add(h.data, uintptr(i)*size), of)
	}
}

// table goes through a map in the order of its keys.
func (d *Digester) table(at unsafe.Pointer, p *part) {
	d.shapes.follow(p)
	m := mapAt(at, p.typ)
	n := m.Len()
	d.word(uint64(n))
	if n == 0 {
		return
	}
	keys := reflect.MakeSlice(reflect.SliceOf(p.key.typ), n, n)
	values := reflect.MakeSlice(reflect.SliceOf(p.of.typ), n, n)
	iter := m.MapRange()
	order := make([]entry, n)
	for i := 0; iter.Next(); i++ {
		keys.Index(i).SetIterKey(iter)
		values.Index(i).SetIterValue(iter)
		order[i] = d.entry(keys.Index(i), p, i)
	}
	slices.SortFunc(order, entry.compare)
	for _, e := range order {
		d.value(keys.Index(e.i).Addr().UnsafePointer(), p.key)
		d.value(values.Index(e.i).Addr().UnsafePointer(), p.of)
	}
}

// entry is a key, and which one it is.
type entry struct {
	name string
	sum  uint64
	i    int
}

func (e entry) compare(other entry) int {
	if c := strings.Compare(e.name, other.name); c != 0 {
		return c
	}
	if e.sum < other.sum {
		return -1
	}
	return 1
}

// entry puts a key in its place, by what it says. A key that leads elsewhere has none.
func (d *Digester) entry(key reflect.Value, p *part, i int) entry {
	if p.key.leads {
		panic("rewind: the keys of " + p.typ.String() + " have no order but that of addresses")
	}
	if key.Kind() == reflect.String {
		return entry{name: key.String(), i: i}
	}
	before := d.sum
	d.sum = 0
	d.value(key.Addr().UnsafePointer(), p.key)
	sum := d.sum
	d.sum = before
	return entry{sum: sum, i: i}
}

func (d *Digester) boxed(at unsafe.Pointer, t reflect.Type) {
	v, ok := within(at, t)
	if !ok {
		d.word(0)
		return
	}
	s := d.shapes.see(v.Type())
	d.text(v.Type().String())
	if v.Kind() == reflect.Pointer && len(s.parts) == 1 {
		d.pointer(v.UnsafePointer(), d.shapes.follow(&s.parts[0]))
	} else if len(s.parts) > 0 {
		d.value(unboxed(v), s)
	}
}
