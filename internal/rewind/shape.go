package rewind

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"
)

type kind uint8

const (
	plain   kind = iota // bytes that mean themselves
	text                // a string
	pointer             // to one value
	list                // a slice
	table               // a map
	boxed               // an interface
	unknown             // an unsafe.Pointer, of which nobody knows what it leads to
)

// part is what lies in one place of a value.
type part struct {
	kind kind
	at   uintptr
	size uintptr      // of plain bytes
	typ  reflect.Type // of a map or an interface
	to   reflect.Type // what a pointer, a slice or a map leads to
	key  *shape       // of a map; nil until somebody comes there, like of
	of   *shape       // of to
	eye  *eye         // on a map or an interface; nil until somebody looks
	// spare is room for what a map has, of which nobody makes use now.
	spare []*room
}

// eye looks at variables of one type as values of package reflect, which would look up the type of
// a pointer to them each time.
type eye struct {
	at *unsafe.Pointer // the pointer that it is: where it looks
	by reflect.Value
}

func newEye(t reflect.Type) *eye {
	by := reflect.New(reflect.PointerTo(t))
	return &eye{(*unsafe.Pointer)(by.UnsafePointer()), by.Elem()}
}

// look gives what lies there. A field that is not exported is reached like any other.
func (p *part) look(at unsafe.Pointer) reflect.Value {
	if p.eye == nil {
		p.eye = newEye(p.typ)
	}
	*p.eye.at = at
	return p.eye.by.Elem()
}

// follow has the shapes ready of what the part leads to.
func (s *shapes) follow(p *part) *shape {
	if p.of == nil {
		p.of = s.see(p.to)
		if p.kind == table {
			p.key = s.see(p.typ.Key())
		}
	}
	return p.of
}

// shape is where in a value of a type what lies, but for padding, functions and what is left out.
type shape struct {
	typ   reflect.Type
	list  reflect.Type // of such values: a slice
	parts []part
	leads bool // somewhere else
	solid bool // plain bytes throughout, without a gap
	lens  *eye // on slices of such values; nil until somebody looks
}

// slice gives the values that lie there, one after the other.
func (s *shape) slice(at unsafe.Pointer, n int) reflect.Value {
	if s.lens == nil {
		s.lens = newEye(s.list)
		*s.lens.at = reflect.New(s.list).UnsafePointer()
	}
	*(*[]byte)(*s.lens.at) = unsafe.Slice((*byte)(at), n) // slices of all types are laid out alike
	return s.lens.by.Elem()
}

// Without says what is not gone into: types by their text, such as "*rego.Set", and fields of a
// struct by the text of its type.
type Without struct {
	Types  []string
	Fields map[string][]string
}

// shapes knows the types that were met. It is not safe for concurrent use.
type shapes struct {
	without Without
	of      map[reflect.Type]*shape
}

func newShapes(without Without) shapes { return shapes{without, map[reflect.Type]*shape{}} }

// pointer is the one that values of the shape are; nil where they are something else.
func (s *shape) pointer() *part {
	if s.typ.Kind() == reflect.Pointer && len(s.parts) == 1 {
		return &s.parts[0]
	}
	return nil
}

// see returns the shape of a type. A field to be left out that a type does not have is a mistake,
// and panics, so that no list of them outlives what it names.
func (s *shapes) see(t reflect.Type) *shape {
	if known := s.of[t]; known != nil {
		return known
	}
	out := &shape{typ: t, list: reflect.SliceOf(t)}
	s.of[t] = out // before its parts: types are recursive
	s.add(out, t, 0)
	size := uintptr(0)
	for _, p := range out.parts {
		out.leads = out.leads || p.kind != plain && p.kind != text
		size += p.size
	}
	out.solid = len(out.parts) == 0 && t.Size() == 0 ||
		len(out.parts) == 1 && out.parts[0].kind == plain && size == t.Size()
	return out
}

