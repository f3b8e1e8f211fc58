package rewind

import (
	"bytes"
	"reflect"
	"unsafe"
)

// Camera takes images. It is not safe for concurrent use.
type Camera struct {
	shapes shapes
	seen   map[place]bool
	image  *Image // that is being taken
}

// place is where so many values of a shape lie; 0 is for the entries of a map.
type place struct {
	at unsafe.Pointer
	of *shape
	n  int
}

// NewCamera returns one that does not go into what is left out, and so does not put it back.
func NewCamera(without Without) *Camera {
	return &Camera{shapes: newShapes(without), seen: map[place]bool{}}
}

// Image is what lay in memory at one moment.
type Image struct {
	lists []savedList
	maps  []savedMap
}

// savedList are values that lay one after the other.
type savedList struct {
	at    unsafe.Pointer
	was   reflect.Value // a slice
	bytes []byte        // of was, to compare them
}

type savedMap struct{ m, keys, values reflect.Value }

// Take takes an image of what root, which is a pointer, leads to.
func (c *Camera) Take(root any) *Image {
	clear(c.seen)
	c.image = &Image{}
	v := reflect.ValueOf(root)
	c.list(v.UnsafePointer(), c.shapes.see(v.Type().Elem()), 1)
	return c.image
}

// list saves n values that lie one after the other, and what they lead to.
func (c *Camera) list(at unsafe.Pointer, s *shape, n int) {
	size := s.typ.Size()
	if at == nil || n == 0 || size == 0 || c.met(place{at, s, n}) {
		return
	}
	was := reflect.MakeSlice(s.list, n, n)
	reflect.Copy(was, reflect.SliceAt(s.typ, at, n))
	c.image.lists = append(c.image.lists,
		savedList{at, was, bytesAt(was.UnsafePointer(), size*uintptr(n))})
	if s.leads {
		for i := range n {
			c.lead(unsafe.Add(at, uintptr(i)*size), s)
		}
	}
}

// met reports whether somebody was there before.
func (c *Camera) met(p place) bool {
	met := c.seen[p]
	c.seen[p] = true
	return met
}

// lead saves what the value leads to.
func (c *Camera) lead(at unsafe.Pointer, s *shape) {
	for i := range s.parts {
		p := &s.parts[i]
		to := unsafe.Add(at, p.at)
		switch p.kind {
		case pointer:
			c.list(*(*unsafe.Pointer)(to), c.shapes.follow(p), 1)
		case unknown:
			s.never(to)
		case list:
			first, n := listAt(to)
			c.list(first, c.shapes.follow(p), n)
		case table:
			c.table(to, p)
		case boxed:
			if held, t := heldAt(to, p.typ); held != nil {
				c.lead(held, c.shapes.see(t))
			}
		}
	}
}

func (c *Camera) table(at unsafe.Pointer, p *part) {
	c.shapes.follow(p)
	m := mapAt(at, p.typ)
	if m.IsNil() || c.met(place{m.UnsafePointer(), p.of, 0}) {
		return
	}
	keys, values := entries(m, p)
	c.image.maps = append(c.image.maps, savedMap{m, keys, values})
	for i := range keys.Len() {
		if p.key.leads {
			c.lead(elementAt(keys, i), p.key)
		}
		if p.of.leads {
			c.lead(elementAt(values, i), p.of)
		}
	}
}

// Restore puts everything back as it was. It can be done again and again. What is as it was is not
// written to: it may be a variable that others read.
func (m *Image) Restore() {
	// Lists come first: the words lie in them that say which map it is that is put back.
	for i := range m.lists {
		m.lists[i].restore()
	}
	for i := range m.maps {
		m.maps[i].restore()
	}
}

// restore compares bytes, and writes values: the garbage collector has to see pointers come and go.
func (s *savedList) restore() {
	if !bytes.Equal(bytesAt(s.at, uintptr(len(s.bytes))), s.bytes) {
		reflect.Copy(reflect.SliceAt(s.was.Type().Elem(), s.at, s.was.Len()), s.was)
	}
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
	of := s.values.Type().Elem()
	now := reflect.New(of)
	for i := range n {
		v := s.m.MapIndex(s.keys.Index(i))
		if !v.IsValid() {
			return false
		}
		now.Elem().Set(v)
		was := bytesAt(elementAt(s.values, i), of.Size())
		if !bytes.Equal(bytesAt(now.UnsafePointer(), of.Size()), was) {
			return false
		}
	}
	return true
}
