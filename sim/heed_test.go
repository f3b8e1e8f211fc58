package sim

import (
	"os"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/plugin"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/sim/choose"
)

// said is what the plugin of a test asks for each segment.
type said struct {
	hold, keep bool
	score      func(l tier.LogID, base tier.Offset) int64
}

// heeded runs a history by hand, in which local segments stay so long and a plugin says what *say
// has, and returns how it fared.
func heeded(t *testing.T, ttl time.Duration, say *said, play func(w *World)) PluginHeeded {
	t.Helper()
	c := testConfig()
	c.Tables = func(name string) (tier.Table, bool) {
		table := testTable
		table.Name, table.LocalTTL = name, ttl
		return table, true
	}
	c.Plugins, c.HoldMax = loaded(t, `{"moods": ["none"]}`), 24*time.Hour
	w, err := NewWorld(c, scenarioStart)
	must(err)
	defer w.Close()
	h := newHeed(w)
	w.Stepped = h.stepped
	w.Trace = func(f engine.Effect, r engine.Result) {
		if f, ok := f.(engine.Select); ok {
			say.answer(f, r.(engine.Selected))
		}
		h.ended(f, r)
	}
	must(w.Start())
	play(w)
	return h.list[0]
}

// answer writes over what the module said.
func (s *said) answer(f engine.Select, r engine.Selected) {
	row := 0
	for _, l := range f.Logs {
		for _, x := range l.Segments {
			r.Holds[row], r.Keeps[row] = 0, 0
			if s.hold {
				r.Holds[row] = 1
			}
			if s.keep {
				r.Keeps[row] = 1
			}
			if s.score != nil {
				r.Scores[row] = s.score(l.Log, x.Base)
			}
			row++
		}
	}
}

// each lets every log of the world have three segments more, and everything be done.
func each(w *World) {
	for _, id := range logsOf {
		must(w.Append(id, 3))
	}
	must(w.Run())
}

// later lets so much time pass, and everything be done.
func later(w *World, d time.Duration) {
	w.Advance(d)
	must(w.Run())
}

// spare performs what is queued but for deletions.
func spare(w *World) {
	for i := 0; i < len(w.Queued()); {
		if _, deletes := w.Queued()[i].(engine.Delete); deletes {
			i++
			continue
		}
		must(w.Perform(i))
	}
}

// TestHeeded: a plugin counts as obeyed exactly where its word changed what the engine did, and as
// overruled exactly where the engine did otherwise.
func TestHeeded(t *testing.T) {
	t.Parallel()
	payroll := func(l tier.LogID, _ tier.Offset) int64 { return int64(len(l.Table)) }
	late := &said{}
	for _, tt := range []struct {
		name              string
		ttl               time.Duration
		say               *said
		play              func(w *World)
		obeyed, overruled bool
	}{
		{"nothing", time.Hour, &said{}, func(w *World) { each(w); later(w, 9*time.Hour) }, false, false},
		{"a hold", 1000 * time.Hour, &said{hold: true}, each, true, false},
		{"a hold that is over", 1000 * time.Hour, &said{hold: true},
			func(w *World) { each(w); later(w, 25*time.Hour) }, true, true},
		{"a keep of what is not due", 1000 * time.Hour, &said{keep: true}, each, false, false},
		{"a keep", time.Hour, &said{keep: true},
			func(w *World) { each(w); later(w, 9*time.Hour) }, true, false},
		{"a keep when the deletion has begun", 9 * time.Hour, late, func(w *World) {
			each(w)
			w.Advance(24 * time.Hour)
			for _, late.keep = range []bool{false, true} {
				w.Advance(2 * time.Minute)
				w.step(engine.Tick{})
				spare(w)
			}
			must(w.Run())
		}, true, true},
		{"an order against the built-in one", 1000 * time.Hour, &said{score: payroll}, each,
			true, false},
		{"the built-in order", 1000 * time.Hour,
			&said{score: func(l tier.LogID, _ tier.Offset) int64 { return -payroll(l, 0) }},
			func(w *World) { each(w) }, false, false},
		{"the newest of a log first", 1000 * time.Hour,
			&said{score: func(_ tier.LogID, base tier.Offset) int64 { return int64(base) }},
			func(w *World) { must(w.Append(orders, 3)); must(w.Run()) }, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := heeded(t, tt.ttl, tt.say, tt.play)
			if (got.Obeyed > 0) != tt.obeyed || (got.Overruled > 0) != tt.overruled {
				t.Errorf("%+v, want obeyed %t, overruled %t", got, tt.obeyed, tt.overruled)
			}
		})
	}
}

