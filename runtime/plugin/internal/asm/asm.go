// Package asm assembles small WebAssembly modules for tests. It checks nothing: a test may well
// want a module that is wrong.
package asm

import (
	"encoding/binary"
	"slices"
)

// The value types, and the block type that has neither parameters nor results.
const (
	I32   byte = 0x7f
	I64   byte = 0x7e
	F32   byte = 0x7d
	F64   byte = 0x7c
	V128  byte = 0x7b
	Func  byte = 0x70
	Empty byte = 0x40
)

// The instructions that tests spell. Those with immediates have functions below.
const (
	Unreachable byte = 0x00
	Nop         byte = 0x01
	Else        byte = 0x05
	End         byte = 0x0b
	Return      byte = 0x0f
	Drop        byte = 0x1a
	I32Eqz      byte = 0x45
	I32LtU      byte = 0x49
	I32GeU      byte = 0x4f
	I64Eqz      byte = 0x50
	I64LtS      byte = 0x53
	I32Add      byte = 0x6a
	I32Sub      byte = 0x6b
	I32Mul      byte = 0x6c
	I32DivU     byte = 0x6e
	I32Shl      byte = 0x74
	I64Add      byte = 0x7c
	I64Sub      byte = 0x7d
	I64Mul      byte = 0x7e
	I64DivS     byte = 0x7f
	I64Or       byte = 0x84
	I64Shl      byte = 0x86
	I64ExtendU  byte = 0xad
	MemorySize  byte = 0x3f // followed by 0
	MemoryGrow  byte = 0x40 // followed by 0
)

// Code joins pieces of code: bytes, byte slices and strings of bytes.
func Code(pieces ...any) []byte {
	var out []byte
	for _, p := range pieces {
		switch p := p.(type) {
		case byte:
			out = append(out, p)
		case int:
			out = append(out, byte(p))
		case []byte:
			out = append(out, p...)
		default:
			panic("asm: a piece of code is a byte or bytes")
		}
	}
	return out
}

// U32 encodes an unsigned number.
func U32(v uint32) []byte { return binary.AppendUvarint(nil, uint64(v)) }

// Signed encodes a signed number.
func Signed(v int64) []byte {
	var out []byte
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(out, c)
		}
		out = append(out, c|0x80)
	}
}

func op(b byte, v uint32) []byte { return append([]byte{b}, U32(v)...) }

// I32Const pushes v.
func I32Const(v int32) []byte { return append([]byte{0x41}, Signed(int64(v))...) }

// I64Const pushes v.
func I64Const(v int64) []byte { return append([]byte{0x42}, Signed(v)...) }

// Block, Loop and If begin a block of the type.
func Block(t byte) []byte { return []byte{0x02, t} }

// Loop begins a loop of the type.
func Loop(t byte) []byte { return []byte{0x03, t} }

// If begins a conditional block of the type.
func If(t byte) []byte { return []byte{0x04, t} }

// Br branches to the label.
func Br(label uint32) []byte { return op(0x0c, label) }

// BrIf branches to the label if the top of the stack is not zero.
func BrIf(label uint32) []byte { return op(0x0d, label) }

// BrTable branches to one of the labels, the last being the default.
func BrTable(labels ...uint32) []byte {
	out := op(0x0e, uint32(len(labels)-1))
	for _, l := range labels {
		out = append(out, U32(l)...)
	}
	return out
}

// Call calls the function with the index.
func Call(f uint32) []byte { return op(0x10, f) }

// CallIndirect calls through table 0.
func CallIndirect(typ uint32) []byte { return append(op(0x11, typ), 0) }

// LocalGet pushes a local.
func LocalGet(i uint32) []byte { return op(0x20, i) }

// LocalSet pops into a local.
func LocalSet(i uint32) []byte { return op(0x21, i) }

// LocalTee copies into a local.
func LocalTee(i uint32) []byte { return op(0x22, i) }

// GlobalGet pushes a global.
func GlobalGet(i uint32) []byte { return op(0x23, i) }

// GlobalSet pops into a global.
func GlobalSet(i uint32) []byte { return op(0x24, i) }

// I64Load loads from the address on the stack plus offset, at any alignment.
func I64Load(offset uint32) []byte { return append([]byte{0x29, 0}, U32(offset)...) }

// I64Store stores a number.
func I64Store(offset uint32) []byte { return append([]byte{0x37, 0}, U32(offset)...) }

// Prefixed is an instruction of the 0xfc group with its immediates.
func Prefixed(sub uint32, immediates ...byte) []byte {
	return append(op(0xfc, sub), immediates...)
}

// Module is a module in the making. Imports come first: add them before functions.
type Module struct {
	types, imports, funcs, tables, memories, globals, exports, elements, bodies, data vec
	start                                                                             []byte
	customs                                                                           []byte
	importedFuncs                                                                     uint32
	signatures                                                                        [][]byte
}

