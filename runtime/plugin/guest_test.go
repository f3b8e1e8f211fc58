package plugin

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/plugin/internal/asm"
	"github.com/tierd/tierd/runtime/tier"
)

// The hand-made guests of these tests take their input at inputAt and answer at outputAt, within
// four pages of memory.
const (
	inputAt  = 1024
	outputAt = 3 << 16
	pages    = 4
)

// guest is a plugin in the making. The zero value answers every batch with the bytes at outputAt,
// zeros unless answer is set.
type guest struct {
	asm.Module
	answer                          []byte // what stands at outputAt to begin with
	alloc, configure, choose        []any  // code of the functions, if not the usual
	noMemory, noMarker              bool
	withoutAlloc, withoutSelect     bool
	withoutConfigure, strangeSelect bool
	initialize                      []any // code of _initialize, if there is to be one
	start                           []any // code of the start function, if there is to be one
}

// usualChoice answers with 9 bytes for each segment at outputAt. Its parameters are the input's
// address and the number of segments.
func usualChoice() []any {
	return answering(outputAt, asm.Code(asm.LocalGet(1), asm.I32Const(9), asm.I32Mul))
}

// answering answers with size bytes at the address, where size is code that leaves an i32.
func answering(at int64, size []byte) []any {
	return []any{asm.I64Const(at << 32), size, asm.I64ExtendU, asm.I64Or}
}

func (g *guest) build() []byte {
	i32, i64 := asm.Types(asm.I32), asm.Types(asm.I64)
	two := asm.Types(asm.I32, asm.I32)
	orElse := func(code []any, usual ...any) []any {
		if code == nil {
			return usual
		}
		return code
	}
	if !g.noMemory {
		g.Memory(pages, -1)
		g.Export("memory", 2, 0)
	}
	if !g.noMarker {
		g.ExportFunc("tierd_abi_v1", g.Func(nil, nil, nil))
	}
	if !g.withoutAlloc {
		g.ExportFunc("tierd_alloc", g.Func(i32, i32, nil,
			orElse(g.alloc, asm.I32Const(inputAt))...))
	}
	if !g.withoutConfigure {
		g.ExportFunc("tierd_configure", g.Func(two, i32, nil,
			orElse(g.configure, asm.I32Const(0))...))
	}
	if g.strangeSelect {
		g.ExportFunc("tierd_select", g.Func(i32, i32, nil, asm.I32Const(0)))
	} else if !g.withoutSelect {
		g.ExportFunc("tierd_select", g.Func(two, i64, i32, orElse(g.choose, usualChoice()...)...))
	}
	if g.initialize != nil {
		g.ExportFunc("_initialize", g.Func(nil, nil, nil, g.initialize...))
	}
	if g.start != nil {
		g.Start(g.Func(nil, nil, nil, g.start...))
	}
	if g.answer != nil {
		g.Data(outputAt, g.answer)
	}
	return g.Bytes()
}

// forever is code that does not end.
func forever(body ...any) []any {
	return []any{asm.Loop(asm.Empty), asm.Code(body...), asm.Br(0), asm.End, asm.Unreachable}
}

// says is a plugin that gives the scores and actions to whatever it is asked.
func says(scores []int64, actions ...Action) []byte {
	var out []byte
	for _, s := range scores {
		out = binary.LittleEndian.AppendUint64(out, uint64(s))
	}
	for i := range scores {
		a := ActionNone
		if i < len(actions) {
			a = actions[i]
		}
		out = append(out, byte(a))
	}
	return (&guest{answer: out}).build()
}

func spec(name string, wasm []byte) Spec {
	return Spec{Name: name, Wasm: wasm, SHA256: Digest(wasm)}
}

// quick are limits with which runaways end at once.
var quick = Limits{MemoryPages: 16, StartFuel: 100_000, BatchFuel: 300_000, SegmentFuel: 1000}

// worker loads plugins and returns a worker for them.
func worker(t testing.TB, o Options, wasm ...[]byte) *Worker {
	t.Helper()
	var specs []Spec
	for i, w := range wasm {
		specs = append(specs, spec(fmt.Sprintf("p%d", i), w))
	}
	if o.Limits == (Limits{}) {
		o.Limits = quick
	}
	large := func(w []byte) bool { return len(w) > 1<<20 }
	if o.CacheDir == "" && slices.ContainsFunc(wasm, large) {
		o.CacheDir = filepath.Join(work, "cache") // Go plugins take a second to compile
	}
	s, err := Load(specs, o)
	if err != nil {
		t.Fatal(err)
	}
	w := s.NewWorker()
	t.Cleanup(func() {
		w.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

var epoch = tier.TimeOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

// batch has the given numbers of segments in logs a/0, a/1, ...
func batch(counts ...int) *Batch {
	b := &Batch{Now: epoch}
	for i, n := range counts {
		l := Log{ID: tier.LogID{Table: "a", Name: fmt.Sprint(i)}, Table: -1, State: tier.Enabled}
		for k := range n {
			l.Segments = append(l.Segments, Segment{Local: true, Bytes: int64(1000 + k),
				Range: tier.Range{Base: tier.Offset(10 * k), Next: tier.Offset(10 * (k + 1))}})
		}
		b.Logs = append(b.Logs, l)
	}
	return b
}

// ask runs a batch and returns the result.
func ask(w *Worker, b *Batch) *Result {
	r := &Result{}
	w.Select(b, r)
	return r
}
