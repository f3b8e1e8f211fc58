package plugin

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tierd/tierd/runtime/plugin/internal/asm"
)

// contained checks that a result, whatever plugins made it, has a whole answer of each of them, and
// that those that failed have no say. There is nothing else that an answer could say: the engine's
// tests show what it makes of it.
func contained(t interface{ Errorf(string, ...any) }, r *Result, n int) {
	names, scores, holds, keeps := r.Columns()
	if r.Len() != n || len(scores) != n*len(names) || len(holds) != n || len(keeps) != n {
		t.Errorf("%d rows, %d scores, %d holds and %d keeps for %d segments and %d plugins",
			r.Len(), len(scores), len(holds), len(keeps), n, len(names))
		return
	}
	may := uint16(1)<<len(names) - 1
	for _, f := range r.Faults {
		k := slices.Index(names, f.Plugin)
		may &^= 1 << k
		for i := range n {
			if scores[i*len(names)+k] != 0 {
				t.Errorf("the plugin %s failed, but gives row %d a score", f.Plugin, i)
			}
		}
	}
	for i := range n {
		if others := (holds[i] | keeps[i]) &^ may; others != 0 {
			t.Errorf("row %d: the plugins %b have a say, those that answered are %b", i, others, may)
		}
	}
}

// drawGuest draws a plugin that gives an arbitrary answer from an arbitrary place.
func drawGuest(t *rapid.T, n int) []byte {
	g := &guest{}
	at, size := int64(outputAt), int32(9*n)
	if rapid.IntRange(0, 3).Draw(t, "place") == 0 {
		at = int64(rapid.Uint32().Draw(t, "at"))
	}
	if rapid.IntRange(0, 3).Draw(t, "length") == 0 {
		size = rapid.Int32().Draw(t, "size")
	}
	for range n {
		score := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-1, 1)).Draw(t, "score")
		g.answer = binary.LittleEndian.AppendUint64(g.answer, uint64(score))
	}
	top := 2
	if rapid.IntRange(0, 3).Draw(t, "garbage") == 0 {
		top = 255
	}
	for range n {
		g.answer = append(g.answer, byte(rapid.IntRange(0, top).Draw(t, "action")))
	}
	g.choose = answering(at, asm.I32Const(size))
	return g.build()
}

