package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tierd/tierd/runtime/advice"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/plugin"
	"github.com/tierd/tierd/runtime/tier"
)

const modules = "../../testdata/plugins"

// plugin is an entry of "plugins" for a committed module.
func (s *site) plugin(name, module, config string) string {
	s.t.Helper()
	wasm, err := os.ReadFile(filepath.Join(modules, module))
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, module), wasm, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprintf("  - {name: %s, path: %s, sha256: \"%s\", config: %s}\n", name, module,
		plugin.Digest(wasm), config)
}

// imp is an entry for the plugin that behaves as its moods say.
func (s *site) imp(moods string) string {
	return s.plugin("imp", "c-imp.wasm", "{moods: ["+moods+"]}")
}

// drain is an entry for the plugin that has the tables copied in the order given.
func (s *site) drain(tables string) string {
	host, err := os.Hostname()
	if err != nil {
		s.t.Fatal(err)
	}
	return s.plugin("retire", "c-drain.wasm", fmt.Sprintf("{node: %q, first: [%s]}", host, tables))
}

// gathered are the metrics that are there, as name{label=value,...}: the value.
func gathered(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			name := f.GetName() + "{" + strings.Join(labels, ",") + "}"
			out[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return out
}

// codes are those of the reasons of all logs.
func codes(st *api.Status) (out []tier.Code) {
	for _, l := range st.Logs {
		for _, r := range l.Reasons {
			out = append(out, r.Code)
		}
	}
	return out
}

// TestAPluginOrdersCopies: the plan has the order that the plugin wants, with its name and scores,
// also where no daemon runs, and copies follow it.
func TestAPluginOrdersCopies(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.configure(siteConfig[:strings.Index(siteConfig, "copy:")] +
		"copy: {workers: 1}\nplugins:\n" + s.drain("payments, orders"))
	for _, log := range []string{"clicks/0", "orders/0", "payments/0"} {
		s.segments(log, 2)
	}
	if _, err := s.once(s.options()); err != nil {
		t.Fatalf("%v\n%s", err, s.log.String())
	}
	var copied []string
	for line := range strings.Lines(s.log.String()) {
		if _, what, ok := strings.Cut(line, `msg=copied what="copy of `); ok {
			copied = append(copied, strings.Fields(what)[0])
		}
	}
	want := []string{"payments/0", "payments/0", "orders/0", "orders/0", "clicks/0", "clicks/0"}
	if !slices.Equal(copied, want) {
		t.Errorf("copied %v, want %v", copied, want)
	}
	for _, log := range []string{"a/0", "orders/1", "payments/1"} {
		s.segments(log, 1)
	}
	b, done, err := Snapshot(t.Context(), s.options())
	if err != nil {
		t.Fatal(err)
	}
	plan, err := b.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var planned []string
	for _, c := range plan.Copies {
		planned = append(planned, fmt.Sprintf("%s %s", c.Log, c.Scores[0].Plugin))
	}
	if !slices.Equal(planned, []string{"payments/1 retire", "orders/1 retire", "a/0 retire"}) ||
		plan.Copies[0].Scores[0].Score <= plan.Copies[1].Scores[0].Score {
		t.Errorf("planned %+v", plan.Copies)
	}
	later := compare(t, b, &api.WhatIf{At: api.Time(tier.TimeOf(time.Now()).Add(time.Hour))})
	if !reflect.DeepEqual(later.Copies, plan.Copies) || later.CopiesTotal != plan.CopiesTotal {
		t.Errorf("planned in an hour %+v, want those of now", later.Copies)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(filepath.Join(s.dir, "data", pluginCache))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the cache: %v, %v", info, err)
	}
}

// TestAPluginHoldsAndKeeps: with its name, in whatever people ask.
func TestAPluginHoldsAndKeeps(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.configure(siteConfig + "plugins:\n" + s.imp("hold"))
	s.segments("orders/0", 2)
	opts := s.options()
	r := s.run(opts)
	has := func(code tier.Code) func() bool {
		return func() bool {
			st, err := r.Status(t.Context())
			return err == nil && slices.Contains(codes(st), code)
		}
	}
	s.until("the segments are held", has(tier.CodeHeld))
	x, err := r.Explain(t.Context(), orders0, 3)
	if err != nil {
		t.Fatal(err)
	}
	held := func(r api.Reason) bool {
		return r.Code == tier.CodeHeld && strings.Contains(r.Text, "the plugin imp") && r.Until != 0
	}
	if !slices.ContainsFunc(x.Decisions[0].Reasons, held) {
		t.Errorf("explained by %+v", x.Decisions)
	}
	plan, err := r.Plan(t.Context())
	if err != nil || len(plan.Held) != 1 || !held(plan.Held[0].Reason) || len(plan.Copies) != 0 {
		t.Errorf("plan %+v, %v", plan, err)
	}
	if len(s.store.Keys()) > 1 {
		t.Errorf("objects are there: %v", s.store.Keys())
	}
	s.configure(siteConfig + "plugins:\n" + s.imp("keep"))
	if err := r.reload(""); err != nil {
		t.Fatal(err)
	}
	s.until("the segments are kept", has(tier.CodeKept))
	if x, err = r.Explain(t.Context(), orders0, 3); err != nil {
		t.Fatal(err)
	}
	kept := func(r api.Reason) bool {
		return r.Code == tier.CodeKept && strings.Contains(r.Text, "the plugin imp")
	}
	if d := x.Decisions[0]; d.Verdict != api.Keep || !slices.ContainsFunc(d.Reasons, kept) {
		t.Errorf("explained by %+v", d)
	}
	plan, err = r.Plan(t.Context())
	if err != nil || len(plan.Deletions) != 0 || !slices.ContainsFunc(plan.Waiting,
		func(w api.PlannedWait) bool { return kept(w.Reason) && w.Log == "orders/0" }) {
		t.Errorf("plan %+v, %v", plan, err)
	}
	m := gathered(t, opts.Registry)
	if m["tierd_plugin_batches_total{plugin=imp}"] == 0 ||
		m["tierd_plugin_fuel_total{plugin=imp}"] == 0 ||
		m["tierd_plugin_kept_segments{table=orders}"] == 0 ||
		m["tierd_plugin_last_success_timestamp_seconds{plugin=imp}"] == 0 {
		t.Errorf("metrics %v", m)
	}
	if n := s.local("orders/0"); n != 3 {
		t.Errorf("%d segments are local, want all 3", n)
	}
	s.configure(siteConfig)
	if err := r.reload(""); err != nil {
		t.Fatal(err)
	}
	s.until("the segments are gone", func() bool { return s.local("orders/0") == 1 })
	if _, there := gathered(t, opts.Registry)["tierd_plugin_batches_total{plugin=imp}"]; there {
		t.Error("a plugin that is not configured any more has metrics")
	}
}

var orders0 = tier.LogID{Table: "orders", Name: "0"}

// TestABadPluginCostsNothingButItsOpinion: everything is copied and deleted, and it is told of.
func TestABadPluginCostsNothingButItsOpinion(t *testing.T) {
	t.Parallel()
	for mood, kind := range map[string]string{"spin": "fuel", "trap": "trap", "garbage": "action",
		"recurse": "stack"} {
		t.Run(mood, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.configure(siteConfig + "plugins:\n" + s.imp(mood))
			s.segments("orders/0", 2)
			opts := s.options()
			r, err := s.once(opts)
			if err != nil {
				t.Fatalf("%v\n%s", err, s.log.String())
			}
			if r.UncopiedSegments != 0 {
				t.Errorf("%+v, want everything copied", r.Progress)
			}
			if len(r.Alarms) == 0 || r.Alarms[0].Reason.Code != tier.CodePluginFault ||
				!strings.Contains(r.Alarms[0].Reason.Text, "plugin imp gave no answer") {
				t.Errorf("alarms %+v", r.Alarms)
			}
			// On a busy machine the policies may run out of time, which keeps.
			s.until("everything is deleted", func() bool {
				if s.local("orders/0") == 1 {
					return true
				}
				_, err := s.once(s.options())
				return err != nil
			})
			m := gathered(t, opts.Registry)
			if m["tierd_plugin_failures_total{kind="+kind+",plugin=imp}"] == 0 ||
				m["tierd_plugin_resting{plugin=imp}"] != 1 {
				t.Errorf("metrics %v", m)
			}
		})
	}
}

