package meter_test

import (
	"testing"

	"github.com/tierd/tierd/runtime/plugin/internal/asm"
	"github.com/tierd/tierd/runtime/plugin/meter"
)

// one is a module that exports one function f(i32) -> i32 with an i32 local.
func one(pieces ...any) []byte {
	var m asm.Module
	m.Memory(1, 4)
	m.ExportFunc("f", m.Func(asm.Types(asm.I32), asm.Types(asm.I32), asm.Types(asm.I32), pieces...))
	return m.Bytes()
}

// countdown runs body as often as the parameter says.
func countdown(body ...any) []any {
	return []any{
		asm.Block(asm.Empty), asm.Loop(asm.Empty),
		asm.LocalGet(0), asm.I32Eqz, asm.BrIf(1), // 3
		asm.Code(body...),
		asm.LocalGet(0), asm.I32Const(1), asm.I32Sub, asm.LocalSet(0), asm.Br(0), // 5
		asm.End, asm.End,
	}
}

// TestFuelCountsInstructions compares with counts made by hand: each function costs 1 to enter,
// each instruction 1, but for those that produce no code (0), calls (4), divisions and operations
// over a length (8).
func TestFuelCountsInstructions(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name     string
		wasm     []byte
		arg      uint64
		want     uint64
		wantFuel int64
	}{
		{"straight line", one(asm.LocalGet(0), asm.I32Const(2), asm.I32Add), 5, 7, 1 + 3},
		{"division", one(asm.LocalGet(0), asm.I32Const(2), asm.I32DivU), 8, 4, 1 + 2 + 8},
		{"then", one(asm.LocalGet(0), asm.If(asm.I32), asm.I32Const(7), asm.Nop, asm.Else,
			asm.I32Const(1), asm.I32Const(2), asm.I32Add, asm.End), 1, 7, 1 + 2 + 1},
		{"else", one(asm.LocalGet(0), asm.If(asm.I32), asm.I32Const(7), asm.Nop, asm.Else,
			asm.I32Const(1), asm.I32Const(2), asm.I32Add, asm.End), 0, 3, 1 + 2 + 3},
		{"if without else", one(asm.LocalGet(0), asm.If(asm.Empty), asm.I32Const(9),
			asm.LocalSet(0),
			asm.End, asm.LocalGet(0)), 0, 0, 1 + 2 + 1},
		{"loop of none", one(append(countdown(), asm.LocalGet(0))...), 0, 0, 1 + 3 + 1},
		{"loop of ten", one(append(countdown(), asm.LocalGet(0))...), 10, 0, 1 + 10*(3+5) + 3 + 1},
		{"branch past code", one(asm.Block(asm.Empty), asm.LocalGet(0), asm.BrIf(0),
			asm.I32Const(1), asm.LocalSet(0), asm.End, asm.LocalGet(0)), 4, 4, 1 + 2 + 1},
		{"return past code", one(asm.LocalGet(0), asm.If(asm.Empty), asm.I32Const(3), asm.Return,
			asm.End, asm.I32Const(4)), 1, 3, 1 + 2 + 2},
		{"code after return is free", one(asm.I32Const(3), asm.Return,
			asm.I32Const(1), asm.Drop, asm.Loop(asm.Empty), asm.Br(0), asm.End), 1, 3, 1 + 2},
		{"table, first", dispatch(), 0, 10, 1 + 2 + 2},
		{"table, second", dispatch(), 1, 20, 1 + 2 + 2},
		{"table, default", dispatch(), 9, 30, 1 + 2 + 1},
		{"fill of 800 bytes", one(asm.I32Const(0), asm.I32Const(7), asm.LocalGet(0),
			asm.Prefixed(11, 0), asm.I32Const(0)), 800, 0, 1 + 3 + 8 + 100 + 1},
		{"copy of 80 bytes", one(asm.I32Const(0), asm.I32Const(7), asm.LocalGet(0),
			asm.Prefixed(10, 0, 0), asm.I32Const(0)), 80, 0, 1 + 3 + 8 + 10 + 1},
		{"growth by two pages", one(asm.LocalGet(0), asm.MemoryGrow, 0), 2, 1, 1 + 1 + 8 + 2<<13},
		{"a call", caller(), 3, 4, 1 + 2 + 4 + 1 + 3},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := metered(t, c.wasm)
			for engine, cfg := range engines() {
				got, used, err := run(t, cfg, m).call("f", c.arg)
				if err != nil || uint64(uint32(got[0])) != c.want || used != c.wantFuel {
					t.Errorf("%s: f(%d) = %v, %v with fuel %d; want %d with fuel %d",
						engine, c.arg, got, err, used, c.want, c.wantFuel)
				}
			}
		})
	}
}