// TestHistoriesHeedPlugins: the histories of a project count by plugin, and both come about.
func TestHistoriesHeedPlugins(t *testing.T) {
	t.Parallel()
	p, err := Builtin()
	must(err)
	p.Unsettled = false
	p.Config.HoldMax = 24 * time.Hour
	p.Config.Plugins = loaded(t, `{"moods": ["none", "hold", "keep", "score"], "seed": 1}`)
	var sum PluginHeeded
	for seed := range uint64(12) {
		out := p.Run(choose.NewRandom(seed+1), Options{})
		if out.Violation != nil || len(out.Heeded) != 1 || out.Heeded[0].Name != "p" {
			t.Fatalf("seed %d: %+v", seed+1, out)
		}
		sum.Add(out.Heeded[0])
	}
	if sum.Obeyed == 0 || sum.Overruled == 0 {
		t.Errorf("%+v", sum)
	}
}

// TestUnheedable: what asks only to keep is overruled by nothing, and has no effect where nothing
// is deleted locally.
func TestUnheedable(t *testing.T) {
	t.Parallel()
	p := &Project{}
	p.Config.Delete = tier.LocalDeleteUnlink
	if a, b := p.Unheedable(PluginHeeded{Keeps: 1}); a != "" || b == "" {
		t.Errorf("only keeps: %q, %q", a, b)
	}
	for _, c := range []PluginHeeded{{}, {Keeps: 1, Holds: 1}, {Keeps: 1, Orders: 1}} {
		if a, b := p.Unheedable(c); a != "" || b != "" {
			t.Errorf("%+v: %q, %q", c, a, b)
		}
	}
	p.Config.Delete = tier.LocalDeleteNever
	if a, b := p.Unheedable(PluginHeeded{Keeps: 1}); a == "" || b == "" {
		t.Errorf("only keeps, and nothing is deleted: %q, %q", a, b)
	}
}

// loaded is the plugin imp, by the name p.
func loaded(t *testing.T, config string) *plugin.Set {
	t.Helper()
	wasm, err := os.ReadFile("../testdata/plugins/c-imp.wasm")
	must(err)
	set, err := plugin.Load([]plugin.Spec{{Name: "p", Wasm: wasm, SHA256: plugin.Digest(wasm),
		Config: []byte(config)}}, plugin.Options{Node: "sim"})
	must(err)
	t.Cleanup(func() { must(set.Close()) })
	return set
}

// TestTheOracleSeesWhatIsKept: where the engine is told otherwise than the plugin said, it puts up
// for deletion what is kept, and the oracle says so by its own record.
func TestTheOracleSeesWhatIsKept(t *testing.T) {
	t.Parallel()
	for _, lied := range []bool{false, true} {
		c := testConfig()
		c.Plugins = loaded(t, `{"moods": ["keep"]}`)
		w, err := NewWorld(c, scenarioStart)
		must(err)
		defer w.Close()
		o := w.Observe()
		w.Trace = func(f engine.Effect, r engine.Result) {
			if r, ok := r.(engine.Selected); ok && lied {
				clear(r.Keeps)
			}
		}
		must(w.Start())
		must(w.Append(orders, 3))
		must(w.Run())
		later(w, 2*time.Hour)
		v := o.Violations()
		if !lied && (len(v) > 0 || len(o.deletions) > 0) {
			t.Errorf("as it was said: %v, and %d segments went", v, len(o.deletions))
		}
		if lied && (len(v) == 0 || v[0].Property != PluginContainment || v[0].Segment != "orders/0@0") {
			t.Errorf("otherwise: the oracle says %v", v)
		}
	}
}
