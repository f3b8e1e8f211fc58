package plugin

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/plugin/internal/asm"
)

// kinds returns the kinds of a result's faults.
func kinds(r *Result) (out []FaultKind) {
	for _, f := range r.Faults {
		out = append(out, f.Kind)
	}
	return out
}

// TestGrowthStopsAtTheLimit: a plugin that asks for memory without end sees -1.
func TestGrowthStopsAtTheLimit(t *testing.T) {
	t.Parallel()
	w := worker(t, Options{Limits: Limits{MemoryPages: 6}}, with(func(g *guest) {
		g.choose = append([]any{
			asm.Block(asm.Empty), asm.Loop(asm.Empty), asm.I32Const(1), asm.MemoryGrow, 0,
			asm.I32Const(-1), 0x46, asm.BrIf(1), asm.Br(0), asm.End, asm.End, // until it is -1
			asm.I32Const(outputAt), asm.MemorySize, 0, asm.I64ExtendU, asm.I64Store(0)},
			usualChoice()...)
	}))
	if r := ask(w, batch(1)); len(r.Faults) != 0 || r.scores[0][0] != 6 {
		t.Errorf("faults %v, pages %d; want 6", r.Faults, r.scores[0])
	}
}

// counting is a plugin that answers its first n batches with their number, and then traps.
func counting(n int32) []byte {
	return with(func(g *guest) {
		calls := g.Global(asm.I32, asm.I32Const(0))
		g.choose = append([]any{
			asm.GlobalGet(calls), asm.I32Const(1), asm.I32Add, asm.LocalTee(2),
			asm.GlobalSet(calls),
			asm.I32Const(n), asm.LocalGet(2), asm.I32LtU, asm.If(asm.Empty), asm.Unreachable,
			asm.End,
			asm.I32Const(outputAt), asm.LocalGet(2), asm.I64ExtendU, asm.I64Store(0)},
			usualChoice()...)
	})
}

// TestBackoff: a plugin that failed rests for a delay that doubles, and comes back afresh.
func TestBackoff(t *testing.T) {
	t.Parallel()
	limits := quick
	limits.BackoffMin, limits.BackoffMax = time.Second, 5*time.Second
	w := worker(t, Options{Limits: limits}, counting(2))
	b := batch(1)
	at := func(after time.Duration, wantKind FaultKind, wantScore int64, wantUntil time.Duration) {
		t.Helper()
		b.Now = epoch.Add(after)
		r := ask(w, b)
		if wantKind == "" {
			if len(r.Faults) != 0 || r.scores[0][0] != wantScore {
				t.Errorf("after %s: %v, faults %v; want %d", after, r.scores[0], r.Faults,
					wantScore)
			}
			return
		}
		if len(r.Faults) != 1 || r.Faults[0].Kind != wantKind ||
			r.Faults[0].Until != epoch.Add(wantUntil) {
			t.Errorf("after %s: faults %+v; want %s until %s", after, r.Faults, wantKind, wantUntil)
		}
	}
	s := time.Second
	at(0, "", 1, 0)
	at(0, "", 2, 0)
	at(0, FaultTrap, 0, s)
	at(s/2, FaultBackoff, 0, s)
	at(s, "", 1, 0) // afresh
	at(s, "", 2, 0)
	at(s, FaultTrap, 0, 2*s) // it had worked: the delay begins anew
	w.slots[0].code.limits.BatchFuel = -1 << 20
	at(2*s, FaultFuel, 0, 2*s+2*s)
	at(4*s, FaultFuel, 0, 4*s+4*s)
	at(8*s, FaultFuel, 0, 8*s+5*s)               // the longest delay
	at(8*s-limits.BackoffMax, FaultFuel, 0, 8*s) // the clock was set back: it is asked again
	r := ask(w, b)
	if text := r.Faults[0].Reason().Text; !strings.HasPrefix(text,
		"plugin p0 gave no answer (backoff), the built-in order serves: fuel: it used up its ") {
		t.Errorf("reason %q", text)
	}
}

