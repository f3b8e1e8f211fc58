package meter

import (
	"bytes"
	"fmt"
)

// Version changes whenever Meter gives another result for some module: whoever keeps results on
// disk keeps them by it.
const Version = 1

// StackSlots is the native stack that one call may take, in slots of 8 bytes. A frame takes at
// least frameSlotsMin, so that no more than about 1,500 frames nest: some engines count frames
// and stop at 2,000.
const (
	StackSlots    = 1 << 20
	frameSlotsMin = 700
)

// A bulk operation moves 1<<bytesPerFuelShift bytes for one unit of fuel, and a page of new memory
// costs 1<<fuelPerPageShift.
const (
	bytesPerFuelShift = 3
	fuelPerPageShift  = 13
)

// Metered is a rewritten module. The host writes Fuel and Stack before it calls Start, if that is
// not empty, and before every other call.
type Metered struct {
	Wasm []byte
	// Skeleton is Wasm with functions that do nothing but trap: all that an engine has to decode and
	// validate where it has the code of Wasm already.
	Skeleton []byte

	Fuel  string // export name of the mutable i64 global with the fuel left
	Stack string // export name of the mutable i64 global with the stack slots left
	Start string // export name of what was the start function; empty if there was none
}

// rewriter holds what the rewriting of all functions of a module shares.
type rewriter struct {
	m           *Module
	fuel, stack int // global indices
	types       []FuncType
	blocks      map[string]int // type index of () -> results, by the results
}

// Meter rewrites the module, which an engine must have validated (see Sanitized).
func (m *Module) Meter() (*Metered, error) {
	first := int(m.imported[KindGlobal] + m.globals)
	rw := &rewriter{m: m, fuel: first, stack: first + 1, blocks: map[string]int{}}
	code := writer{}
	code.u32(uint32(len(m.bodies)))
	for i := range m.bodies {
		b, err := rw.function(i)
		if err != nil {
			return nil, fmt.Errorf("function %d: %w", i, err)
		}
		code.vec(b)
	}
	out := &Metered{Fuel: m.freeName("tierd_fuel"), Stack: m.freeName("tierd_stack")}
	if m.Start != nil {
		out.Start = m.freeName("tierd_start")
	}
	hollow := writer{}
	hollow.u32(uint32(len(m.bodies)))
	for range m.bodies {
		hollow.vec([]byte{0, opUnreachable, opEnd}) // no locals
	}
	out.Wasm, out.Skeleton = rw.assemble(out, code.b), rw.assemble(out, hollow.b)
	return out, nil
}

// freeName returns a name that the module does not export: want, or want with a number.
func (m *Module) freeName(want string) string {
	taken := map[string]bool{}
	for _, e := range m.Exports {
		taken[e.Name] = true
	}
	name := want
	for i := 1; taken[name]; i++ {
		name = fmt.Sprintf("%s_%d", want, i)
	}
	return name
}

// assemble writes the module with the rewritten code, the two globals and their exports, and with
// its start function exported rather than started.
func (rw *rewriter) assemble(out *Metered, code []byte) []byte {
	m := rw.m
	content := map[byte][]byte{}
	for _, s := range m.sections {
		content[s.id] = s.body
	}
	content[secCode] = code
	content[secType] = appendVec(content[secType], len(rw.types), func(w *writer) {
		for _, t := range rw.types {
			w.op(typeFunc, 0)
			w.u32(uint32(len(t.Results)))
			for _, v := range t.Results {
				w.op(byte(v))
			}
		}
	})
	content[secTable] = rw.tables(content[secTable])
	content[secGlobal] = appendVec(content[secGlobal], 2, func(w *writer) {
		for range 2 {
			w.op(typeI64, 1)
			w.i64(0)
			w.op(opEnd)
		}
	})
	exports := []struct {
		name  string
		kind  Kind
		index int
	}{{out.Fuel, KindGlobal, rw.fuel}, {out.Stack, KindGlobal, rw.stack}, {out.Start, KindFunc, 0}}
	if m.Start != nil {
		exports[2].index = int(*m.Start)
	} else {
		exports = exports[:2]
	}
	content[secExport] = appendVec(content[secExport], len(exports), func(w *writer) {
		for _, e := range exports {
			w.name(e.name)
			w.op1(byte(e.kind), e.index)
		}
	})
	delete(content, secStart)
	w := writer{b: bytes.Clone(preamble)}
	for _, id := range []byte{secType, secImport, secFunction, secTable, secMemory, secGlobal,
		secExport, secElement, secDataCount, secCode, secData} {
		if c, ok := content[id]; ok && len(c) > 0 {
			w.section(id, c)
		}
	}
	m.writeNames(&w)
	return w.b
}

