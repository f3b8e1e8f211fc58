package meter

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// The limits of a module. They are generous for real programs: a Go program of 13 MB, with a web
// server and a compiler's front end in it, stays ten times below each of them but its size.
const (
	ModuleBytesMax   = 32 << 20
	FunctionBytesMax = 1 << 20
	LocalsMax        = 4096 // of one function, parameters included
	NestingMax       = 1 << 14
	TablesMax        = 4
	TableEntriesMax  = 1 << 18 // of each table, also after it has grown
	SignatureMax     = 256     // parameters, and results, of one function

	// Compilers keep track of every local wherever control flow joins, and some of their passes take
	// the square of the number of such places; loops are worse, and nested loops worst. A module of
	// 7 KB with 400 nested loops over 400 locals would keep one busy for a minute.
	LoopsMax       = 500       // of one function
	LoopNestingMax = 50        // loops within loops
	LoopLocalsMax  = 10_000    // loops times locals, of one function
	JoinWorkMax    = 8_000_000 // joins times (locals + joins/50), of one function; about a second

	ModuleLoopLocalsMax = 20 * LoopLocalsMax // of all functions together
	ModuleJoinWorkMax   = 10 * JoinWorkMax
)

// ValueType is a value type's byte in the binary format.
type ValueType byte

// String gives the type's name in the text format.
func (t ValueType) String() string {
	switch t {
	case 0x7f:
		return "i32"
	case 0x7e:
		return "i64"
	case 0x7d:
		return "f32"
	case 0x7c:
		return "f64"
	case 0x70:
		return "funcref"
	case 0x6f:
		return "externref"
	default:
		return fmt.Sprintf("type %#x", byte(t))
	}
}

// FuncType is the signature of a function.
type FuncType struct{ Params, Results []ValueType }

// String gives the signature as "(i32, i32) -> (i64)".
func (t FuncType) String() string {
	list := func(types []ValueType) string {
		var b bytes.Buffer
		for i, v := range types {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(v.String())
		}
		return b.String()
	}
	return "(" + list(t.Params) + ") -> (" + list(t.Results) + ")"
}

// Limits are the size of a memory in pages of 64 KiB, or of a table in entries.
type Limits struct {
	Min, Max uint32
	HasMax   bool
}

// Kind is what an import or export is.
type Kind byte

// The kinds of imports and exports.
const (
	KindFunc Kind = iota
	KindTable
	KindMemory
	KindGlobal
)

// String gives the kind's name in the text format.
func (k Kind) String() string {
	return [...]string{"func", "table", "memory", "global"}[min(k, KindGlobal)]
}

// Import is one import. Type is set for functions.
type Import struct {
	Module, Name string
	Kind         Kind
	Type         FuncType
}

// Export is one export. Type is set for functions.
type Export struct {
	Name  string
	Kind  Kind
	Index uint32
	Type  FuncType
}

// Module is a decoded module.
type Module struct {
	Imports  []Import
	Exports  []Export
	Memory   *Limits // nil without a memory, or where it is imported
	Tables   []Limits
	Start    *uint32 // index of the start function
	Bytes    int     // of the file
	sections []section
	types    []FuncType
	foreign  []FuncType // of each imported function
	funcs    []uint32   // type index of each function that the module defines
	// imported counts the imports of each kind, which come first in each index space.
	imported [KindGlobal + 1]uint32
	globals  uint32 // that the module defines
	bodies   []body
	names    []byte // the function names' subsection, checked; nil if there is none
}

type section struct {
	id   byte
	body []byte
	at   int
}

// body is the code of one function.
type body struct {
	code   []byte // locals and instructions
	at     int
	instrs int    // position of the first instruction within code
	groups int    // of local declarations
	locals uint32 // parameters not included
	loops  int
	nested int // loops within loops
	joins  int // places that control flow may come to from elsewhere, and ways to them
}

// The sections, by their ids.
const (
	secCustom = iota
	secType
	secImport
	secFunction
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElement
	secCode
	secData
	secDataCount
	secTag
)

// sectionRank gives the place of each section id in the order that the format asks for.
var sectionRank = [...]int{
	secType: 1, secImport: 2, secFunction: 3, secTable: 4, secMemory: 5, secTag: 6, secGlobal: 7,
	secExport: 8, secStart: 9, secElement: 10, secDataCount: 11, secCode: 12, secData: 13,
}

