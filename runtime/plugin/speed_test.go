package plugin

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/tierd/tierd/runtime/plugin/meter"
)

// speedSegments is the size of the batches that are measured.
const speedSegments = 10_000

func speedBatch(tb testing.TB) *Batch {
	b, err := benchBatch(speedSegments)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// hottest is what the hottest examples do, in the host: it fills the same columns and computes the
// same scores from them.
func hottest(b *Batch, in []byte, heat, scores []int64) {
	n := len(scores)
	b.encode(in, n)
	column := func(c Column) []byte { return in[dataStart+8*n*int(c-1):][:8*n] }
	newest, size, table := column(ColumnMaxTimestamp), column(ColumnBytes), column(ColumnTable)
	at := func(c []byte, i int) int64 { return int64(binary.LittleEndian.Uint64(c[8*i:])) }
	oldest := int64(b.Now) - 3600e9
	clear(heat)
	for i := range n {
		if at(newest, i) > oldest {
			heat[at(table, i)] += at(size, i)
		}
	}
	for i := range scores {
		scores[i] = heat[at(table, i)]
	}
}

// free stands in for the globals of a module that is not metered.
type free struct{ api.MutableGlobal }

func (free) Set(uint64)  {}
func (free) Get() uint64 { return 1 << 40 }

// unmetered makes an instance of a module as its author built it, for comparison.
func unmetered(tb testing.TB, wasm []byte, b *Batch) *instance {
	tb.Helper()
	ctx := context.Background()
	m, err := meter.Parse(wasm)
	if err != nil {
		tb.Fatal(err)
	}
	c := &code{name: "unmetered", limits: Limits{}.withDefaults()}
	if err := c.compile(m.Sanitized(), &Options{}, ""); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.close(); err != nil {
			tb.Error(err)
		}
	})
	i := &instance{code: c, fuel: free{}, stack: free{}, log: newLogger(c.limits)}
	i.ctx = context.WithValue(ctx, instanceKey{}, i)
	i.mod, err = c.runtime.InstantiateModule(i.ctx, c.compiled,
		wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		tb.Fatal(err)
	}
	if f := i.mod.ExportedFunction(exportInitialize); f != nil {
		if _, err := f.Call(i.ctx); err != nil {
			tb.Fatal(err)
		}
	}
	i.alloc, i.configure = i.mod.ExportedFunction(exportAlloc),
		i.mod.ExportedFunction(exportConfigure)
	i.selectFn = i.mod.ExportedFunction(exportSelect)
	text, err := c.setup(b.Tables)
	if err != nil {
		tb.Fatal(err)
	}
	pointer, view, fault := i.allocate(len(text))
	if fault != nil {
		tb.Fatal(fault)
	}
	copy(view, text)
	i.args = [2]uint64{uint64(pointer), uint64(len(text))}
	if fault := i.call(i.configure, 2, exportConfigure); fault != nil || i.args[0] != 0 {
		tb.Fatal(fault)
	}
	return i
}

// speedModules are the same example in three languages.
func speedModules(tb testing.TB) map[string][]byte {
	return map[string][]byte{
		"c":    readModule(tb, filepath.Join(modules, "c-hottest.wasm")),
		"rust": readModule(tb, filepath.Join(modules, "rust-hottest.wasm")),
		"go":   goPlugin(tb, "hottest"),
	}
}

// TestSpeedComparesLikeWithLike: what the benchmarks compare gives the same scores.
func TestSpeedComparesLikeWithLike(t *testing.T) {
	t.Parallel()
	b := speedBatch(t)
	n := b.Len()
	want := make([]int64, n)
	hottest(b, make([]byte, inputBytes(n)), make([]int64, b.Tables.Len()), want)
	if slices.Max(want) == slices.Min(want) {
		t.Fatal("all scores are the same")
	}
	for name, wasm := range speedModules(t) {
		r := ask(worker(t, Options{Limits: Limits{MemoryPages: 1024}}, wasm), b)
		if len(r.Faults) != 0 || !slices.Equal(r.scores[0], want) {
			t.Errorf("%s: other scores than the native loop; faults %v", name, r.Faults)
		}
		out, _, fault := unmetered(t, wasm, b).ask(b, n)
		if fault != nil {
			t.Fatal(fault)
		}
		for k := range want {
			if got := int64(binary.LittleEndian.Uint64(out[8*k:])); got != want[k] {
				t.Fatalf("%s unmetered: row %d has the score %d, want %d", name, k, got, want[k])
			}
		}
	}
}

// measure runs f, which handles n units, and reports the time of one in the fastest run, which a
// busy machine disturbs least.
func measure(b *testing.B, n int, unit string, f func()) {
	fastest := time.Duration(math.MaxInt64)
	for b.Loop() {
		began := time.Now()
		f()
		fastest = min(fastest, time.Since(began))
	}
	b.ReportMetric(float64(fastest.Nanoseconds())/float64(n), "min-ns/"+unit)
}

