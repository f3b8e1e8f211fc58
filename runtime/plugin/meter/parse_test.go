package meter_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/plugin/internal/asm"
	"github.com/tierd/tierd/runtime/plugin/meter"
)

// rich is a module with every kind of section.
func rich() []byte {
	var m asm.Module
	i := asm.Types(asm.I32)
	m.ImportFunc("env", "f", i, nil)
	m.Table(2)
	m.Memory(1, 4)
	m.Global(asm.I64, asm.I64Const(-1))
	m.Func(i, i, asm.Types(asm.I64), append(countdown(), asm.LocalGet(0))...)
	g := m.Func(i, i, asm.Types(asm.I64), append(countdown(), asm.LocalGet(0))...)
	m.Elements(0, g)
	m.Data(16, []byte("hello"))
	m.Start(m.Func(nil, nil, nil))
	m.ExportFunc("f", g)
	m.Export("memory", 2, 0)
	m.Custom("name", asm.Code(1, 8, 2, 0, 2, byte('i'), byte('m'), 1, 1, byte('g')))
	m.Custom("producers", []byte{1, 2, 3})
	return m.Bytes()
}

func TestParseSummary(t *testing.T) {
	t.Parallel()
	m, err := meter.Parse(rich())
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Imports) != 1 || m.Imports[0].Module != "env" ||
		m.Imports[0].Type.String() != "(i32) -> ()" {
		t.Errorf("imports %+v", m.Imports)
	}
	if len(m.Exports) != 2 || m.Exports[0].Type.String() != "(i32) -> (i32)" ||
		m.Exports[1].Kind != meter.KindMemory {
		t.Errorf("exports %+v", m.Exports)
	}
	if m.Memory == nil || *m.Memory != (meter.Limits{Min: 1, Max: 4, HasMax: true}) {
		t.Errorf("memory %+v", m.Memory)
	}
	if m.Functions() != 3 || m.Start == nil || *m.Start != 3 || len(m.Tables) != 1 {
		t.Errorf("%d functions, start %v, %d tables", m.Functions(), m.Start, len(m.Tables))
	}
	if clean := m.Sanitized(); bytes.Contains(clean, []byte("producers")) ||
		!bytes.Contains(clean, []byte("name")) {
		t.Error("only the function names are kept of the custom sections")
	}
}

// with returns a module after f has worked on it.
func with(f func(m *asm.Module)) []byte {
	var m asm.Module
	f(&m)
	return m.Bytes()
}

func TestUnsupportedProposalsAreNamed(t *testing.T) {
	t.Parallel()
	code := func(pieces ...any) []byte { return one(pieces...) }
	cases := []struct {
		proposal string
		wasm     []byte
	}{
		{"fixed-width SIMD", code(0xfd, 12)},
		{"fixed-width SIMD", with(func(m *asm.Module) { m.Type(asm.Types(asm.V128), nil) })},
		{"fixed-width SIMD", with(func(m *asm.Module) { m.Func(nil, nil, asm.Types(asm.V128)) })},
		{"threads", code(0xfe, 0x10)},
		{"threads", with(func(m *asm.Module) { m.RawMemory(3, 1, 2) })},
		{"tail calls", code(0x12, 0)},
		{"tail calls", code(0x13, 0, 0)},
		{"exception handling", code(0x08, 0)},
		{"exception handling", code(0x1f, 0x40, 0)},
		{"exception handling", []byte{0, 'a', 's', 'm', 1, 0, 0, 0, 13, 3, 1, 0, 0}},
		{"garbage collection", code(0xfb, 0)},
		{"garbage collection", with(func(m *asm.Module) { m.RawType(0x5f, 0, 0) })},
		{"typed function references", code(0x14, 0)},
		{"typed function references", with(func(m *asm.Module) { m.RawTable(0x64, 0x70, 0, 1) })},
		{"wide arithmetic", code(0xfc, 19)},
		{"multiple memories", with(func(m *asm.Module) { m.Memory(1, 2); m.Memory(1, 2) })},
		{"multiple memories", code(asm.I32Const(0), 0x2d, 0x40, 1, 0)},
		{"multiple memories", code(asm.MemorySize, 1)},
		{"64-bit memory", with(func(m *asm.Module) { m.RawMemory(4, 1) })},
		{"custom page sizes", with(func(m *asm.Module) { m.RawMemory(8, 1, 0) })},
		{"extended constant expressions", with(func(m *asm.Module) {
			m.Global(asm.I32, asm.Code(asm.I32Const(1), asm.I32Const(2), asm.I32Add))
		})},
		{"the component model", []byte{0, 'a', 's', 'm', 0x0d, 0, 1, 0}},
	}
	for _, c := range cases {
		var u *meter.UnsupportedError
		if _, err := meter.Parse(c.wasm); !errors.As(err, &u) || u.Proposal != c.proposal {
			t.Errorf("%s: %v", c.proposal, err)
		} else if !strings.Contains(err.Error(), c.proposal) {
			t.Errorf("the message does not name the proposal: %v", err)
		}
	}
}