var preamble = []byte{0, 'a', 's', 'm', 1, 0, 0, 0}

// Parse decodes a module. It keeps references into wasm, which must not change.
func Parse(wasm []byte) (*Module, error) {
	if len(wasm) > ModuleBytesMax {
		return nil, fmt.Errorf("the module has %d bytes, the limit is %d: %w",
			len(wasm), ModuleBytesMax, ErrTooLarge)
	}
	if !bytes.HasPrefix(wasm, preamble[:4]) {
		return nil, fmt.Errorf("%w: it does not begin with \\0asm", ErrNotModule)
	}
	if len(wasm) < 8 || !bytes.Equal(wasm[4:8], preamble[4:]) {
		if len(wasm) >= 8 && binary.LittleEndian.Uint16(wasm[6:]) != 0 {
			return nil, &UnsupportedError{Proposal: "the component model"}
		}
		return nil, fmt.Errorf("%w: its format is not version 1", ErrNotModule)
	}
	m := &Module{Bytes: len(wasm)}
	r := &reader{b: wasm, p: 8}
	for last := 0; r.rest() > 0; {
		id := r.u8()
		content := r.take(r.u32())
		s := section{id, content, r.p - len(content)}
		switch {
		case r.err != nil:
			return nil, r.err
		case id == secCustom:
			m.custom(s)
			continue
		case int(id) >= len(sectionRank):
			return nil, fmt.Errorf("%w: there is no section %d", ErrMalformed, id)
		case sectionRank[id] <= last:
			return nil, fmt.Errorf("%w: section %d stands twice or too late", ErrMalformed, id)
		}
		last = sectionRank[id]
		if err := m.section(s); err != nil {
			return nil, err
		}
		m.sections = append(m.sections, s)
	}
	if len(m.funcs) != len(m.bodies) {
		return nil, fmt.Errorf("%w: %d functions have %d bodies",
			ErrMalformed, len(m.funcs), len(m.bodies))
	}
	return m, m.resolve()
}

func (m *Module) section(s section) error {
	r := &reader{b: s.body, at: s.at}
	switch s.id {
	case secType:
		m.typeSection(r)
	case secImport:
		m.importSection(r)
	case secFunction:
		for range r.count(1) {
			m.funcs = append(m.funcs, r.u32())
		}
	case secTable:
		for range r.count(3) {
			m.table(r)
		}
	case secMemory:
		m.memorySection(r)
	case secGlobal:
		for range r.count(4) {
			r.valueType()
			r.u8()
			r.expr()
			m.globals++
		}
	case secExport:
		for range r.count(3) {
			m.Exports = append(m.Exports, Export{Name: r.name(), Kind: Kind(r.u8()),
				Index: r.u32()})
		}
	case secStart:
		start := r.u32()
		m.Start = &start
	case secElement:
		for range r.count(3) {
			element(r)
		}
	case secCode:
		for range r.count(3) {
			m.body(r)
		}
	case secData:
		for range r.count(2) {
			data(r)
		}
	case secDataCount:
		r.u32()
	case secTag:
		r.unsupported("exception handling")
	}
	if r.err == nil && r.rest() > 0 {
		r.fail("%d bytes too many in section %d", r.rest(), s.id)
	}
	return r.err
}

func (m *Module) typeSection(r *reader) {
	for range r.count(3) {
		switch form := r.u8(); form {
		case typeFunc:
		case 0x5e, 0x5f, 0x50, 0x4f, 0x4e:
			r.unsupported("garbage collection")
		default:
			r.fail("%#x begins no type", form)
		}
		list := func() []ValueType {
			n := r.count(1)
			if n > SignatureMax {
				r.fail("a function has %d parameters or results, the limit is %d", n, SignatureMax)
			}
			var types []ValueType
			for range n {
				types = append(types, r.valueType())
			}
			return types
		}
		m.types = append(m.types, FuncType{list(), list()})
		if r.err != nil {
			return
		}
	}
}

