package plugin

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/plugin/internal/asm"
)

func TestInspect(t *testing.T) {
	t.Parallel()
	wasm := with(func(g *guest) {
		g.ImportFunc("tierd", "log", asm.Types(asm.I32, asm.I32), nil)
		g.ExportFunc("tierd_abi_v2", g.Func(nil, nil, nil))
		g.Table(3)
	})
	in := Inspect(wasm, Limits{})
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"sha256":"` + Digest(wasm) + `","bytes":` + bytesOf(wasm) + `,"abi":["v2","v1"],` +
		`"exports":[{"name":"tierd_abi_v2","kind":"func","signature":"() -\u003e ()"},` +
		`{"name":"memory","kind":"memory"},` +
		`{"name":"tierd_abi_v1","kind":"func","signature":"() -\u003e ()"},` +
		`{"name":"tierd_alloc","kind":"func","signature":"(i32) -\u003e (i32)"},` +
		`{"name":"tierd_configure","kind":"func","signature":"(i32, i32) -\u003e (i32)"},` +
		`{"name":"tierd_select","kind":"func","signature":"(i32, i32) -\u003e (i64)"}],` +
		`"imports":[{"name":"tierd.log","kind":"func","signature":"(i32, i32) -\u003e ()"}],` +
		`"memory":{"pages_min":4,"pages_max":1024},"tables":1,"functions":5,"code_bytes":`
	if !strings.HasPrefix(string(text), want) ||
		!strings.HasSuffix(string(text), `"problems":[]}`) {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

func bytesOf(wasm []byte) string {
	text, err := json.Marshal(len(wasm))
	if err != nil {
		panic(err)
	}
	return string(text)
}

// TestInspectNamesProblems: a module that is refused is described all the same, with every reason.
func TestInspectNamesProblems(t *testing.T) {
	t.Parallel()
	in := Inspect(with(func(g *guest) {
		g.ImportFunc("env", "open", nil, nil)
		g.ImportFunc("env", "close", nil, nil)
		g.noMarker, g.noMemory = true, true
	}), Limits{})
	want := []string{
		"it does not export the function tierd_abi_v1: it is no tierd plugin",
		`it does not export its memory as "memory"`,
		"it imports env.open, which plugins are not given; there are tierd.log and the " +
			"functions of wasi_snapshot_preview1",
		"it imports env.close, which plugins are not given; there are tierd.log and the " +
			"functions of wasi_snapshot_preview1",
	}
	if !slices.Equal(in.Problems, want) || in.Funcs != 3 || in.Memory != nil {
		t.Errorf("%+v; want the problems %q", in, want)
	}
	if in := Inspect([]byte("no module"), Limits{}); len(in.Problems) != 1 || in.Bytes != 9 {
		t.Errorf("%+v", in)
	}
	in = Inspect(with(func(g *guest) { g.choose = []any{asm.I32Const(0)} }), Limits{})
	if len(in.Problems) != 1 || !strings.HasPrefix(in.Problems[0], "the module is not valid: ") {
		t.Errorf("%+v", in)
	}
}

// TestBench uses a clock that counts how often it is looked at.
func TestBench(t *testing.T) {
	t.Parallel()
	var ticks time.Duration
	clock := func() time.Duration { ticks += time.Millisecond; return ticks }
	r, err := Bench("p", (&guest{}).build(), BenchOptions{Segments: 200, Rounds: 3, Clock: clock,
		CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if r.Segments != 200 || r.Rounds != 3 || r.Load != time.Millisecond || r.CachedLoad != r.Load ||
		r.Batch != r.Load || r.PerSegment != 5000 || r.MemoryBytes != pages<<16 ||
		r.CallBytes != inputBytes(200) || r.FuelPerSegment <= 0 || r.FuelShare <= 0 {
		t.Errorf("%+v", r)
	}
	endless := with(func(g *guest) { g.choose = forever() })
	_, err = Bench("p", endless, BenchOptions{Segments: 200, Clock: clock, Limits: quick})
	if err == nil || !strings.HasPrefix(err.Error(), "batch 1: fuel: ") {
		t.Errorf("a plugin without end: %v", err)
	}
	_, err = Bench("p", nil, BenchOptions{Clock: clock})
	if err == nil || !strings.HasPrefix(err.Error(), "not a WebAssembly module") {
		t.Errorf("no module at all: %v", err)
	}
	picky := with(func(g *guest) {
		g.configure = []any{asm.LocalGet(1), asm.I32Const(5000), asm.I32LtU}
	})
	config := []byte(`{"long": "` + strings.Repeat("x", 5000) + `"}`)
	for _, config := range [][]byte{nil, config} {
		_, err := Bench("p", picky, BenchOptions{Segments: 10, Clock: clock, Config: config})
		if (err == nil) != (config != nil) {
			t.Errorf("with the configuration %s: %v", config, err)
		}
	}
}
