package rewind

import (
	"bytes"
	"reflect"
	"unsafe"
)

// Camera takes images. It is not safe for concurrent use.
type Camera struct{ shapes shapes }

// NewCamera returns one that does not go into what is left out, and so does not put it back.
func NewCamera(without Without) *Camera {
	return &Camera{shapes{without, map[reflect.Type]*shape{}}}
}

// Image is what lay in memory at one moment.
type Image struct {
	bytes  []savedBytes
	values []savedValues
	maps   []savedMap
	seen   map[place]bool
}

type place struct {
	at unsafe.Pointer
	of *shape
	n  int
}

type savedBytes struct {
	at   unsafe.Pointer
	data []byte
}

type savedValues struct{ at, saved reflect.Value } // both slices

type savedMap struct{ m, keys, values reflect.Value }

// Take takes an image of what root, which is a pointer, leads to.
func (c *Camera) Take(root any) *Image {
	m := &Image{seen: map[place]bool{}}
	v := reflect.ValueOf(root)
	c.object(m, v.UnsafePointer(), c.shapes.see(v.Type().Elem()), 1)
	m.seen = nil
	return m
}

// object saves n values that lie one after the other, and what they lead to.
func (c *Camera) object(m *Image, at unsafe.Pointer, s *shape, n int) {
	size := s.typ.Size()
	if at == nil || n == 0 || size == 0 {
		return
	}
	here := place{at, s, n}
	if m.seen[here] {
		return
	}
	m.seen[here] = true
	if s.hasRef {
		there := reflect.NewAt(reflect.SliceOf(s.typ), unsafe.Pointer(&header{at, n, n})).Elem()
		saved := reflect.MakeSlice(there.Type(), n, n)
		reflect.Copy(saved, there)
		m.values = append(m.values, savedValues{there, saved})
	} else {
		data := make([]byte, size*uintptr(n))
		copy(data, unsafe.Slice((*byte)(at), len(data)))
		m.bytes = append(m.bytes, savedBytes{at, data})
	}
	if s.leads {
		for i := range n {
			c.lead(m, unsafe.Add(at, uintptr(i)*size), s)
		}
	}
}

// lead saves what the value leads to.
func (c *Camera) lead(m *Image, at unsafe.Pointer, s *shape) {
	for i := range s.parts {
		p := &s.parts[i]
		to := unsafe.Add(at, p.at)
		switch p.kind {
		case pointer:
			c.object(m, *(*unsafe.Pointer)(to), c.shapes.follow(p), 1)
		case unknown:
			s.never(to)
		case list:
			h := (*header)(to)
			c.object(m, h.data, c.shapes.follow(p), h.len)
		case table:
			c.table(m, to, p)
		case boxed:
			if v, ok := within(to, p.typ); ok {
				c.shown(m, v)
			}
		}
	}
}

func (c *Camera) shown(m *Image, v reflect.Value) {
	s := c.shapes.see(v.Type())
	if v.Kind() == reflect.Pointer && len(s.parts) == 1 {
		c.object(m, v.UnsafePointer(), c.shapes.follow(&s.parts[0]), 1)
	} else if s.leads {
		c.lead(m, unboxed(v), s)
	}
}

func (c *Camera) table(m *Image, at unsafe.Pointer, p *part) {
	c.shapes.follow(p)
	word := *(*unsafe.Pointer)(at)
	here := place{word, p.of, -1}
	if word == nil || m.seen[here] {
		return
	}
	m.seen[here] = true
	// Its word may change where it lies; the map is kept by a word of its own.
	own := reflect.New(p.typ)
	own.Elem().Set(mapAt(at, p.typ))
	saved := savedMap{m: own.Elem()}
	n := saved.m.Len()
	saved.keys = reflect.MakeSlice(reflect.SliceOf(p.key.typ), n, n)
	saved.values = reflect.MakeSlice(reflect.SliceOf(p.of.typ), n, n)
	iter := saved.m.MapRange()
	for i := 0; iter.Next(); i++ {
		saved.keys.Index(i).SetIterKey(iter)
		saved.values.Index(i).SetIterValue(iter)
	}
	m.maps = append(m.maps, saved)
	for i := range n {
		if p.key.leads {
			c.lead(m, saved.keys.Index(i).Addr().UnsafePointer(), p.key)
		}
		if p.of.leads {
			c.lead(m, saved.values.Index(i).Addr().UnsafePointer(), p.of)
		}
	}
}

// Restore puts everything back as it was. It can be done again and again. What is as it was is not
// written to: it may be a variable that others read.
func (m *Image) Restore() {
	for _, s := range m.bytes {
		if now := unsafe.Slice((*byte)(s.at), len(s.data)); !bytes.Equal(now, s.data) {
			copy(now, s.data)
		}
	}
	for _, s := range m.values {
		size := s.at.Type().Elem().Size() * uintptr(s.at.Len())
		if !same(s.at.UnsafePointer(), s.saved.UnsafePointer(), size) {
			reflect.Copy(s.at, s.saved)
		}
	}
	for i := range m.maps {
		m.maps[i].restore()
	}
}

// same reports whether the same bytes lie in two places.
func same(a, b unsafe.Pointer, size uintptr) bool {
	return bytes.Equal(unsafe.Slice((*byte)(a), size), unsafe.Slice((*byte)(b), size))
}

func (s *savedMap) restore() {
	if s.stands() {
		return
	}
	s.m.Clear()
	for i := range s.keys.Len() {
		s.m.SetMapIndex(s.keys.Index(i), s.values.Index(i))
	}
}

// stands reports whether the map has what it had.
func (s *savedMap) stands() bool {
	n := s.keys.Len()
	if s.m.Len() != n {
		return false
	}
	now := reflect.New(s.values.Type().Elem())
	for i := range n {
		v := s.m.MapIndex(s.keys.Index(i))
		if !v.IsValid() {
			return false
		}
		now.Elem().Set(v)
		was := s.values.Index(i).Addr().UnsafePointer()
		if !same(now.UnsafePointer(), was, v.Type().Size()) {
			return false
		}
	}
	return true
}
