package rewind

import (
	"bytes"
	"reflect"
	"unsafe"
)

// Camera takes images. It is not safe for concurrent use.
type Camera struct {
	shapes shapes
	seen   seen
	image  *Image // that is being taken
}

// NewCamera returns one that does not go into what is left out, and so does not put it back.
func NewCamera(without Without) *Camera {
	return &Camera{shapes: newShapes(without)}
}

// Image is what lay in memory at one moment.
type Image struct {
	lists []savedList
	maps  []savedMap
}

// savedList are values that lay one after the other.
type savedList struct {
	at    unsafe.Pointer
	of    *shape
	was   reflect.Value // a slice
	bytes []byte        // of was, to compare them
}

type savedMap struct{ m, keys, values reflect.Value }

// Take takes an image of what root, which is a pointer, leads to.
func (c *Camera) Take(root any) *Image {
	c.seen.forget()
	c.image = &Image{}
	v := reflect.ValueOf(root)
	c.list(v.UnsafePointer(), c.shapes.see(v.Type().Elem()), 1)
	return c.image
}

// list saves n values that lie one after the other, and what they lead to.
func (c *Camera) list(at unsafe.Pointer, s *shape, n int) {
	size := s.typ.Size()
	if at == nil || n == 0 || size == 0 {
		return
	}
	if _, before := c.seen.meet(at, s, n); before {
		return
	}
	was := reflect.MakeSlice(s.list, n, n)
	reflect.Copy(was, s.slice(at, n))
	c.image.lists = append(c.image.lists,
		savedList{at, s, was, bytesAt(was.UnsafePointer(), size*uintptr(n))})
	if s.leads {
		for i := range n {
			c.lead(unsafe.Add(at, uintptr(i)*size), s)
		}
	}
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
			c.boxed(p.look(to).Elem())
		}
	}
}

func (c *Camera) table(at unsafe.Pointer, p *part) {
	c.shapes.follow(p)
	m := p.look(at)
	if m.IsNil() {
		return
	}
	if _, before := c.seen.meet(m.UnsafePointer(), p.of, 0); before { // its entries
		return
	}
	keys, values := entries(m, p)
	c.image.maps = append(c.image.maps, savedMap{m, keys, values})
	c.leads(keys, p.key)
	c.leads(values, p.of)
}

// leads saves what the values in a slice lead to.
func (c *Camera) leads(list reflect.Value, s *shape) {
	if !s.leads {
		return
	}
	first, size := list.UnsafePointer(), s.typ.Size()
	for i := range list.Len() {
		c.lead(unsafe.Add(first, uintptr(i)*size), s)
	}
}

// boxed saves what the value leads to that an interface holds.
func (c *Camera) boxed(held reflect.Value) {
	if !held.IsValid() {
		return
	}
	s := c.shapes.see(held.Type())
	if to := s.pointer(); to != nil {
		c.list(held.UnsafePointer(), c.shapes.follow(to), 1)
	} else if s.leads {
		c.lead(copyOf(held), s)
	}
}

// Restore puts everything back as it was. It can be done again and again, but not while its camera
// takes another image. What is as it was is not written to: it may be a variable that others read.
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
		reflect.Copy(s.of.slice(s.at, s.was.Len()), s.was)
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
	if n == 0 {
		return true
	}
	of := s.values.Type().Elem()
	now, size := reflect.New(of), of.Size()
	first, at := s.values.UnsafePointer(), now.UnsafePointer()
	for i := range n {
		v := s.m.MapIndex(s.keys.Index(i))
		if !v.IsValid() {
			return false
		}
		now.Elem().Set(v)
		was := bytesAt(unsafe.Add(first, uintptr(i)*size), size)
		if !bytes.Equal(bytesAt(at, size), was) {
			return false
		}
	}
	return true
}
