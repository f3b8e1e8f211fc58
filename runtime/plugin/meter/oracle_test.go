package meter_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tierd/tierd/runtime/plugin/internal/asm"
)

// The oracle runs random structured programs by walking their statements, and counts what each
// executed instruction costs. The metered module must give the same result and the same count,
// without knowing of the statements.

const (
	vars     = 3 // i32 variables of a function; locals behind them count loops
	counters = 8
)

// machine is the oracle's state within one function.
type machine struct {
	program []*function
	v       [vars]uint32
	fuel    int64
}

// exit says how a statement ended: next goes on, leaveAll returns, and n > 0 leaves n blocks.
type exit int

const (
	next     exit = 0
	leaveAll exit = -1
)

// statement is a piece of a program: its code, and what running it does.
type statement interface {
	code(depth int) []byte
	run(*machine) exit
}

type (
	assign struct{ to, by uint32 } // v[to] += by; 4 instructions
	sum    struct{ to, from uint32 }
	block  struct{ body list }
	branch struct{ on, out uint32 } // leaves out+1 blocks if v[on] is odd
	choose struct{ on, yes uint32 } // leaves 1 or yes+1 blocks by v[on]
	decide struct {
		on              uint32
		then, otherwise list
	}
	repeat struct {
		times, counter uint32
		body           list
	}
	call     struct{ f, to uint32 } // v[to] = f(v[to])
	giveUp   struct{ from uint32 }  // return v[from]
	list     []statement
	function struct{ body list }
)

const i32And = 0x71

func (s assign) code(int) []byte {
	return asm.Code(asm.LocalGet(s.to), asm.I32Const(int32(s.by)), asm.I32Add, asm.LocalSet(s.to))
}

func (s assign) run(m *machine) exit {
	m.v[s.to] += s.by
	m.fuel += 4
	return next
}

func (s sum) code(int) []byte {
	return asm.Code(asm.LocalGet(s.to), asm.LocalGet(s.from), asm.I32Add, asm.LocalSet(s.to))
}

func (s sum) run(m *machine) exit {
	m.v[s.to] += m.v[s.from]
	m.fuel += 4
	return next
}

func (s block) code(depth int) []byte {
	return asm.Code(asm.Block(asm.Empty), s.body.code(depth+1), asm.End)
}

func (s block) run(m *machine) exit { return s.body.run(m).outOf() }

// outOf is what an exit of a block's body means to what holds the block.
func (e exit) outOf() exit {
	if e > 0 {
		return e - 1
	}
	return e
}

func (s branch) code(depth int) []byte {
	return asm.Code(asm.LocalGet(s.on), asm.I32Const(1), i32And,
		asm.BrIf(min(s.out, uint32(depth-1))))
}

func (s branch) run(m *machine) exit {
	m.fuel += 4
	if m.v[s.on]&1 == 1 {
		return exit(s.out + 1)
	}
	return next
}

func (s choose) code(int) []byte {
	return asm.Code(asm.LocalGet(s.on), asm.BrTable(0, s.yes, 0))
}

func (s choose) run(m *machine) exit {
	m.fuel += 2
	if m.v[s.on] == 1 {
		return exit(s.yes + 1)
	}
	return 1
}

func (s decide) code(depth int) []byte {
	head := asm.Code(asm.LocalGet(s.on), asm.I32Const(1), i32And, asm.If(asm.Empty),
		s.then.code(depth+1))
	if s.otherwise != nil {
		head = asm.Code(head, asm.Else, s.otherwise.code(depth+1))
	}
	return asm.Code(head, asm.End)
}

func (s decide) run(m *machine) exit {
	m.fuel += 4
	if m.v[s.on]&1 == 1 {
		return s.then.run(m).outOf()
	}
	return s.otherwise.run(m).outOf()
}

func (s repeat) code(depth int) []byte {
	c := vars + s.counter
	return asm.Code(asm.I32Const(int32(s.times)), asm.LocalSet(c),
		asm.Block(asm.Empty), asm.Loop(asm.Empty),
		asm.LocalGet(c), asm.I32Eqz, asm.BrIf(1),
		asm.LocalGet(c), asm.I32Const(1), asm.I32Sub, asm.LocalSet(c),
		asm.Block(asm.Empty), s.body.code(depth+3), asm.End,
		asm.Br(0), asm.End, asm.End)
}

func (s repeat) run(m *machine) exit {
	m.fuel += 2
	for range s.times {
		m.fuel += 3 + 4
		switch e := s.body.run(m); {
		case e == leaveAll:
			return leaveAll
		case e == 2: // to the loop's head, which costs no jump of its own
			continue
		case e == 3:
			return next
		case e > 3:
			return e - 3
		}
		m.fuel++
	}
	m.fuel += 3
	return next
}

