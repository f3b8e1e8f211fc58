package sim

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/exec"
	"github.com/tierd/tierd/runtime/plugin"
	"github.com/tierd/tierd/runtime/tier"
)

// moods are what the plugin imp can be told to do for a batch.
var moods = []string{"none", "score", "any", "hold", "keep", "trap", "spin", "hoard", "recurse",
	"chatter", "garbage"}

// imps gives sets of the plugin imp, each loaded once: for the moods given, with the seed.
var imps = struct {
	sync.Mutex
	sets map[string]*plugin.Set
}{sets: map[string]*plugin.Set{}}

func impSet(t interface{ Fatal(...any) }, seed int, moods ...string) *plugin.Set {
	config := fmt.Sprintf(`{"moods": [%q], "seed": %d}`, strings.Join(moods, `", "`), seed)
	config = strings.ReplaceAll(config, `\"`, `"`)
	imps.Lock()
	defer imps.Unlock()
	if set := imps.sets[config]; set != nil {
		return set
	}
	wasm, err := os.ReadFile("../testdata/plugins/c-imp.wasm")
	if err != nil {
		t.Fatal(err)
	}
	set, err := plugin.Load([]plugin.Spec{{Name: "imp", Wasm: wasm, SHA256: plugin.Digest(wasm),
		Config: []byte(config)}}, plugin.Options{
		Limits: plugin.Limits{MemoryPages: 16, BatchFuel: 300_000, SegmentFuel: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	imps.sets[config] = set
	return set
}

// gated asks the gate about the segments, as a deletion would, and returns which may go.
func gated(t *rapid.T, w *World, id tier.LogID, list []engine.DeleteCandidate) []tier.Range {
	asked, err := w.process.exec.PlanLocal(context.Background(), engine.Delete{Log: id,
		Source: SourceName, Action: tier.DeleteLocal, Segments: list}, exec.Question{})
	if err != nil {
		t.Fatal(err)
	}
	var out []tier.Range
	for _, a := range asked[0] {
		if a.Verdict.Delete {
			out = append(out, a.Range)
		}
	}
	return out
}

// TestPluginsAreContained lets chance write histories with plugins that trap, spin, recurse, answer
// garbage, hold and keep, and change while the process runs, stops and starts again. No promise is
// broken; what engine and gate let go is never more than without plugins; and in the end everything
// is copied, and deleted but for what is kept, whatever the plugin does.
func TestPluginsAreContained(t *testing.T) {
	t.Parallel()
	fewer := 0
	rapid.Check(t, func(t *rapid.T) {
		c := testConfig()
		table := testTable
		table.TTL = 0
		c.Tables = func(name string) (tier.Table, bool) {
			table := table
			table.Name = name
			return table, true
		}
		c.HoldMax = 24 * time.Hour
		mood := func() *plugin.Set {
			some := rapid.SliceOfN(rapid.SampledFrom(moods), 1, 3).Draw(t, "moods")
			return impSet(t, rapid.IntRange(0, 3).Draw(t, "seed"), some...)
		}
		c.Plugins = mood()
		w, err := NewWorld(c, scenarioStart)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		o := w.Observe()
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		must(w.Start())
		log := func() tier.LogID { return rapid.SampledFrom(logsOf).Draw(t, "log") }
		t.Repeat(map[string]func(*rapid.T){
			"rolls": func(t *rapid.T) {
				must(w.Append(log(), rapid.IntRange(1, 3).Draw(t, "segments")))
			},
			"rewrites": func(t *rapid.T) {
				id := log()
				bases, err := w.Bases(id)
				must(err)
				if len(bases) > 1 {
					w.Advance(time.Millisecond)
					must(w.Write(id, bases[0], Content(id, bases[0], 2)))
				}
			},
			"scans": func(t *rapid.T) {
				_, err := w.Scan()
				must(err)
				w.step(engine.Tick{})
			},
			"performs": func(t *rapid.T) {
				if n := len(w.Queued()); n > 0 {
					must(w.Perform(rapid.IntRange(0, n-1).Draw(t, "effect")))
				}
			},
			"runs": func(t *rapid.T) { must(w.Run()) },
			"waits": func(t *rapid.T) {
				w.Advance(time.Duration(rapid.IntRange(1, 200).Draw(t, "minutes")) * time.Minute)
			},
			"goes back": func(t *rapid.T) { w.Advance(-time.Hour) },
			"stops": func(t *rapid.T) {
				if rapid.Bool().Draw(t, "the process alone") {
					w.Kill()
				} else {
					w.Crash(func(label string, n int) int { return rapid.IntRange(0, n-1).Draw(t, label) })
				}
				must(w.Start())
			},
			"changes its plugin": func(t *rapid.T) {
				w.Config.Plugins = nil
				if rapid.IntRange(0, 4).Draw(t, "none") > 0 {
					w.Config.Plugins = mood()
				}
				must(w.Reload())
			},
			"": func(t *rapid.T) {
				if v := o.Violations(); len(v) > 0 {
					t.Fatal(v[0])
				}
				for _, id := range logsOf {
					with, without := w.Engine().Deletable(id, true), w.Engine().Deletable(id, false)
					if len(with) == len(without) {
						continue
					}
					fewer++
					may := gated(t, w, id, without)
					for _, r := range gated(t, w, id, with) {
						if !slices.Contains(may, r) {
							t.Fatalf("%s of %s may go with its plugins, and not without", r, id)
						}
					}
				}
			},
		})
		last := rapid.SampledFrom([]string{"score", "hold", "trap", "spin", "hoard", "recurse",
			"chatter", "garbage"}).Draw(t, "the last mood")
		w.Config.Plugins = impSet(t, 1, last)
		must(w.Reload())
		w.Advance(200 * time.Hour) // longer than any hold
		for range 8 {
			must(w.Run())
			w.Advance(time.Minute)
		}
		o.Quiet()
		if v := o.Violations(); len(v) > 0 {
			t.Fatalf("in the end, with the mood %s: %s", last, v[0])
		}
	})
	if fewer == 0 && !testing.Short() { // -short tries a fifth of the histories
		t.Error("no plugin ever kept anything: the test shows nothing")
	}
}

// TestCopiesFollowAPlugin: with the real host, from the scan to the objects in the store.
func TestCopiesFollowAPlugin(t *testing.T) {
	t.Parallel()
	wasm, err := os.ReadFile("../testdata/plugins/c-drain.wasm")
	if err != nil {
		t.Fatal(err)
	}
	set, err := plugin.Load([]plugin.Spec{{Name: "drain", Wasm: wasm, SHA256: plugin.Digest(wasm),
		Config: []byte(`{"node": "sim", "first": ["payroll"]}`)}}, plugin.Options{Node: "sim"})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	defer r.w.Close()
	r.w.Config.Plugins = set
	var got []string
	r.w.Trace = func(f engine.Effect, _ engine.Result) {
		if f, ok := f.(engine.Copy); ok {
			got = append(got, fmt.Sprintf("%s@%d", f.Log, f.Segment.Base))
		}
	}
	must(r.w.Start())
	for _, id := range logsOf {
		must(r.w.Append(id, 3))
	}
	must(r.w.Run())
	want := slices.Clone(got)
	slices.SortStableFunc(want, func(a, b string) int {
		return strings.Compare(b[:strings.IndexByte(b, '/')], a[:strings.IndexByte(a, '/')])
	})
	if len(got) < 6 || !slices.Equal(got, want) || !strings.HasPrefix(got[0], "payroll") {
		t.Errorf("copied in the order %v", got)
	}
}