// TestAnswersStandByPlugin: what each plugin says of each segment, extremes included, comes back as
// it was said.
func TestAnswersStandByPlugin(t *testing.T) {
	t.Parallel()
	const least, most = math.MinInt64, math.MaxInt64
	n, h, k := ActionNone, ActionHold, ActionKeep
	w := worker(t, Options{}, says([]int64{1, 9, least, most}, n, h, n, k),
		says([]int64{5, 0, most, least}, n, h, k, h))
	plugins, scores, holds, keeps := ask(w, batch(3, 1)).Columns()
	if !slices.Equal(plugins, []string{"p0", "p1"}) ||
		!slices.Equal(scores, []int64{1, 5, 9, 0, least, most, most, least}) ||
		!slices.Equal(holds, []uint16{0, 0b11, 0, 0b10}) ||
		!slices.Equal(keeps, []uint16{0, 0, 0b10, 0b01}) {
		t.Errorf("plugins %q, scores %d, holds %b, keeps %b", plugins, scores, holds, keeps)
	}
}

// TestWorkerWithoutPlugins, and with nothing to judge.
func TestWorkerWithoutPlugins(t *testing.T) {
	t.Parallel()
	r := ask(worker(t, Options{}), batch(2))
	if r.Len() != 2 || len(r.scores) != 0 || len(r.Faults) != 0 {
		t.Errorf("without plugins: %+v", r)
	}
	w := worker(t, Options{}, counting(0)) // traps when it is asked at all
	if r := ask(w, batch()); r.Len() != 0 || len(r.Faults) != 0 {
		t.Errorf("without segments: %+v", r)
	}
	if r := ask(w, batch(0, 0)); r.Len() != 0 || len(r.Faults) != 0 {
		t.Errorf("with empty logs: %+v", r)
	}
}

// TestWatchdog: an answer that took too long is dropped, and who runs can be seen meanwhile.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	var now time.Duration
	var w *Worker
	var seen string
	wasm := with(func(g *guest) {
		f := g.ImportFunc("tierd", "log", asm.Types(asm.I32, asm.I32), nil)
		g.Data(0, []byte("late"))
		g.choose = append([]any{asm.I32Const(0), asm.I32Const(4), asm.Call(f)}, usualChoice()...)
	})
	slow := 2 * time.Second
	w = worker(t, Options{
		Limits: Limits{WallMax: 2 * time.Second},
		Clock:  func() time.Duration { return now },
		Log: func(l Line) {
			name, since, ok := w.Running()
			seen = fmt.Sprintf("%s since %s, %v: %s", name, since, ok, l.Text)
			now += slow
		},
	}, wasm)
	now = 7 * time.Second
	if r := ask(w, batch(1)); len(r.Faults) != 0 {
		t.Errorf("in time: %v", r.Faults)
	}
	if want := "p0 since 7s, true: late"; seen != want {
		t.Errorf("while it ran: %q, want %q", seen, want)
	}
	if _, _, ok := w.Running(); ok {
		t.Error("it runs still")
	}
	slow++
	r := ask(w, batch(1))
	if len(r.Faults) != 1 || r.Faults[0].Kind != FaultTime ||
		r.Faults[0].Text != "its answer took 2s, the limit is 2s" {
		t.Errorf("too late: %+v", r.Faults)
	}
}

// TestLogIsBounded: lines are cut, cleaned and rationed.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	var lines []Line
	long := "tab\tbell\a bad\xff " + strings.Repeat("x", 1000)
	wasm := with(func(g *guest) {
		f := g.ImportFunc("tierd", "log", asm.Types(asm.I32, asm.I32), nil)
		g.Data(2048, []byte(long))
		line := asm.Code(asm.I32Const(2048), asm.I32Const(int32(len(long))), asm.Call(f))
		nowhere := asm.Code(asm.I32Const(-1), asm.I32Const(8), asm.Call(f))
		g.choose = append([]any{nowhere, line, line, line, line, line}, usualChoice()...)
	})
	limits := quick
	limits.LogLineBytes, limits.LogLinesBurst, limits.LogLinesPerMin = 40, 3, 60
	w := worker(t, Options{Limits: limits, Log: func(l Line) { lines = append(lines, l) }}, wasm)
	b := batch(1)
	ask(w, b)
	b.Now = b.Now.Add(time.Second)
	ask(w, b)
	want := Line{Plugin: "p0", Text: "tab bell  bad\uFFFD " + strings.Repeat("x", 40-15)}
	late := want
	late.Dropped = 2
	if !slices.Equal(lines, []Line{want, want, want, late}) {
		t.Errorf("lines %+v", lines)
	}
}