// TestAnyAnswerIsContained: whatever plugins answer, and from wherever, each has its own part of
// the result, and one whose answer is refused has none.
func TestAnyAnswerIsContained(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := batch(rapid.IntRange(0, 4).Draw(t, "first"), rapid.IntRange(1, 4).Draw(t, "second"))
		n := b.Len()
		var specs []Spec
		for i := range rapid.IntRange(1, 3).Draw(t, "plugins") {
			specs = append(specs, spec(string(rune('a'+i)), drawGuest(t, n)))
		}
		s, err := Load(specs, Options{Limits: quick})
		if err != nil {
			t.Fatal(err)
		}
		w := s.NewWorker()
		contained(t, ask(w, b), n)
		w.Close()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzModule: whatever the module, loading and asking never panic and never run past their fuel,
// and what comes of it is contained. The seeds are sound plugins, which the fuzzer takes to pieces.
func FuzzModule(f *testing.F) {
	f.Add((&guest{}).build())
	f.Add(says([]int64{1, 2, 3}, ActionHold, ActionKeep))
	f.Add(counting(1))
	f.Add(with(func(g *guest) {
		g.Table(2)
		g.Elements(0, 0)
		g.start = []any{asm.Nop}
		call := g.ImportFunc("tierd", "log", asm.Types(asm.I32, asm.I32), nil)
		g.choose = append([]any{asm.I32Const(8), asm.I32Const(64), asm.Call(call)},
			usualChoice()...)
	}))
	f.Add(readModule(f, modules+"/c-hottest.wasm"))
	f.Fuzz(func(t *testing.T, wasm []byte) {
		s, err := Load([]Spec{spec("p", wasm)}, Options{Limits: quick, Log: func(Line) {}})
		if err != nil {
			return
		}
		w := s.NewWorker()
		for _, n := range []int{1, 3} {
			b := batch(n, n)
			contained(t, ask(w, b), b.Len())
		}
		w.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// FuzzAnswer: whatever bytes a plugin answers with, from wherever.
func FuzzAnswer(f *testing.F) {
	f.Add(make([]byte, 27), uint64(outputAt)<<32|27, uint32(inputAt))
	f.Add([]byte{1}, uint64(1<<63), uint32(8))
	f.Add([]byte{}, uint64(pages<<16-27)<<32|27, uint32(pages<<16))
	f.Fuzz(func(t *testing.T, answer []byte, result uint64, input uint32) {
		if len(answer) > 1<<15 {
			return
		}
		g := &guest{answer: answer, choose: []any{asm.I64Const(int64(result))},
			alloc: []any{asm.I32Const(int32(input))}}
		s, err := Load([]Spec{spec("p", g.build())}, Options{Limits: quick})
		if err != nil {
			return // its tierd_alloc is of no use to tierd_configure already
		}
		w := s.NewWorker()
		contained(t, ask(w, batch(3)), 3)
		w.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// floats reports whether the code may compute with floats, or merely holds a byte that begins such
// an instruction. The bits of what is not a number are for engines to choose.
func floats(code []byte) bool {
	return bytes.ContainsAny(code, "\x43\x44\x2a\x2b") ||
		slices.ContainsFunc(code, func(b byte) bool { return b >= 0xb2 && b <= 0xbf })
}

// FuzzCode: the compiler and the interpreter give the same answer to the same batch, end in the
// same way, and use the same fuel, whatever tierd_select does.
func FuzzCode(f *testing.F) {
	f.Add(asm.Code(usualChoice()...))
	f.Add(asm.Code(forever(asm.I32Const(1), asm.MemoryGrow, 0, asm.Drop)...))
	f.Add(asm.Code(forever(asm.I32Const(8), asm.I32Const(0), asm.I32Const(99),
		asm.Prefixed(10, 0, 0))...))
	f.Add(asm.Code(asm.LocalGet(0), asm.LocalGet(1), asm.Call(0))) // recursion
	f.Add(asm.Code(asm.Block(asm.Empty), asm.Block(asm.Empty), asm.LocalGet(1), asm.BrTable(0, 1),
		asm.End, asm.I64Const(7), asm.Return, asm.End, asm.LocalGet(0), asm.I64Load(64)))
	f.Add(asm.Code(asm.I32Const(outputAt), asm.LocalGet(0), asm.I64Load(176), asm.I64Store(0),
		asm.LocalGet(1), asm.If(asm.I64), asm.I64Const(outputAt<<32|54), asm.Else, asm.I64Const(1),
		asm.End))
	f.Fuzz(func(t *testing.T, code []byte) {
		if floats(code) {
			return
		}
		g := &guest{}
		g.ExportFunc("tierd_select", g.Func(asm.Types(asm.I32, asm.I32), asm.Types(asm.I64),
			asm.Types(asm.I32, asm.I64), code))
		g.withoutSelect = true
		wasm := g.build()
		type outcome struct {
			kinds  string
			fuel   uint64
			scores string
		}
		var seen []outcome
		for _, e := range []Engine{EngineCompiler, EngineInterpreter} {
			s, err := Load([]Spec{spec("p", wasm)}, Options{Limits: quick, Engine: e})
			if err != nil {
				return
			}
			i, fault := s.codes[0].newInstance(nil, 0, newLogger(quick))
			if fault != nil {
				t.Fatal(fault)
			}
			scores, _, fault := i.ask(batch(4, 2), 6)
			o := outcome{fuel: i.fuel.Get(), scores: string(scores)}
			if fault != nil {
				o.kinds = string(fault.Kind)
			}
			seen = append(seen, o)
			i.close()
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if seen[0] != seen[1] {
			t.Errorf("the compiler gives %+v, the interpreter %+v", seen[0], seen[1])
		}
	})
}