// appendVec returns the vector old, which may be nil for an empty one, with n more elements.
func appendVec(old []byte, n int, elements func(*writer)) []byte {
	if old == nil && n == 0 {
		return nil
	}
	r := &reader{b: old}
	var have uint32
	if old != nil {
		have = r.u32()
	}
	var w writer
	w.u32(have + uint32(n))
	w.b = append(w.b, old[r.p:]...)
	elements(&w)
	return w.b
}

// tables gives every table a maximum that it may grow to.
func (rw *rewriter) tables(old []byte) []byte {
	if old == nil {
		return nil
	}
	r := &reader{b: old}
	var w writer
	n := r.count(3)
	w.u32(uint32(n))
	for range n {
		w.op(byte(r.valueType()), 1)
		l := r.limits()
		most := uint32(TableEntriesMax)
		if l.HasMax {
			most = min(most, l.Max)
		}
		w.u32(l.Min)
		w.u32(most)
	}
	return w.b
}

// edit is one change to a function's code: at pos, something is inserted and replaced bytes of
// the original are left out.
type edit struct {
	pos  int
	kind editKind
	// cost is the fuel of a block for charge and check. It is complete once the whole function has
	// been read.
	cost     int64
	shift    int // for length: left if positive, right if negative
	depth    int // for leave: the label of the function's own block
	replaced int // bytes
}

type editKind byte

const (
	charge editKind = iota // subtract cost
	check                  // subtract cost and trap below zero
	length                 // subtract in proportion to the i32 on top of the stack, which stays
	spill                  // before a call: the fuel goes into its global
	reload                 // after a call: what the callee left of it comes back
	leave                  // a return, turned into a branch to the end
)

// frame is an open block of the function that is being read.
type frame struct {
	op       byte
	live     bool // the block's beginning can be reached
	targeted bool // some branch leads to its label
}

// plan is what reading a function once gives.
type plan struct {
	edits []edit
	entry int64 // cost of the first block
	calls bool
	bulk  bool
}

// planner reads a function and finds its basic blocks.
type planner struct {
	plan
	frames []frame
	// current is the index in edits of the block that is being read; entryBlock for the first one,
	// noBlock in code that cannot be reached.
	current int
}

const (
	entryBlock = -1
	noBlock    = -2
)

func (p *planner) live() bool { return p.current != noBlock }

func (p *planner) open(pos int, kind editKind) {
	p.edits = append(p.edits, edit{pos: pos, kind: kind})
	p.current = len(p.edits) - 1
}

func (p *planner) add(cost int64) {
	switch p.current {
	case noBlock:
	case entryBlock:
		p.entry += cost
	default:
		p.edits[p.current].cost += cost
	}
}

func (p *planner) target(label uint32) {
	p.frames[len(p.frames)-1-int(label)].targeted = true
}

// read plans the whole function. The instructions were decoded once already by Parse.
func (p *planner) read(r *reader) error {
	p.frames = append(p.frames, frame{op: opBlock, live: true})
	p.current = entryBlock
	var in instr
	for len(p.frames) > 0 && r.err == nil {
		r.next(&in)
		if r.err == nil {
			p.instr(&in)
		}
	}
	return r.err
}