func (m *Module) importSection(r *reader) {
	for range r.count(4) {
		im := Import{Module: r.name(), Name: r.name(), Kind: Kind(r.u8())}
		switch im.Kind {
		case KindFunc:
			if i := r.u32(); r.err == nil && int(i) < len(m.types) {
				im.Type = m.types[i]
				m.foreign = append(m.foreign, im.Type)
			} else {
				r.fail("the import %s.%s has a type that is not there", im.Module, im.Name)
			}
		case KindTable:
			r.valueType()
			r.limits()
		case KindMemory:
			r.limits()
		case KindGlobal:
			r.valueType()
			r.u8()
		case 4:
			r.unsupported("exception handling")
		default:
			r.fail("%#x is no kind of import", byte(im.Kind))
		}
		if r.err != nil {
			return
		}
		m.imported[im.Kind]++
		m.Imports = append(m.Imports, im)
	}
}

func (m *Module) table(r *reader) {
	if r.rest() > 0 && r.b[r.p] == 0x40 {
		r.unsupported("typed function references")
	}
	r.valueType()
	l := r.limits()
	m.Tables = append(m.Tables, l)
	switch {
	case r.err != nil:
	case l.Min > TableEntriesMax:
		r.err = fmt.Errorf("a table has %d entries, the limit is %d: %w",
			l.Min, TableEntriesMax, ErrTooLarge)
	case len(m.Tables) > TablesMax:
		r.err = fmt.Errorf("there are more than %d tables: %w", TablesMax, ErrTooLarge)
	}
}

func (m *Module) memorySection(r *reader) {
	n := r.count(2)
	if n > 1 {
		r.unsupported("multiple memories")
	}
	for range n {
		l := r.limits()
		m.Memory = &l
	}
}

// element passes over one element segment in any of its eight forms.
func element(r *reader) {
	flags := r.u32()
	if flags > 7 {
		r.fail("%#x begins no element segment", flags)
	}
	active, explicit, exprs := flags&1 == 0, flags&2 != 0, flags&4 != 0
	if active && explicit {
		r.u32() // table
	}
	if active {
		r.expr()
	}
	if !active || explicit {
		if exprs {
			r.valueType()
		} else {
			r.u8() // kind
		}
	}
	for range r.count(1) {
		if exprs {
			r.expr()
		} else {
			r.u32()
		}
	}
}

func data(r *reader) {
	switch flags := r.u32(); flags {
	case 0:
		r.expr()
	case 1:
	case 2:
		r.zero()
		r.expr()
	default:
		r.fail("%#x begins no data segment", flags)
	}
	r.take(r.u32())
}

func (m *Module) body(r *reader) {
	code := r.take(r.u32())
	if r.err == nil && len(code) > FunctionBytesMax {
		r.err = fmt.Errorf("a function has %d bytes, the limit is %d: %w",
			len(code), FunctionBytesMax, ErrTooLarge)
		return
	}
	b := body{code: code, at: r.at + r.p - len(code)}
	c := &reader{b: code, at: b.at}
	b.groups = c.count(2)
	for range b.groups {
		n := c.u32()
		c.valueType()
		if c.err == nil && uint64(b.locals)+uint64(n) > LocalsMax {
			c.err = fmt.Errorf("a function has more than %d locals: %w", LocalsMax, ErrTooLarge)
		}
		b.locals += n
	}
	b.instrs = c.p
	c.instructions(&b)
	if r.err == nil {
		r.err = c.err
	}
	m.bodies = append(m.bodies, b)
}

// instructions passes over the instructions of a function, checks that blocks nest, and counts
// what makes them hard to compile.
func (r *reader) instructions(b *body) {
	var in instr
	nested := 0
	var open []byte // the opcodes of the blocks that are open; the function itself is not one
	for ended := false; !ended && r.err == nil; {
		r.next(&in)
		switch in.op {
		case opLoop:
			nested++
			b.loops, b.nested = b.loops+1, max(b.nested, nested)
		case opBlock, opIf, opElse, opBrIf:
			b.joins++
		case opBrTable:
			b.joins += len(in.labels)
		}
		switch in.op {
		case opBlock, opLoop, opIf:
			if open = append(open, in.op); len(open) > NestingMax && r.err == nil {
				r.err = fmt.Errorf("blocks nest more than %d deep: %w", NestingMax, ErrTooLarge)
			}
		case opEnd:
			if ended = len(open) == 0; !ended {
				if open[len(open)-1] == opLoop {
					nested--
				}
				open = open[:len(open)-1]
			}
		}
		depth := len(open) + 1
		for _, l := range in.labels {
			if l >= uint32(depth) {
				r.fail("a branch leads out of its function")
			}
		}
		if in.op >= opBr && in.op <= opBrTable && in.label >= uint32(depth) {
			r.fail("a branch leads out of its function")
		}
	}
	if r.err == nil && r.rest() > 0 {
		r.fail("%d bytes follow the end of a function", r.rest())
	}
}