// hard makes functions, one if their number is not given, with so many loops, conditional branches
// and locals, the parameter not counted.
func hard(loops, branches, locals int, functions ...int) []byte {
	var m asm.Module
	n := 1
	if len(functions) > 0 {
		n = functions[0]
	}
	i32 := asm.Types(asm.I32)
	for range n {
		m.Func(i32, i32, bytes.Repeat(i32, locals),
			bytes.Repeat(asm.Code(asm.Loop(asm.Empty), asm.End), loops),
			bytes.Repeat(asm.Code(asm.LocalGet(0), asm.LocalGet(0), asm.BrIf(0), asm.Drop), branches),
			asm.LocalGet(0))
	}
	return m.Bytes()
}

// TestHardButAccepted: the largest that is accepted is valid, and can be metered.
func TestHardButAccepted(t *testing.T) {
	t.Parallel()
	metered(t, hard(100, 1000, 99))
}

func TestRefused(t *testing.T) {
	t.Parallel()
	huge := asm.U32(1<<32 - 1)
	header := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	section := func(id byte, content ...byte) []byte {
		return asm.Code(header, id, asm.U32(uint32(len(content))), content)
	}
	cases := []struct {
		name string
		wasm []byte
		want error
	}{
		{"empty", nil, meter.ErrNotModule},
		{"text", []byte("(module)"), meter.ErrNotModule},
		{"header cut short", header[:6], meter.ErrNotModule},
		{"another version", []byte{0, 'a', 's', 'm', 2, 0, 0, 0}, meter.ErrNotModule},
		{"too many bytes", append(header, make([]byte, meter.ModuleBytesMax)...),
			meter.ErrTooLarge},
		{"unknown section", section(14), meter.ErrMalformed},
		{"section cut short", asm.Code(header, 1, 5, 0), meter.ErrMalformed},
		{"section twice", asm.Code(section(1, 0), byte(1), byte(1), byte(0)), meter.ErrMalformed},
		{"sections out of order", asm.Code(section(3, 0), byte(1), byte(1), byte(0)),
			meter.ErrMalformed},
		{"bytes after a section", section(1, 0, 0), meter.ErrMalformed},
		{"4 billion types", section(1, huge...), meter.ErrMalformed},
		{"4 billion parameters", section(1, asm.Code(1, 0x60, huge)...), meter.ErrMalformed},
		{"4 billion imports", section(2, huge...), meter.ErrMalformed},
		{"4 billion functions", section(3, huge...), meter.ErrMalformed},
		{"4 billion table entries", with(func(m *asm.Module) {
			m.RawTable(asm.Code(0x70, 0,
				huge)...)
		}),
			meter.ErrTooLarge},
		{"5 tables", with(func(m *asm.Module) {
			for range 5 {
				m.Table(1)
			}
		}), meter.ErrTooLarge},
		{"4 billion exports", section(7, huge...), meter.ErrMalformed},
		{"4 billion elements", section(9, asm.Code(1, 1, 0, huge)...), meter.ErrMalformed},
		{"4 billion bytes of data", section(11, asm.Code(1, 1, huge)...), meter.ErrMalformed},
		{"4 billion bytes of code", section(10, asm.Code(1, huge, 0, 0, 0, 0)...),
			meter.ErrMalformed},
		{"4 billion locals", with(func(m *asm.Module) {
			m.RawFunc(nil, nil, asm.Code(1, huge, asm.I32, asm.End))
		}), meter.ErrTooLarge},
		{"4 billion branches", one(asm.I32Const(0), 0x0e, huge), meter.ErrMalformed},
		{"many loops over many locals", hard(101, 1, 99), meter.ErrTooLarge},
		{"many loops", hard(501, 1, 1), meter.ErrTooLarge},
		{"deep loops", one(bytes.Repeat(asm.Loop(asm.Empty), 51), bytes.Repeat([]byte{asm.End}, 51)),
			meter.ErrTooLarge},
		{"many branches over many locals", hard(1, 5000, 1600), meter.ErrTooLarge},
		{"many branches", hard(1, 20_001, 1), meter.ErrTooLarge},
		{"many large branch tables", one(bytes.Repeat(asm.Code(asm.Block(asm.Empty), asm.I32Const(0),
			asm.BrTable(make([]uint32, 1001)...), asm.End), 200)), meter.ErrTooLarge},
		{"many functions with many loops", hard(100, 1, 99, 21), meter.ErrTooLarge},
		{"many functions with many branches", hard(1, 5000, 1400, 11), meter.ErrTooLarge},
		{"deep nesting", one(bytes.Repeat(asm.Block(asm.Empty), meter.NestingMax+1)),
			meter.ErrTooLarge},
		{"a large function", one(bytes.Repeat([]byte{asm.Nop}, meter.FunctionBytesMax)),
			meter.ErrTooLarge},
		{"a branch out of the function", one(asm.Br(1)), meter.ErrMalformed},
		{"a table branch out of the function", one(asm.I32Const(0), asm.BrTable(7, 0)),
			meter.ErrMalformed},
		{"code after the end", one(asm.End, asm.Nop), meter.ErrMalformed},
		{"no instruction", one(0x27), meter.ErrMalformed},
		{"a number of 6 bytes", one(0x20, 0x80, 0x80, 0x80, 0x80, 0x80, 0), meter.ErrMalformed},
		{"a number over 32 bits", one(0x20, 0xff, 0xff, 0xff, 0xff, 0x7f), meter.ErrMalformed},
		{"function without body", section(3, 1, 0), meter.ErrMalformed},
		{"export of nothing", with(func(m *asm.Module) { m.ExportFunc("f", 3) }),
			meter.ErrMalformed},
		{"a name that is no text", with(func(m *asm.Module) { m.ExportFunc("\xff", 0) }),
			meter.ErrMalformed},
	}
	for _, c := range cases {
		if _, err := meter.Parse(c.wasm); !errors.Is(err, c.want) {
			t.Errorf("%s: %v; want %v", c.name, err, c.want)
		}
	}
}

// TestCutShort cuts a module after every byte: only the cuts between sections are modules still.
func TestCutShort(t *testing.T) {
	t.Parallel()
	whole := rich()
	metered(t, whole)
	for n := range whole {
		m, err := meter.Parse(whole[:n])
		if err != nil {
			continue
		}
		if err := validate(t, m.Sanitized()); err == nil {
			if _, err := m.Meter(); err != nil {
				t.Errorf("cut after %d bytes: valid, but: %v", n, err)
			}
		}
	}
}

// FuzzParse: whatever the bytes, nothing panics, and what an engine finds valid is valid still
// once it is rewritten.
func FuzzParse(f *testing.F) {
	f.Add(rich())
	f.Add(dispatch())
	f.Add(caller())
	f.Fuzz(func(t *testing.T, wasm []byte) {
		m, err := meter.Parse(wasm)
		if err != nil || validate(t, m.Sanitized()) != nil {
			return
		}
		out, err := m.Meter()
		if err != nil {
			t.Fatalf("a valid module cannot be metered: %v", err)
		}
		if err := validate(t, out.Wasm); err != nil {
			t.Fatalf("the metered module is not valid: %v", err)
		}
	})
}