// TestTablesConfigureAfresh: an instance knows the tables of the batch that it is asked about.
func TestTablesConfigureAfresh(t *testing.T) {
	t.Parallel()
	wasm := with(func(g *guest) { // its score is the size of the configuration
		size := g.Global(asm.I32, asm.I32Const(0))
		g.configure = []any{asm.LocalGet(1), asm.GlobalSet(size), asm.I32Const(0)}
		g.choose = append([]any{asm.I32Const(outputAt), asm.GlobalGet(size), asm.I64ExtendU,
			asm.I64Store(0)},
			usualChoice()...)
	})
	w := worker(t, Options{}, wasm)
	first, err := NewTables(nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := NewTables([]Table{{Name: "orders", Labels: map[string]string{"k": "v"}},
		{Name: "b"}})
	if err != nil {
		t.Fatal(err)
	}
	b := batch(1)
	sizes := map[*Tables]int64{}
	for _, tables := range []*Tables{nil, first, second, first, second} {
		b.Tables = tables
		before := w.slots[0].inst
		size := ask(w, b).scores[0][0]
		if old, ok := sizes[tables]; ok && old != size {
			t.Errorf("the configuration has %d bytes, and had %d", size, old)
		}
		sizes[tables] = size
		if w.slots[0].inst == before {
			t.Error("the instance was not made afresh")
		}
		before = w.slots[0].inst
		if ask(w, b); w.slots[0].inst != before {
			t.Error("the instance was made afresh for the same tables")
		}
	}
	extra := int64(len(`{"name":"orders","labels":{"k":"v"}},{"name":"b","labels":{}}`))
	if sizes[nil] != sizes[first] || sizes[second] != sizes[first]+extra {
		t.Errorf("sizes %v", sizes)
	}
	if second.Index("orders") != 0 || second.Index("b") != 1 || second.Index("c") != -1 ||
		(*Tables)(nil).Index("b") != -1 {
		t.Error("indices of tables")
	}
}

// TestNoAllocationPerSegment: once warm, a batch allocates nothing, however large.
//
//tidy:parallel AllocsPerRun counts what other goroutines allocate too
func TestNoAllocationPerSegment(t *testing.T) {
	w := worker(t, Options{Clock: func() time.Duration { return 0 }}, says([]int64{1}), says(nil))
	for _, n := range []int{10, 2000} {
		b, r := batch(n, n/10), &Result{}
		w.Select(b, r)
		if got := testing.AllocsPerRun(20, func() { w.Select(b, r) }); got != 0 ||
			len(r.Faults) != 0 {
			t.Errorf("%d segments: %v allocations, faults %v", n, got, r.Faults)
		}
	}
}

// TestWorkersInParallel: workers of one set have states of their own.
func TestWorkersInParallel(t *testing.T) {
	t.Parallel()
	s, err := Load([]Spec{spec("p", counting(50))}, Options{Limits: quick})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		w := s.NewWorker()
		all.Go(func() {
			defer w.Close()
			b, r := batch(3), &Result{}
			for i := range int64(50) {
				if w.Select(b, r); len(r.Faults) != 0 || r.scores[0][0] != i+1 {
					t.Errorf("batch %d: %v, faults %v", i, r.scores[0], r.Faults)
				}
			}
			if w.Select(b, r); !slices.Equal(kinds(r), []FaultKind{FaultTrap}) {
				t.Errorf("faults %v", r.Faults)
			}
		})
	}
	all.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