func (p *planner) instr(in *instr) {
	p.add(in.cost())
	switch in.op {
	case opBlock:
		p.frames = append(p.frames, frame{op: opBlock, live: p.live()})
	case opLoop, opIf:
		p.frames = append(p.frames, frame{op: in.op, live: p.live()})
		if p.live() && in.op == opLoop {
			p.open(in.end, check)
		} else if p.live() {
			p.open(in.end, charge)
		}
	case opElse:
		if p.current = noBlock; p.frames[len(p.frames)-1].live {
			p.open(in.end, charge)
		}
	case opEnd:
		p.end(in)
	case opBr, opBrTable:
		p.target(in.label)
		for _, l := range in.labels {
			p.target(l)
		}
		p.current = noBlock
	case opBrIf:
		if p.target(in.label); p.live() {
			p.open(in.end, charge)
		}
	case opReturn:
		p.edits = append(p.edits, edit{pos: in.start, kind: leave,
			depth: len(p.frames) - 1, replaced: in.end - in.start})
		p.current = noBlock
	case opUnreachable:
		p.current = noBlock
	case opCall, opCallIndirect:
		if p.calls = true; p.live() {
			p.edits = append(p.edits, edit{pos: in.start, kind: spill},
				edit{pos: in.end, kind: reload})
		}
	case opMemoryGrow:
		p.length(in, fuelPerPageShift)
	case opPrefix:
		switch in.sub {
		case subMemoryInit, subMemoryCopy, subMemoryFill:
			p.length(in, -bytesPerFuelShift)
		case subTableInit, subTableCopy, subTableGrow, subTableFill:
			p.length(in, 0)
		}
	}
}

// end closes a block. What follows is a block of its own if control can come from elsewhere.
func (p *planner) end(in *instr) {
	f := p.frames[len(p.frames)-1]
	p.frames = p.frames[:len(p.frames)-1]
	switch {
	case len(p.frames) == 0:
	case !f.live:
		p.current = noBlock
	case f.op == opIf || f.op == opBlock && f.targeted:
		p.open(in.end, charge)
	}
}

// length plans the charge of an operation over a length. Code that cannot be reached is left as
// it is: it never runs.
func (p *planner) length(in *instr, shift int) {
	if p.live() {
		p.bulk = true
		p.edits = append(p.edits, edit{pos: in.start, kind: length, shift: shift})
	}
}

// function returns the rewritten body of the i-th function that the module defines.
func (rw *rewriter) function(i int) ([]byte, error) {
	b, t := &rw.m.bodies[i], rw.m.types[rw.m.funcs[i]]
	r := &reader{b: b.code, p: b.instrs, at: b.at}
	var p planner
	if err := p.read(r); err != nil {
		return nil, err
	}
	locals := len(t.Params) + int(b.locals)
	e := emitter{rw: rw, fuelLocal: locals, scratch: locals + 1}
	e.locals(b, p.bulk)
	frame := int64(0)
	if p.calls {
		frame = int64(max(frameSlotsMin, locals+len(b.code)/8))
	}
	p.entry += 1 + int64(locals/16) // locals are set to zero
	e.enter(p.entry, frame, t.Results)
	at := b.instrs
	for _, d := range p.edits {
		e.b = append(e.b, b.code[at:d.pos]...)
		at = d.pos + d.replaced
		switch d.kind {
		case charge:
			e.charge(d.cost)
		case check:
			e.charge(d.cost)
			e.trapBelowZero()
		case length:
			e.length(d.shift)
		case spill:
			e.spill()
		case reload:
			e.reload()
		case leave:
			e.op1(opBr, d.depth)
		}
	}
	e.b = append(e.b, b.code[at:]...)
	e.leave(frame)
	return e.b, nil
}

// emitter writes the code that counts. Within a function the fuel is in a local, which engines keep
// in a register; the global has it during calls and when the function is left, also by a trap for
// want of it.
type emitter struct {
	writer
	rw        *rewriter
	fuelLocal int // an i64
	scratch   int // an i32, if there are operations over a length
}

