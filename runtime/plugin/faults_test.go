package plugin

import (
	"slices"
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/plugin/internal/asm"
)

// misbehaviour is a guest that does not answer as it should, and the fault that it gets.
type misbehaviour struct {
	name string
	make func(*guest)
	kind FaultKind
	text string
}

// chooses makes a guest whose tierd_select is the code.
func chooses(code ...any) func(*guest) { return func(g *guest) { g.choose = code } }

// answers makes a guest that answers with what stands at a place.
func answers(at int64, size int32) func(*guest) {
	return chooses(answering(at, asm.I32Const(size))...)
}

// allocates makes a guest whose tierd_alloc is the code, but for the first call: that is for
// tierd_configure, which must succeed.
func allocates(code ...any) func(*guest) {
	return func(g *guest) {
		calls := g.Global(asm.I32, asm.I32Const(0))
		g.alloc = []any{asm.GlobalGet(calls), asm.I32Eqz, asm.If(asm.I32), asm.I32Const(1),
			asm.GlobalSet(calls), asm.I32Const(inputAt), asm.Else, asm.Code(code...), asm.End}
	}
}

// calls makes a guest that calls a function of WASI for ever, with i32 arguments.
func calls(name string, args ...int32) func(*guest) {
	return func(g *guest) {
		params := slices.Repeat([]byte{asm.I32}, len(args))
		f := g.ImportFunc(moduleWASI, name, params, asm.Types(asm.I32))
		var code []byte
		for _, a := range args {
			code = append(code, asm.I32Const(a)...)
		}
		g.choose = forever(code, asm.Call(f), asm.Drop)
	}
}

func recurses(g *guest) {
	f := g.Func(nil, nil, nil, asm.Call(0), asm.Call(0))
	g.choose = append([]any{asm.Call(f)}, usualChoice()...)
}

func exits(g *guest) {
	f := g.ImportFunc(moduleWASI, "proc_exit", asm.Types(asm.I32), nil)
	g.choose = append([]any{asm.I32Const(0), asm.Call(f)}, usualChoice()...)
}

func misbehaviours() []misbehaviour {
	const noFuel = "it used up its fuel"
	return []misbehaviour{
		{"a trap", chooses(asm.Unreachable), FaultTrap, "unreachable in "},
		{"division by zero", chooses(asm.I64Const(1), asm.I64Const(0), asm.I64DivS), FaultTrap,
			"integer divide by zero in "},
		{"a read outside of its memory", chooses(asm.I32Const(-1), asm.I64Load(0)), FaultTrap,
			"out of bounds"},
		{"a loop without end", chooses(forever()...), FaultFuel, noFuel},
		{"bulk operations without end", chooses(forever(asm.I32Const(0), asm.I32Const(0),
			asm.I32Const(1<<16), asm.Prefixed(11, 0))...), FaultFuel, noFuel},
		{"growth without end", chooses(forever(asm.I32Const(1), asm.MemoryGrow, 0, asm.Drop)...),
			FaultFuel, noFuel},
		{"host calls without end", calls("sched_yield"), FaultFuel, noFuel},
		{"large host calls without end", calls("random_get", 0, 1<<17), FaultFuel, noFuel},
		{"a host call of 4 billion pieces", calls("fd_write", 1, 0, -1, 8), FaultFuel, noFuel},
		{"a host call of 4 billion deadlines", calls("poll_oneoff", 0, 0, -1, 8), FaultFuel,
			noFuel},
		{"recursion", recurses, FaultStack, "it recursed too deep"},
		{"exit", exits, FaultTrap, "it exited with code 0"},
		{"no memory for the batch", allocates(asm.I32Const(0)), FaultMemory, "tierd_alloc("},
		{"memory that is not aligned", allocates(asm.I32Const(inputAt + 4)), FaultMemory,
			"a multiple of 8"},
		{"memory outside of its memory", allocates(asm.I32Const(pages<<16 - 8)), FaultMemory,
			"within its memory of 262144"},
		{"memory at the end of 4 GiB", allocates(asm.I32Const(-8)), FaultMemory, "gave 0xfffffff8"},
		{"an answer one byte short", answers(outputAt, 26), FaultOutput,
			"26 bytes for 3 segments, want 27"},
		{"an answer one byte long", answers(outputAt, 28), FaultOutput, "28 bytes for 3 segments"},
		{"no answer", chooses(asm.I64Const(0)), FaultOutput, "0 bytes for 3 segments"},
		{"an answer of 4 GiB", answers(outputAt, -1), FaultOutput, "4294967295 bytes"},
		{"an answer outside of its memory", answers(pages<<16-26, 27), FaultOutput,
			"lies outside of its memory"},
		{"an answer at the end of 4 GiB", answers(1<<32-1, 27), FaultOutput,
			"lies outside of its memory"},
		{"an unknown action", func(g *guest) { g.answer = append(make([]byte, 25), 3, 0) },
			FaultAction, "the action 3 of row 1 is none of"},
	}
}

// TestFaults: whatever a plugin does, it costs its own part of the answer and nothing else.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, c := range misbehaviours() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sound := says([]int64{5, 6, 7}, ActionNone, ActionKeep, ActionHold)
			w := worker(t, Options{}, with(c.make), sound)
			r := ask(w, batch(3))
			if len(r.Faults) != 1 || r.Faults[0].Kind != c.kind || r.Faults[0].Plugin != "p0" ||
				!strings.Contains(r.Faults[0].Text, c.text) {
				t.Fatalf("faults %+v; want %s: %q", r.Faults, c.kind, c.text)
			}
			for i := range r.Len() {
				if r.scores[0][i] != 0 || r.scores[1][i] != int64(5+i) {
					t.Errorf("row %d has the scores %d and %d", i, r.scores[0][i], r.scores[1][i])
				}
			}
			if !slices.Equal(r.holds, []uint16{0, 0, 0b10}) ||
				!slices.Equal(r.keeps, []uint16{0, 0b10, 0}) {
				t.Errorf("holds %b, keeps %b: the sound plugin's are wanted", r.holds, r.keeps)
			}
			if w.slots[0].inst != nil {
				t.Error("the instance was not discarded")
			}
		})
	}
}