func dispatch() []byte {
	return one(asm.Block(asm.Empty), asm.Block(asm.Empty), asm.Block(asm.Empty),
		asm.LocalGet(0), asm.BrTable(0, 1, 2), asm.End,
		asm.I32Const(10), asm.Return, asm.End,
		asm.I32Const(20), asm.Return, asm.End,
		asm.I32Const(30))
}

func caller() []byte {
	var m asm.Module
	i := asm.Types(asm.I32)
	g := m.Func(i, i, nil, asm.LocalGet(0), asm.I32Const(1), asm.I32Add)
	m.ExportFunc("f", m.Func(i, i, nil, asm.LocalGet(0), asm.Nop, asm.Call(g), asm.Return))
	return m.Bytes()
}

// TestEndlessProgramsEnd runs what would never end, or eat the native stack.
func TestEndlessProgramsEnd(t *testing.T) {
	t.Parallel()
	recursive := func() []byte {
		var m asm.Module
		i := asm.Types(asm.I32)
		m.ExportFunc("f", m.Func(i, i, nil, asm.LocalGet(0), asm.Call(0), asm.I32Const(1),
			asm.I32Add))
		return m.Bytes()
	}
	indirect := func() []byte {
		var m asm.Module
		m.Table(1)
		i := asm.Types(asm.I32)
		f := m.Func(i, i, nil, asm.LocalGet(0), asm.I32Const(0), asm.CallIndirect(0))
		m.Elements(0, f)
		m.ExportFunc("f", f)
		return m.Bytes()
	}
	fat := func() []byte { // few frames, each of them large
		var m asm.Module
		i := asm.Types(asm.I32)
		locals := make([]byte, 4000)
		for k := range locals {
			locals[k] = asm.I64
		}
		m.ExportFunc("f", m.Func(i, i, locals, asm.LocalGet(0), asm.Call(0)))
		return m.Bytes()
	}
	cases := []struct {
		name  string
		wasm  []byte
		arg   uint64
		stack bool // what runs out
	}{
		{"an empty loop", one(asm.Loop(asm.Empty), asm.Br(0), asm.End, asm.Unreachable), 0, false},
		{"a loop by table", one(asm.Loop(asm.Empty), asm.I32Const(0), asm.BrTable(0, 0), asm.End,
			asm.Unreachable), 0, false},
		{"filling 64 KiB for ever", one(asm.Loop(asm.Empty), asm.I32Const(0), asm.I32Const(1),
			asm.I32Const(65536), asm.Prefixed(11, 0), asm.Br(0), asm.End, asm.Unreachable), 0,
			false},
		{"growing for ever", one(asm.Loop(asm.Empty), asm.I32Const(1), asm.MemoryGrow, 0, asm.Drop,
			asm.Br(0), asm.End, asm.Unreachable), 0, false},
		{"recursion", recursive(), 0, true},
		{"recursion through a table", indirect(), 0, true},
		{"recursion of large frames", fat(), 0, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := metered(t, c.wasm)
			seen := map[string][2]int64{}
			for engine, cfg := range engines() {
				p := run(t, cfg, m)
				_, used, err := p.callWith(2_000_000, "f", c.arg)
				if err == nil {
					t.Fatalf("%s: it returned", engine)
				}
				if c.stack != (p.stackLeft() < 0) || !c.stack && p.fuelLeft() >= 0 {
					t.Errorf("%s: fuel %d and stack %d are left: %v",
						engine, p.fuelLeft(), p.stackLeft(), err)
				}
				seen[engine] = [2]int64{used, p.stackLeft()}
			}
			if seen["compiler"] != seen["interpreter"] {
				t.Errorf("the engines differ in fuel and stack: %v", seen)
			}
		})
	}
}