// custom keeps the names of functions, for readable traps, if the name section is well formed.
// Whatever else custom sections hold is dropped: it means nothing to an engine, and what it says
// about positions in the code is not true of the rewritten module.
func (m *Module) custom(s section) {
	r := &reader{b: s.body, at: s.at}
	if r.name() != "name" || r.err != nil {
		return
	}
	for r.rest() > 0 && r.err == nil {
		id, content := r.u8(), r.take(r.u32())
		if id != 1 || r.err != nil {
			continue
		}
		c := &reader{b: content}
		for range c.count(2) {
			c.u32()
			c.name()
		}
		if c.err == nil && c.rest() == 0 {
			m.names = content
		}
	}
}

// resolve checks indices that later code follows, and gives exported functions their types.
func (m *Module) resolve() error {
	for _, t := range m.funcs {
		if int(t) >= len(m.types) {
			return fmt.Errorf("%w: a function has the type %d of %d", ErrMalformed, t, len(m.types))
		}
	}
	if err := m.complexity(); err != nil {
		return err
	}
	for i := range m.Exports {
		e := &m.Exports[i]
		if e.Kind != KindFunc {
			continue
		}
		t, ok := m.funcType(e.Index)
		if !ok {
			return fmt.Errorf("%w: the export %q is no function", ErrMalformed, e.Name)
		}
		e.Type = t
	}
	return nil
}

// complexity refuses functions that compilers would take too long for.
func (m *Module) complexity() error {
	var moduleLoops, moduleJoins int
	for i, b := range m.bodies {
		locals := len(m.types[m.funcs[i]].Params) + int(b.locals)
		if locals > LocalsMax {
			return fmt.Errorf("function %d has %d locals, the limit is %d: %w",
				i+len(m.foreign), locals, LocalsMax, ErrTooLarge)
		}
		loops, joins := b.loops*locals, b.joins*(locals+b.joins/50)
		if b.loops > LoopsMax || b.nested > LoopNestingMax ||
			loops > LoopLocalsMax || joins > JoinWorkMax {
			return fmt.Errorf("function %d is too complex to compile, with %d loops, %d deep, "+
				"%d branches and %d locals; make it several: %w",
				i+len(m.foreign), b.loops, b.nested, b.joins, locals, ErrTooLarge)
		}
		moduleLoops, moduleJoins = moduleLoops+loops, moduleJoins+joins
	}
	if moduleLoops > ModuleLoopLocalsMax || moduleJoins > ModuleJoinWorkMax {
		return fmt.Errorf("the module is too complex to compile: %w", ErrTooLarge)
	}
	return nil
}

func (m *Module) funcType(index uint32) (FuncType, bool) {
	if int64(index) < int64(len(m.foreign)) {
		return m.foreign[index], true
	}
	index -= uint32(len(m.foreign))
	if int64(index) >= int64(len(m.funcs)) {
		return FuncType{}, false
	}
	return m.types[m.funcs[index]], true
}

// Functions is the number of functions, imported ones not included.
func (m *Module) Functions() int { return len(m.funcs) }

// CodeBytes is the size of all functions together.
func (m *Module) CodeBytes() (n int) {
	for _, b := range m.bodies {
		n += len(b.code)
	}
	return n
}

// Sanitized is the module as it was read, without custom sections but for the function names. An
// engine must validate it before the result of Meter is run.
func (m *Module) Sanitized() []byte {
	w := writer{b: bytes.Clone(preamble)}
	for _, s := range m.sections {
		w.section(s.id, s.body)
	}
	m.writeNames(&w)
	return w.b
}

func (m *Module) writeNames(w *writer) {
	if m.names == nil {
		return
	}
	var sub writer
	sub.name("name")
	sub.b = append(sub.b, 1)
	sub.vec(m.names)
	w.section(secCustom, sub.b)
}
