package advice

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/plugin"
	"github.com/tierd/tierd/runtime/tier"
)

// load loads a committed module.
func load(t *testing.T, module, config string) *plugin.Set {
	t.Helper()
	wasm, err := os.ReadFile("../../testdata/plugins/" + module)
	if err != nil {
		t.Fatal(err)
	}
	set, err := plugin.Load([]plugin.Spec{{Name: "p", Wasm: wasm, SHA256: plugin.Digest(wasm),
		Config: []byte(config)}}, plugin.Options{Node: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	return set
}

// question is about two logs of two tables, each with a copied segment and one that is not.
func question() engine.Select {
	segments := []engine.SelectSegment{
		{Range: tier.Range{Base: 0, Next: 10}, Bytes: 100, Birth: 50, Remote: true, Copied: true,
			Verified: true},
		{Range: tier.Range{Base: 10, Next: 20}, Bytes: 7, Birth: 60},
	}
	return engine.Select{Logs: []engine.SelectLog{
		{Log: tier.LogID{Table: "a", Name: "0"}, Source: "s", State: tier.Enabled, LocalBytes: 107,
			Segments: segments},
		{Log: tier.LogID{Table: "b", Name: "0"}, Source: "s", State: tier.Enabled, LocalBytes: 107,
			Segments: segments},
	}}
}

// TestAsk: plugins see the tables by their names, and what is copied; where the tables change, they
// are configured afresh.
func TestAsk(t *testing.T) {
	t.Parallel()
	tables := []plugin.Table{{Name: "a"}, {Name: "b", Labels: map[string]string{"x": "y"}}}
	asked := 0
	a := New(load(t, "c-drain.wasm", `{"node": "n1", "first": ["b"]}`), Config{
		Now: func() tier.Time { return 1000 }, Tables: func() []plugin.Table { return tables },
		Disk: func(source string) (used, free int64) {
			asked++
			return 1, int64(len(source))
		}})
	defer a.Close()
	const top = 1 << 50 // of the first table in drain
	for range 2 {
		got, r := a.Ask(question())
		if !slices.Equal(got.Scores, []int64{-7, -7, top - 7, top - 7}) || len(r.Faults) > 0 ||
			!slices.Equal(got.Plugins, []string{"p"}) || r.Fuel[0] == 0 {
			t.Errorf("%+v, %+v", got, r)
		}
	}
	if asked != 2 {
		t.Errorf("looked at the disk %d times, want once for each question", asked)
	}
	tables = []plugin.Table{{Name: "a"}}
	if got, _ := a.Ask(question()); got.Scores[3] != -7 {
		t.Errorf("scores %v of a table that is not there any more", got.Scores)
	}
	if _, ok := a.Running(); ok {
		t.Error("something runs")
	}
}

// TestBatch: every column of the question reaches the plugins.
func TestBatch(t *testing.T) {
	t.Parallel()
	a := &Asker{c: Config{Now: func() tier.Time { return 1000 },
		Disk: func(string) (used, free int64) { return 3, 4 }}}
	b := a.batch(question())
	l := b.Logs[1]
	want := plugin.Segment{Range: tier.Range{Base: 0, Next: 10}, Bytes: 100, Age: 950, Local: true,
		Remote: true, Copied: true, Verified: true}
	if l.Segments[0] != want || l.Table != -1 || l.LocalBytes != 107 || l.DiskUsedBytes != 3 ||
		l.DiskFreeBytes != 4 || l.State != tier.Enabled || b.Now != 1000 || b.Len() != 4 {
		t.Errorf("%+v", b)
	}
	if a.c.Now = (func() tier.Time { return 55 }); a.batch(question()).Logs[0].Segments[1].Age != 0 {
		t.Error("a segment of the future has an age")
	}
}

// TestAFaultHasNoSay: and it is told.
func TestAFaultHasNoSay(t *testing.T) {
	t.Parallel()
	a := New(load(t, "c-imp.wasm", `{"moods": ["trap"]}`), Config{
		Now:    func() tier.Time { return tier.TimeOf(time.Unix(1e9, 0)) },
		Tables: func() []plugin.Table { return nil },
		Disk:   func(string) (used, free int64) { return 0, 0 }})
	defer a.Close()
	got, r := a.Ask(question())
	if len(r.Faults) != 1 || !strings.Contains(r.Faults[0].Text, "unreachable") ||
		!slices.Equal(got.Scores, make([]int64, 4)) || !slices.Equal(got.Holds, make([]uint16, 4)) {
		t.Errorf("%+v, %+v", got, r.Faults)
	}
}
