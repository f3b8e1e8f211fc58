package meter

import "encoding/binary"

// writer encodes the WebAssembly binary format.
type writer struct{ b []byte }

func (w *writer) u32(v uint32) { w.b = binary.AppendUvarint(w.b, uint64(v)) }

// signed writes a signed LEB128 number.
func (w *writer) signed(v int64) {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			w.b = append(w.b, c)
			return
		}
		w.b = append(w.b, c|0x80)
	}
}

func (w *writer) vec(b []byte) {
	w.u32(uint32(len(b)))
	w.b = append(w.b, b...)
}

func (w *writer) name(s string) { w.vec([]byte(s)) }

func (w *writer) section(id byte, content []byte) {
	w.b = append(w.b, id)
	w.vec(content)
}

// op writes an opcode, and op1 one with an index as its immediate.
func (w *writer) op(ops ...byte)         { w.b = append(w.b, ops...) }
func (w *writer) op1(op byte, index int) { w.b = append(w.b, op); w.u32(uint32(index)) }

// i64 writes an i64.const.
func (w *writer) i64(v int64) {
	w.b = append(w.b, opI64Const)
	w.signed(v)
}