// BenchmarkBatch compares a batch of 10,000 segments through plugins with the native loop, and
// metered plugins with unmetered ones. The aims: C at most 4 times the native loop, Go at most 10
// times, fuel at most 30% more.
func BenchmarkBatch(b *testing.B) {
	in := speedBatch(b)
	n := in.Len()
	b.Run("native", func(b *testing.B) {
		buf, heat, scores := make([]byte, inputBytes(n)), make([]int64, in.Tables.Len()),
			make([]int64, n)
		measure(b, n, "segment", func() { hottest(in, buf, heat, scores) })
	})
	for name, wasm := range speedModules(b) {
		b.Run(name, func(b *testing.B) {
			w := worker(b, Options{Limits: Limits{MemoryPages: 1024}}, wasm)
			r := ask(w, in)
			b.ReportAllocs()
			measure(b, n, "segment", func() {
				if w.Select(in, r); len(r.Faults) != 0 {
					b.Fatal(r.Faults)
				}
			})
			used := w.slots[0].code.batchFuel(n) - int64(w.slots[0].inst.fuel.Get())
			b.ReportMetric(float64(used)/float64(n), "fuel/segment")
		})
		for _, kind := range []string{"metered", "unmetered"} {
			b.Run(name+"/guest-"+kind, func(b *testing.B) {
				benchGuest(b, wasm, in, n, kind == "metered")
			})
		}
	}
}

// benchGuest measures the plugin's own part: the batch stands in its memory already.
func benchGuest(b *testing.B, wasm []byte, in *Batch, n int, counted bool) {
	var i *instance
	if counted {
		w := worker(b, Options{Limits: Limits{MemoryPages: 1024}}, wasm)
		ask(w, in)
		i = w.slots[0].inst
	} else {
		i = unmetered(b, wasm, in)
	}
	pointer, view, fault := i.allocate(inputBytes(n))
	if fault != nil {
		b.Fatal(fault)
	}
	in.encode(view, n)
	measure(b, n, "segment", func() {
		i.refuel(1 << 40)
		i.args = [2]uint64{uint64(inputBytes(n)), 0}
		if fault := i.call(i.alloc, 1, exportAlloc); fault != nil {
			b.Fatal(fault)
		}
		i.args = [2]uint64{uint64(pointer), uint64(n)}
		if fault := i.call(i.selectFn, 2, exportSelect); fault != nil {
			b.Fatal(fault)
		}
	})
}

// BenchmarkParallel has one worker, and then two at a time, answer as many batches each: on two
// cores the time of a segment should halve. The fastest of many rounds counts, in which nobody else
// wanted the cores.
func BenchmarkParallel(b *testing.B) {
	in := speedBatch(b)
	for name, wasm := range speedModules(b) {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/workers=%d", name, workers), func(b *testing.B) {
				s, err := Load([]Spec{spec("p", wasm)}, Options{})
				if err != nil {
					b.Fatal(err)
				}
				var faults atomic.Int64
				list := make([]*Worker, workers)
				for k := range list {
					list[k] = s.NewWorker()
					ask(list[k], in) // makes the instance
				}
				const batches = 5 // of each worker in a round
				measure(b, workers*batches*in.Len(), "segment", func() {
					var wg sync.WaitGroup
					for _, w := range list {
						wg.Go(func() {
							r := &Result{}
							for range batches {
								w.Select(in, r)
								faults.Add(int64(len(r.Faults)))
							}
						})
					}
					wg.Wait()
				})
				for _, w := range list {
					w.Close()
				}
				if err := s.Close(); err != nil || faults.Load() != 0 {
					b.Errorf("%d faults, %v", faults.Load(), err)
				}
			})
		}
	}
}

// BenchmarkLoad measures how long a plugin takes to be ready, first and from the cache. The aim: a
// Go plugin from the cache in about 50 ms.
func BenchmarkLoad(b *testing.B) {
	for name, wasm := range speedModules(b) {
		for _, kind := range []string{"first", "cached"} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				dir := b.TempDir()
				measure(b, 1, "load", func() {
					o := Options{}
					if kind == "cached" {
						o.CacheDir = dir
					}
					s, err := Load([]Spec{spec("p", wasm)}, o)
					if err != nil {
						b.Fatal(err)
					}
					if err := s.Close(); err != nil {
						b.Fatal(err)
					}
				})
			})
		}
	}
}

// BenchmarkInstance measures what a fresh instance costs after a fault.
func BenchmarkInstance(b *testing.B) {
	for name, wasm := range speedModules(b) {
		b.Run(name, func(b *testing.B) {
			w := worker(b, Options{Limits: Limits{MemoryPages: 1024}}, wasm)
			measure(b, 1, "instance", func() {
				i, fault := w.slots[0].code.newInstance(nil, 0, w.slots[0].log)
				if fault != nil {
					b.Fatal(fault)
				}
				i.close()
			})
		})
	}
}