// TestABadPluginRefusesTheGeneration, with its place, on a reload and at the start; what runs goes
// on with the plugin that it has.
func TestABadPluginRefusesTheGeneration(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	good := siteConfig + "plugins:\n" + s.imp("hold")
	s.configure(good)
	s.segments("orders/0", 2)
	r := s.run(s.options())
	junk := []byte("\x00asm\x02\x00\x00\x00")
	s.put("junk.wasm", string(junk))
	s.put("empty.wasm", "")
	pin := func(name string, wasm []byte) string {
		return fmt.Sprintf("  - {name: %s, path: %s.wasm, sha256: \"%s\"}\n", name, name,
			plugin.Digest(wasm))
	}
	for name, c := range map[string]struct{ entry, want string }{
		"another version": {pin("junk", junk), "tierd.yaml:9:5: plugin junk: junk.wasm: not a "},
		"no module":       {pin("empty", nil), "tierd.yaml:9:5: plugin empty: empty.wasm: not a "},
		"another file": {pin("empty", junk), "tierd.yaml:9:45: plugin empty: empty.wasm is not the " +
			"file that sha256 pins; if you trust the file as it is: sha256: \"" +
			plugin.Digest(nil) + "\""},
		"refuses its configuration": {s.plugin("retire", "c-drain.wasm", "{}"),
			"tierd.yaml:9:5: plugin retire: c-drain.wasm: configure: it answered 1; it logged: " +
				"drain: config has no node; want the name of the node to drain"},
		"both are named": {pin("junk", junk) + pin("empty", nil), "tierd.yaml:10:5: plugin empty: "},
	} {
		s.configure(siteConfig + "plugins:\n" + c.entry)
		err := r.reload("")
		got := ""
		if err != nil {
			got = strings.ReplaceAll(err.Error(), s.dir+"/", "")
		}
		if !strings.Contains(got, c.want) || api.CodeOf(err) != api.CodeConfig {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
		if _, err := s.once(s.options()); err == nil {
			t.Errorf("%s: started", name)
		}
		if _, _, err := Check(s.path(), s.options().Host); err == nil {
			t.Errorf("%s: checked", name)
		}
		st, err := r.Status(t.Context())
		if err != nil || st.Generation.Number != 1 || st.Generation.Error == nil {
			t.Errorf("%s: generation %+v, %v", name, st.Generation, err)
		}
	}
	s.configure(good)
	if _, _, err := Check(s.path(), s.options().Host); err != nil {
		t.Error(err)
	}
	s.until("the old plugin still holds", func() bool {
		st, err := r.Status(t.Context())
		return err == nil && slices.Contains(codes(st), tier.CodeHeld)
	})
}

// TestAPluginIsNotWaitedForTooLong: a run that does not come back is given up and named, nothing is
// asked beside it, and its late answer is dropped.
func TestAPluginIsNotWaitedForTooLong(t *testing.T) {
	t.Parallel()
	wasm, err := os.ReadFile(filepath.Join(modules, "c-hottest.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	set, err := plugin.Load([]plugin.Spec{{Name: "slow", Wasm: wasm,
		SHA256: plugin.Digest(wasm)}}, plugin.Options{})
	if err != nil {
		t.Fatal(err)
	}
	release, told := make(chan struct{}), make(chan int, 8)
	s := &selector{set: set, patience: 20 * time.Millisecond, turn: make(chan struct{}, 1),
		told: func(_ []string, r *plugin.Result) { told <- r.Len() },
		asker: advice.New(set, advice.Config{
			Now:    func() tier.Time { return tier.TimeOf(time.Now()) },
			Tables: func() []plugin.Table { return nil },
			Disk: func(string) (used, free int64) {
				<-release // a disk that hangs
				return 1, 2
			}})}
	f := engine.Select{Logs: []engine.SelectLog{{Log: orders0, State: tier.Enabled,
		Segments: []engine.SelectSegment{{Range: tier.Range{Next: 10}, Bytes: 5}}}}}
	for _, want := range []string{"did not answer within 20ms", "has not come back yet"} {
		r, ok := s.ask(t.Context(), f).(engine.Failed)
		if !ok || !strings.Contains(r.Reason.Text, want) {
			t.Errorf("%+v, want %q", r, want)
		}
		if why := s.reasons(0); len(why) != 1 || why[0] != r.Reason {
			t.Errorf("shown is %+v, want %+v", why, r.Reason)
		}
	}
	if err := s.close(); err == nil {
		t.Error("closed under a run")
	}
	close(release)
	<-told
	s.patience = 10 * time.Second
	for {
		if r, ok := s.ask(t.Context(), f).(engine.Selected); ok {
			if len(r.Scores) != 1 || len(s.reasons(0)) != 0 {
				t.Errorf("%+v; shown is %+v", r, s.reasons(0))
			}
			break
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	s.ask(canceled, f) // may be either
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

// TestAFaultStaysWithItsTime: a plugin's fault is shown until it answers; once its rest is over
// nothing says that it is asked at that time, since there may be nothing to ask about.
func TestAFaultStaysWithItsTime(t *testing.T) {
	t.Parallel()
	const until = 1000
	s := &selector{faults: []plugin.Fault{{Plugin: "imp", Kind: plugin.FaultTrap, Text: "unreachable",
		Until: until}}}
	for now, want := range map[tier.Time]tier.Reason{
		until - 1: {Until: until, Text: "plugin imp gave no answer (trap), the built-in order serves: " +
			"unreachable"},
		until: {Text: "plugin imp gave no answer (trap), the built-in order serves: unreachable; " +
			"it is asked again where something is to be copied or deleted"},
	} {
		want.Code = tier.CodePluginFault
		if got := s.reasons(now); len(got) != 1 || got[0] != want {
			t.Errorf("at %d: %+v, want %+v", now, got, want)
		}
	}
}