type vec struct {
	n uint32
	b []byte
}

func (v *vec) add(b ...byte) uint32 {
	v.b = append(v.b, b...)
	v.n++
	return v.n - 1
}

func sized(b []byte) []byte { return append(U32(uint32(len(b))), b...) }

// Types makes a list of value types.
func Types(t ...byte) []byte { return t }

// Type returns the index of a signature.
func (m *Module) Type(params, results []byte) uint32 {
	sig := Code(byte(0x60), sized(params), sized(results))
	same := func(s []byte) bool { return slices.Equal(s, sig) }
	if i := slices.IndexFunc(m.signatures, same); i >= 0 {
		return uint32(i)
	}
	m.signatures = append(m.signatures, sig)
	return m.types.add(sig...)
}

// ImportFunc imports a function and returns its index.
func (m *Module) ImportFunc(module, name string, params, results []byte) uint32 {
	m.imports.add(Code(sized([]byte(module)), sized([]byte(name)), byte(0),
		U32(m.Type(params, results)))...)
	m.importedFuncs++
	return m.importedFuncs - 1
}

// Import imports something else; desc is its kind and type as bytes.
func (m *Module) Import(module, name string, desc ...byte) {
	m.imports.add(Code(sized([]byte(module)), sized([]byte(name)), desc)...)
}

// Func defines a function and returns its index. locals lists the types of its locals; the final
// end is added.
func (m *Module) Func(params, results, locals []byte, pieces ...any) uint32 {
	var groups []byte
	for _, t := range locals {
		groups = append(groups, 1, t)
	}
	return m.RawFunc(params, results, Code(U32(uint32(len(locals))), groups, Code(pieces...), End))
}

// RawFunc defines a function whose whole body is given.
func (m *Module) RawFunc(params, results, body []byte) uint32 {
	m.funcs.add(U32(m.Type(params, results))...)
	return m.importedFuncs + m.bodies.add(sized(body)...)
}

// Memory adds a memory; most < 0 leaves it without a maximum.
func (m *Module) Memory(least uint32, most int64) {
	if most < 0 {
		m.memories.add(Code(byte(0), U32(least))...)
		return
	}
	m.memories.add(Code(byte(1), U32(least), U32(uint32(most)))...)
}

// Table adds a table of functions.
func (m *Module) Table(least uint32) { m.tables.add(Code(Func, byte(0), U32(least))...) }

// RawTable, RawMemory and RawType add what the bytes say.
func (m *Module) RawTable(b ...byte) { m.tables.add(b...) }

// RawMemory adds a memory of any kind.
func (m *Module) RawMemory(b ...byte) { m.memories.add(b...) }

// RawType adds a type of any kind.
func (m *Module) RawType(b ...byte) { m.types.add(b...) }

// Global adds a mutable global with the constant expression init, without its end.
func (m *Module) Global(t byte, init []byte) uint32 {
	return m.globals.add(Code(t, byte(1), init, End)...)
}

// Elements fills table 0 from the offset on.
func (m *Module) Elements(offset int32, funcs ...uint32) {
	b := Code(byte(0), I32Const(offset), End, U32(uint32(len(funcs))))
	for _, f := range funcs {
		b = append(b, U32(f)...)
	}
	m.elements.add(b...)
}

// Data fills the memory from the offset on.
func (m *Module) Data(offset int32, b []byte) {
	m.data.add(Code(byte(0), I32Const(offset), End, sized(b))...)
}

// ExportFunc exports a function.
func (m *Module) ExportFunc(name string, f uint32) { m.Export(name, 0, f) }

// Export exports anything; kind is 0 for functions, 1 tables, 2 memories, 3 globals.
func (m *Module) Export(name string, kind byte, index uint32) {
	m.exports.add(Code(sized([]byte(name)), kind, U32(index))...)
}

// Start names the start function.
func (m *Module) Start(f uint32) { m.start = U32(f) }

// Custom adds a custom section at the end.
func (m *Module) Custom(name string, b []byte) {
	content := append(sized([]byte(name)), b...)
	m.customs = append(m.customs, Code(byte(0), sized(content))...)
}

// Bytes assembles the module.
func (m *Module) Bytes() []byte {
	out := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	put := func(id byte, v vec) {
		if v.n > 0 {
			out = append(out, Code(id, sized(append(U32(v.n), v.b...)))...)
		}
	}
	put(1, m.types)
	put(2, m.imports)
	put(3, m.funcs)
	put(4, m.tables)
	put(5, m.memories)
	put(6, m.globals)
	put(7, m.exports)
	if m.start != nil {
		out = append(out, Code(byte(8), sized(m.start))...)
	}
	put(9, m.elements)
	put(10, m.bodies)
	put(11, m.data)
	return append(out, m.customs...)
}