// locals writes the declarations of the function's locals with one i64 more, and one i32 if there
// are operations over a length.
func (e *emitter) locals(b *body, bulk bool) {
	r := &reader{b: b.code}
	r.u32()
	groups := b.groups + 1
	if bulk {
		groups++
	}
	e.u32(uint32(groups))
	e.b = append(e.b, b.code[r.p:b.instrs]...)
	e.op(1, typeI64)
	if bulk {
		e.op(1, typeI32)
	}
}

// enter takes fuel, and stack for the frame, and begins the block that the function's own code
// stands in, so that leave has one place to stand: a branch out of the function is one out of the
// block.
func (e *emitter) enter(cost, frame int64, results []ValueType) {
	e.reload()
	e.charge(cost)
	if frame > 0 {
		e.op1(opGlobalGet, e.rw.stack)
		e.i64(frame)
		e.op(opI64Sub)
		e.op1(opGlobalSet, e.rw.stack)
		// The sign of an OR of two numbers is negative if one of them is.
		e.op1(opGlobalGet, e.rw.stack)
		e.op1(opLocalGet, e.fuelLocal)
		e.op(opI64Or)
		e.trapIfNegative()
	} else {
		e.trapBelowZero()
	}
	e.op(opBlock)
	e.blockType(results)
}

// leave gives the stack back. The original code, up to and including the end of its block, has
// been written.
func (e *emitter) leave(frame int64) {
	e.spill()
	if frame > 0 {
		e.op1(opGlobalGet, e.rw.stack)
		e.i64(frame)
		e.op(opI64Add)
		e.op1(opGlobalSet, e.rw.stack)
	}
	e.op(opEnd)
}

func (e *emitter) spill() {
	e.op1(opLocalGet, e.fuelLocal)
	e.op1(opGlobalSet, e.rw.fuel)
}

func (e *emitter) reload() {
	e.op1(opGlobalGet, e.rw.fuel)
	e.op1(opLocalSet, e.fuelLocal)
}

// charge: fuel -= cost.
func (e *emitter) charge(cost int64) {
	if cost == 0 {
		return
	}
	e.op1(opLocalGet, e.fuelLocal)
	e.i64(cost)
	e.op(opI64Sub)
	e.op1(opLocalSet, e.fuelLocal)
}

func (e *emitter) trapBelowZero() {
	e.op1(opLocalGet, e.fuelLocal)
	e.trapIfNegative()
}

// trapIfNegative traps if the i64 on top of the stack is below zero, and takes it away.
func (e *emitter) trapIfNegative() {
	e.i64(0)
	e.op(opI64LtS, opIf, typeEmpty)
	e.spill()
	e.op(opUnreachable, opEnd)
}

// length takes fuel for the i32 on top of the stack, and leaves it there.
func (e *emitter) length(shift int) {
	e.op1(opLocalTee, e.scratch)
	e.op1(opLocalGet, e.fuelLocal)
	e.op1(opLocalGet, e.scratch)
	e.op(opI64ExtendU)
	if shift > 0 {
		e.i64(int64(shift))
		e.op(opI64Shl)
	} else if shift < 0 {
		e.i64(int64(-shift))
		e.op(opI64ShrU)
	}
	e.op(opI64Sub)
	e.op1(opLocalSet, e.fuelLocal)
	e.trapBelowZero()
}

// blockType writes the type of a block without parameters that gives the results.
func (e *emitter) blockType(results []ValueType) {
	switch len(results) {
	case 0:
		e.op(typeEmpty)
	case 1:
		e.op(byte(results[0]))
	default:
		key := fmt.Sprint(results)
		i, ok := e.rw.blocks[key]
		if !ok {
			i = len(e.rw.m.types) + len(e.rw.types)
			e.rw.blocks[key] = i
			e.rw.types = append(e.rw.types, FuncType{Results: results})
		}
		e.signed(int64(i))
	}
}