func (s *shapes) add(out *shape, t reflect.Type, at uintptr) {
	if slices.Contains(s.without.Types, t.String()) {
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		s.fields(out, t, at)
	case reflect.Array:
		if one := s.see(t.Elem()); one.solid {
			out.plain(at, t.Size())
			return
		}
		for i := range t.Len() {
			s.add(out, t.Elem(), at+uintptr(i)*t.Elem().Size())
		}
	case reflect.String:
		out.parts = append(out.parts, part{kind: text, at: at})
	case reflect.Pointer:
		out.parts = append(out.parts, part{kind: pointer, at: at, to: t.Elem()})
	case reflect.Slice:
		out.parts = append(out.parts, part{kind: list, at: at, to: t.Elem()})
	case reflect.Map:
		out.parts = append(out.parts, part{kind: table, at: at, typ: t, to: t.Elem()})
	case reflect.Interface:
		out.parts = append(out.parts, part{kind: boxed, at: at, typ: t})
	case reflect.Func, reflect.Chan:
	case reflect.UnsafePointer:
		out.parts = append(out.parts, part{kind: unknown, at: at})
	default:
		out.plain(at, t.Size())
	}
}

// plain adds bytes that mean themselves to those before, where there is no gap.
func (s *shape) plain(at, size uintptr) {
	if last := len(s.parts) - 1; last >= 0 && s.parts[last].kind == plain &&
		s.parts[last].at+s.parts[last].size == at {
		s.parts[last].size += size
		return
	}
	s.parts = append(s.parts, part{kind: plain, at: at, size: size})
}

func (s *shapes) fields(out *shape, t reflect.Type, at uintptr) {
	without := slices.Clone(s.without.Fields[t.String()])
	for i := range t.NumField() {
		f := t.Field(i)
		if j := slices.Index(without, f.Name); j >= 0 {
			without = slices.Delete(without, j, j+1)
			continue
		}
		s.add(out, f.Type, at+f.Offset)
	}
	if len(without) > 0 {
		panic(fmt.Sprintf("rewind: %s has no fields %q that could be left out", t, without))
	}
}

// never panics where an unsafe.Pointer leads somewhere.
func (s *shape) never(to unsafe.Pointer) {
	if *(*unsafe.Pointer)(to) != nil {
		panic(fmt.Sprintf("rewind: within %s: nobody knows what an unsafe.Pointer leads to", s.typ))
	}
}

// What follows reads memory by its address and type. The addresses are of variables that somebody
// reaches by a pointer, an element, a field or a word of a map, so that they are valid, aligned,
// and known to the garbage collector; and what is read there is what its type says.

// listAt is where the values of a slice lie, and how many. It is read as one of bytes: slices of
// all types are laid out alike.
func listAt(p unsafe.Pointer) (first unsafe.Pointer, n int) {
	list := *(*[]byte)(p)
	return unsafe.Pointer(unsafe.SliceData(list)), len(list)
}

// bytesAt are the bytes of what lies there, to be looked at.
func bytesAt(p unsafe.Pointer, size uintptr) []byte { return unsafe.Slice((*byte)(p), size) }

// entries are copies of what a map has, in no order.
func entries(m reflect.Value, p *part) (keys, values reflect.Value) {
	n := m.Len()
	keys, values = reflect.MakeSlice(p.key.list, n, n), reflect.MakeSlice(p.of.list, n, n)
	fill(m, keys, values)
	return keys, values
}

func fill(m, keys, values reflect.Value) {
	iter := m.MapRange()
	for i := 0; iter.Next(); i++ {
		keys.Index(i).SetIterKey(iter)
		values.Index(i).SetIterValue(iter)
	}
}

// copyOf is a copy of what an interface holds, by its address. What an interface holds never
// changes: where that is a pointer, what it leads to may.
func copyOf(held reflect.Value) unsafe.Pointer {
	c := reflect.New(held.Type())
	c.Elem().Set(held)
	return c.UnsafePointer()
}