// TestStackIsGivenBack leaves functions in every way, with no, one and several results.
func TestStackIsGivenBack(t *testing.T) {
	t.Parallel()
	var m asm.Module
	i := asm.Types(asm.I32)
	leaf := m.Func(nil, nil, nil)
	pair := asm.Types(asm.I64, asm.I32)
	m.ExportFunc("none", m.Func(i, nil, nil, asm.Call(leaf), asm.LocalGet(0), asm.BrIf(0),
		asm.Call(leaf), asm.Return))
	two := m.Func(i, pair, nil, asm.Call(leaf), asm.Block(asm.Empty), asm.LocalGet(0), asm.BrIf(0),
		asm.I64Const(1), asm.I32Const(2), asm.Return, asm.End,
		asm.I64Const(3), asm.I32Const(4), asm.LocalGet(0), asm.BrTable(0, 0))
	m.ExportFunc("two", two)
	m.ExportFunc("again", m.Func(i, pair, nil, asm.LocalGet(0), asm.Call(two)))
	out := metered(t, m.Bytes())
	for engine, cfg := range engines() {
		p := run(t, cfg, out)
		for _, name := range []string{"none", "two", "again"} {
			for arg := range uint64(2) {
				got, _, err := p.call(name, arg) // call checks the stack
				if err != nil || name != "none" && (got[0] != 1+2*arg || got[1] != 2+2*arg) {
					t.Errorf("%s: %s(%d) = %v, %v", engine, name, arg, got, err)
				}
			}
		}
	}
}

// TestStartFunctionWaits: a start function runs only when the host calls it, with fuel.
func TestStartFunctionWaits(t *testing.T) {
	t.Parallel()
	var m asm.Module
	g := m.Global(asm.I32, asm.I32Const(0))
	m.Start(m.Func(nil, nil, nil, asm.I32Const(1), asm.GlobalSet(g),
		asm.Loop(asm.Empty), asm.Br(0), asm.End))
	m.Export("g", 3, g)
	out := metered(t, m.Bytes())
	for engine, cfg := range engines() {
		p := run(t, cfg, out)
		if got := p.mod.ExportedGlobal("g").Get(); got != 0 {
			t.Errorf("%s: the start function ran unasked", engine)
		}
		if _, _, err := p.callWith(1000, out.Start); err == nil || p.fuelLeft() >= 0 {
			t.Errorf("%s: the start function was not stopped: %v", engine, err)
		}
		if got := p.mod.ExportedGlobal("g").Get(); got != 1 {
			t.Errorf("%s: the start function did not run", engine)
		}
	}
}

// TestModuleThatNamesTheGlobals: a module's own exports keep their names and meaning.
func TestModuleThatNamesTheGlobals(t *testing.T) {
	t.Parallel()
	var m asm.Module
	for _, name := range []string{"tierd_fuel", "tierd_fuel_1", "tierd_stack", "tierd_start"} {
		m.Export(name, 3, m.Global(asm.I64, asm.I64Const(42)))
	}
	m.Start(m.Func(nil, nil, nil))
	m.ExportFunc("f", m.Func(nil, nil, nil, asm.I64Const(1<<50), asm.GlobalSet(0),
		asm.Loop(asm.Empty), asm.Br(0), asm.End))
	out := metered(t, m.Bytes())
	want := meter.Metered{Fuel: "tierd_fuel_2", Stack: "tierd_stack_1", Start: "tierd_start_1"}
	if out.Fuel != want.Fuel || out.Stack != want.Stack || out.Start != want.Start {
		t.Errorf("names %q, %q, %q; want %q, %q, %q",
			out.Fuel, out.Stack, out.Start, want.Fuel, want.Stack, want.Start)
	}
	for engine, cfg := range engines() {
		p := run(t, cfg, out)
		if got := p.mod.ExportedGlobal("tierd_fuel").Get(); got != 42 {
			t.Errorf("%s: the module's own global is %d", engine, got)
		}
		if _, _, err := p.callWith(1000, "f"); err == nil || p.fuelLeft() >= 0 {
			t.Errorf("%s: a module that sets its own tierd_fuel was not stopped", engine)
		}
	}
}

// TestTablesStayBounded: a table without a maximum gets one.
func TestTablesStayBounded(t *testing.T) {
	t.Parallel()
	var m asm.Module
	m.Table(1)
	i := asm.Types(asm.I32)
	m.ExportFunc("f", m.Func(i, i, nil, asm.Code(0xd0), asm.Func, asm.LocalGet(0),
		asm.Prefixed(15, 0)))
	out := metered(t, m.Bytes())
	for engine, cfg := range engines() {
		p := run(t, cfg, out)
		if got, used, err := p.call("f", 1000); err != nil || got[0] != 1 || used < 1000 {
			t.Errorf("%s: growth by 1000: %v, %v, fuel %d", engine, got, err, used)
		}
		got, _, err := p.call("f", meter.TableEntriesMax)
		if err != nil || int32(got[0]) != -1 {
			t.Errorf("%s: growth past the limit: %v, %v; want -1", engine, got, err)
		}
	}
}
