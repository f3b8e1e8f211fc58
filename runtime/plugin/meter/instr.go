package meter

// The opcodes that the rewriting looks at. The names are those of the specification.
const (
	opUnreachable  = 0x00
	opNop          = 0x01
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opMemoryGrow   = 0x40
	opI64Const     = 0x42
	opI64LtS       = 0x53
	opI32DivS      = 0x6d
	opI32RemU      = 0x70
	opI64Add       = 0x7c
	opI64Sub       = 0x7d
	opI64DivS      = 0x7f
	opI64RemU      = 0x82
	opI64Or        = 0x84
	opI64Shl       = 0x86
	opI64ShrU      = 0x88
	opI64ExtendU   = 0xad // i64.extend_i32_u
	opRefNull      = 0xd0
	opRefFunc      = 0xd2
	opPrefix       = 0xfc

	typeEmpty = 0x40 // the block type without parameters and results
	typeI32   = 0x7f
	typeI64   = 0x7e
	typeFunc  = 0x60
)

// The second opcodes after opPrefix.
const (
	subMemoryInit = 8
	subDataDrop   = 9
	subMemoryCopy = 10
	subMemoryFill = 11
	subTableInit  = 12
	subElemDrop   = 13
	subTableCopy  = 14
	subTableGrow  = 15
	subTableSize  = 16
	subTableFill  = 17
)

// instr is one decoded instruction.
type instr struct {
	op         byte
	sub        uint32 // after opPrefix
	start, end int    // its bytes within the reader
	label      uint32 // of br and br_if; the default of br_table
	labels     []uint32
}

// next decodes one instruction into in, reusing in.labels.
func (r *reader) next(in *instr) {
	in.start, in.labels = r.p, in.labels[:0]
	in.op = r.u8()
	switch op := in.op; {
	case op == opBlock || op == opLoop || op == opIf:
		r.blockType()
	case op == opBr || op == opBrIf:
		in.label = r.u32()
	case op == opBrTable:
		for range r.count(1) {
			in.labels = append(in.labels, r.u32())
		}
		in.label = r.u32()
	case op <= opNop || op == opElse || op == opEnd || op == opReturn || op == 0x1a || op == 0x1b:
	case op == opCall || op >= 0x20 && op <= 0x26 || op == opRefFunc:
		r.u32()
	case op == opCallIndirect:
		r.u32()
		r.u32()
	case op == 0x1c: // select with types
		for range r.count(1) {
			r.valueType()
		}
	case op >= 0x28 && op <= 0x3e:
		if align := r.u32(); align >= 0x40 {
			r.unsupported("multiple memories")
		}
		r.u32()
	case op == 0x3f || op == opMemoryGrow:
		r.zero()
	case op == 0x41:
		r.signed(32)
	case op == opI64Const:
		r.signed(64)
	case op == 0x43:
		r.take(4)
	case op == 0x44:
		r.take(8)
	case op >= 0x45 && op <= 0xc4 || op == 0xd1:
	case op == opRefNull:
		r.valueType()
	case op == opPrefix:
		r.prefixed(in)
	default:
		r.unknown(op)
	}
	in.end = r.p
}

// prefixed decodes what follows opPrefix.
func (r *reader) prefixed(in *instr) {
	in.sub = r.u32()
	switch s := in.sub; {
	case s < subMemoryInit: // saturating truncations
	case s == subMemoryInit:
		r.u32()
		r.zero()
	case s == subMemoryCopy:
		r.zero()
		r.zero()
	case s == subMemoryFill:
		r.zero()
	case s == subTableInit || s == subTableCopy:
		r.u32()
		r.u32()
	case s == subDataDrop || s == subElemDrop || s >= subTableGrow && s <= subTableFill:
		r.u32()
	case s >= 19 && s <= 22:
		r.unsupported("wide arithmetic")
	default:
		r.fail("0xfc %d is no instruction", s)
	}
}

// zero reads the index of the only memory.
func (r *reader) zero() {
	if r.u8() != 0 {
		r.unsupported("multiple memories")
	}
}

func (r *reader) blockType() {
	if r.rest() > 0 && r.b[r.p]&0xc0 == 0x40 && r.b[r.p] != typeEmpty {
		r.valueType()
		return
	}
	if t := r.signed(33); t < 0 && t != typeEmpty-0x80 {
		r.fail("%d is no block type", t)
	}
}

func (r *reader) unknown(op byte) {
	switch {
	case op >= 0x06 && op <= 0x0a || op == 0x18 || op == 0x19 || op == 0x1f:
		r.unsupported("exception handling")
	case op == 0x12 || op == 0x13:
		r.unsupported("tail calls")
	case op == 0x14 || op == 0x15 || op >= 0xd4 && op <= 0xd6:
		r.unsupported("typed function references")
	case op == 0xd3 || op == 0xfb:
		r.unsupported("garbage collection")
	case op == 0xfd:
		r.unsupported("fixed-width SIMD")
	case op == 0xfe:
		r.unsupported("threads")
	default:
		r.fail("%#x is no instruction", op)
	}
}

// expr passes over a constant expression.
func (r *reader) expr() {
	var in instr
	for r.err == nil {
		r.next(&in)
		switch in.op {
		case opEnd:
			return
		case 0x41, opI64Const, 0x43, 0x44, opGlobalGet, opRefNull, opRefFunc:
		case 0x6a, 0x6b, 0x6c, opI64Add, opI64Sub, 0x7e:
			r.unsupported("extended constant expressions")
		default:
			r.fail("%#x does not belong in a constant expression", in.op)
		}
	}
}

// cost is what executing the instruction once takes from the fuel, in units of about one simple
// machine instruction. What produces no code of its own costs nothing; every way back to a loop
// head and every call costs something.
func (in *instr) cost() int64 {
	switch op := in.op; {
	case op == opNop || op == opBlock || op == opLoop || op == opEnd || op == opElse:
		return 0
	case op == opCall:
		return 4
	case op == opCallIndirect || op == opMemoryGrow || op == opPrefix && in.sub >= subMemoryInit:
		return 8
	case op >= opI32DivS && op <= opI32RemU || op >= opI64DivS && op <= opI64RemU:
		return 8
	default:
		return 1
	}
}