func (s call) code(int) []byte {
	return asm.Code(asm.LocalGet(s.to), asm.Call(s.f), asm.LocalSet(s.to))
}

func (s call) run(m *machine) exit {
	m.fuel += 1 + 4 + 1
	got, used := m.program[s.f].run(m.program, m.v[s.to])
	m.v[s.to] = got
	m.fuel += used
	return next
}

func (s giveUp) code(int) []byte { return asm.Code(asm.LocalGet(s.from), asm.Return) }

func (s giveUp) run(m *machine) exit {
	m.fuel += 2
	m.v[0] = m.v[s.from]
	return leaveAll
}

func (l list) code(depth int) []byte {
	var out []byte
	for _, s := range l {
		out = append(out, s.code(depth)...)
	}
	return out
}

func (l list) run(m *machine) exit {
	for _, s := range l {
		if e := s.run(m); e != next {
			return e
		}
	}
	return next
}

// code wraps the body in a block, so that every branch has somewhere to go.
func (f *function) code() []byte {
	return asm.Code(asm.Block(asm.Empty), f.body.code(1), asm.End, asm.LocalGet(0))
}

func (f *function) run(program []*function, arg uint32) (result uint32, fuel int64) {
	m := machine{program: program, v: [vars]uint32{arg}, fuel: 1}
	if e := f.body.run(&m); e != leaveAll {
		m.fuel++ // the result
	}
	return m.v[0], m.fuel
}

// drawList draws statements that stand depth blocks deep. Functions call later ones only.
func drawList(t *rapid.T, depth, loops, self, functions int) list {
	var out list
	v := func(label string) uint32 { return rapid.Uint32Range(0, vars-1).Draw(t, label) }
	for range rapid.IntRange(0, 4).Draw(t, "length") {
		kind := rapid.IntRange(0, 9).Draw(t, "kind")
		if depth > 8 && kind >= 6 {
			kind = 0
		}
		inner := func(more int) list { return drawList(t, depth+more, loops, self, functions) }
		switch kind {
		case 0, 1:
			out = append(out, assign{v("to"), rapid.Uint32Range(0, 3).Draw(t, "by")})
		case 2:
			out = append(out, sum{v("to"), v("from")})
		case 3:
			out = append(out, branch{v("on"), rapid.Uint32Range(0, uint32(depth-1)).Draw(t, "out")})
		case 4:
			if self+1 < functions {
				f := rapid.IntRange(self+1, functions-1).Draw(t, "f")
				out = append(out, call{uint32(f), v("to")})
			}
		case 5:
			if rapid.IntRange(0, 3).Draw(t, "give up") == 0 {
				out = append(out, giveUp{v("from")})
			}
		case 6:
			out = append(out, block{inner(1)})
		case 7:
			body := append(inner(1), choose{v("on"),
				rapid.Uint32Range(0, uint32(depth)).Draw(t, "yes")})
			out = append(out, block{append(body, inner(1)...)})
		case 8:
			d := decide{on: v("on"), then: inner(1)}
			if rapid.Bool().Draw(t, "else") {
				d.otherwise = append(list{assign{0, 1}}, inner(1)...)
			}
			out = append(out, d)
		case 9:
			if loops < 2 {
				out = append(out, repeat{rapid.Uint32Range(0, 3).Draw(t, "times"), uint32(loops),
					drawList(t, depth+3, loops+1, self, functions)})
			}
		}
	}
	return out
}

func TestFuelIsWhatWasExecuted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		program := make([]*function, rapid.IntRange(1, 4).Draw(rt, "functions"))
		for i := range program {
			program[i] = &function{drawList(rt, 1, 0, i, len(program))}
		}
		var m asm.Module
		i32 := asm.Types(asm.I32)
		locals := make([]byte, vars-1+counters)
		for i := range locals {
			locals[i] = asm.I32
		}
		for _, f := range program {
			m.Func(i32, i32, locals, f.code())
		}
		m.ExportFunc("f", 0)
		out := metered(t, m.Bytes())
		arg := rapid.Uint32Range(0, 3).Draw(rt, "arg")
		want, wantFuel := program[0].run(program, arg)
		for engine, cfg := range engines() {
			got, used, err := run(t, cfg, out).call("f", uint64(arg))
			if err != nil || uint32(got[0]) != want || used != wantFuel {
				rt.Fatalf("%s: f(%d) = %v, %v with fuel %d; the oracle says %d with fuel %d",
					engine, arg, got, err, used, want, wantFuel)
			}
		}
	})
}
