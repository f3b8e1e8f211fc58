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
	typ    reflect.Type
	parts  []part
	leads  bool // somewhere else
	solid  bool // plain bytes throughout, without a gap
	hasRef bool // holds what the garbage collector must see
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

// see returns the shape of a type. A field to be left out that a type does not have is a mistake,
// and panics, so that no list of them outlives what it names.
func (s *shapes) see(t reflect.Type) *shape {
	if known := s.of[t]; known != nil {
		return known
	}
	out := &shape{typ: t}
	s.of[t] = out // before its parts: types are recursive
	s.add(out, t, 0)
	out.hasRef = refs(t)
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
		if f.Name != "_" {
			s.add(out, f.Type, at+f.Offset)
		}
	}
	if len(without) > 0 {
		panic(fmt.Sprintf("rewind: %s has no fields %q that could be left out", t, without))
	}
}

// refs reports whether a value of the type holds a pointer of any kind.
func refs(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if refs(t.Field(i).Type) {
				return true
			}
		}
		return false
	case reflect.Array:
		return t.Len() > 0 && refs(t.Elem())
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Uintptr, reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return false
	default:
		return true
	}
}

// never panics where an unsafe.Pointer leads somewhere.
func (s *shape) never(to unsafe.Pointer) {
	if *(*unsafe.Pointer)(to) != nil {
		panic(fmt.Sprintf("rewind: within %s: nobody knows what an unsafe.Pointer leads to", s.typ))
	}
}

// header is how a slice lies in memory.
type header struct {
	data     unsafe.Pointer
	len, cap int
}

// within is what an interface holds, where it can be gone into; nil where it holds nothing. A
// value that is no pointer is a copy: what the interface holds never changes.
func within(p unsafe.Pointer, t reflect.Type) (v reflect.Value, ok bool) {
	v = reflect.NewAt(t, p).Elem().Elem()
	return v, v.IsValid()
}

// unboxed is an address of a value that an interface holds.
func unboxed(v reflect.Value) unsafe.Pointer {
	c := reflect.New(v.Type())
	c.Elem().Set(v)
	return c.UnsafePointer()
}

// mapAt is the map whose word lies there.
func mapAt(p unsafe.Pointer, t reflect.Type) reflect.Value { return reflect.NewAt(t, p).Elem() }
