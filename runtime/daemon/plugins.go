package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tierd/tierd/runtime/advice"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/plugin"
	"github.com/tierd/tierd/runtime/tier"
)

// pluginCache is the directory of compiled plugins in data_dir. It holds code that is executed.
const pluginCache = "plugin-cache"

// selectEvery is how often plugins are asked again about what they held or kept, and at most how
// long a round of questions waits for the next.
const selectEvery = time.Minute

// selectPatience is how long an answer of the plugins is waited for. It is far beyond what their
// fuel lasts on any machine; whoever takes longer is not answering.
const selectPatience = 10 * time.Second

// selector asks the plugins of one generation, one question at a time, on a goroutine that nothing
// waits for longer than its patience.
type selector struct {
	set      *plugin.Set
	asker    *advice.Asker // of the run that has the turn
	patience time.Duration
	told     func(plugins []string, r *plugin.Result)
	// turn is taken by a run, which may outlast the wait for it, and for ever by close.
	turn chan struct{}

	mu     sync.Mutex // guards what follows
	faults []plugin.Fault
	late   *tier.Reason // why the last question had no answer at all
}

// loadPlugins loads the plugins of a generation, all or none. frozen leaves their cache as it is.
func (d *Daemon) loadPlugins(g *generation, frozen bool) error {
	modules := g.modules
	g.modules = nil
	if len(g.config.Plugins) == 0 {
		return nil
	}
	began := d.opts.Now()
	set, err := loadSet(g.config, modules, plugin.Options{
		CacheDir: filepath.Join(g.config.DataDir, pluginCache), CacheFrozen: frozen,
		Log: func(l plugin.Line) {
			d.log.Info("plugin", "plugin", l.Plugin, "line", l.Text, "dropped_before", l.Dropped)
		},
		Clock: func() time.Duration { return time.Since(began) },
	})
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	if frozen {
		level = slog.LevelDebug // a command that only looks has nothing to tell of it
	}
	for _, p := range set.Plugins() {
		d.log.Log(context.Background(), level, "plugin loaded", "plugin", p.Name,
			"sha256", p.SHA256, "from_cache", p.FromCache)
		if p.CacheErr != nil {
			d.log.Warn("the cache of plugins cannot be used", "plugin", p.Name, "err", p.CacheErr)
		}
	}
	g.plugins = &selector{set: set, patience: selectPatience, turn: make(chan struct{}, 1),
		told: d.toldByPlugins,
		asker: advice.New(set, advice.Config{Now: d.now, Disk: d.sourceDisk,
			Tables: func() []plugin.Table { return d.pluginTables(g.config) }})}
	g.exec.Plugins = g.plugins.ask
	return nil
}

// checkPlugins reports what is wrong with the plugins of a configuration.
func checkPlugins(c *config.Config, modules [][]byte) error {
	if len(c.Plugins) == 0 {
		return nil
	}
	set, err := loadSet(c, modules, plugin.Options{
		CacheDir: filepath.Join(c.DataDir, pluginCache), CacheFrozen: true})
	if err != nil {
		return err
	}
	return set.Close()
}

// loadSet loads the modules with the plugins' configuration. The error is of type config.Problems.
func loadSet(c *config.Config, modules [][]byte, o plugin.Options) (*plugin.Set, error) {
	o.Node = nodeName()
	specs := make([]plugin.Spec, len(c.Plugins))
	for i, p := range c.Plugins {
		specs[i] = plugin.Spec{Name: p.Name, Wasm: modules[i], SHA256: p.SHA256, Config: p.Config}
	}
	set, err := plugin.Load(specs, o)
	if err != nil {
		return nil, c.PluginProblems(err, plugin.NameOf)
	}
	return set, nil
}

// closePlugins gives back what loadPlugins loaded.
func (g *generation) closePlugins() error {
	if g.plugins == nil {
		return nil
	}
	return g.plugins.close()
}

// enforcePlugins ends the plugins of the generation that is over, when their last run has ended,
// and forgets what the cache holds of them.
func (d *Daemon) enforcePlugins(old, g *generation) {
	if old != nil && old.plugins != nil {
		for _, name := range old.plugins.names() {
			if g.plugins == nil || !slices.Contains(g.plugins.names(), name) {
				d.metrics.plugins.forget(name)
			}
		}
		d.retiring.Go(func() {
			if err := old.plugins.close(); err != nil {
				d.log.Error("close plugins", "err", err)
			}
		})
	}
	if g.plugins == nil {
		return
	}
	if err := g.plugins.set.PruneCache(); err != nil {
		d.log.Warn("prune the cache of plugins", "err", err)
	}
}

// close waits for the run under way, which its fuel ends, and gives everything back. Nothing is
// asked any more.
func (s *selector) close() error {
	timer := time.NewTimer(2 * s.patience)
	defer timer.Stop()
	select {
	case s.turn <- struct{}{}:
		s.asker.Close()
		return s.set.Close()
	case <-timer.C: // what it waits for is no plugin, and ends with the process
		return fmt.Errorf("plugin %s has not come back", s.running())
	}
}

// ask asks all plugins, and waits for them no longer than its patience. An answer that comes later
// is dropped, and until it has come nothing else is asked.
func (s *selector) ask(ctx context.Context, f engine.Select) engine.Result {
	failed := func(format string, args ...any) engine.Result {
		r := tier.Reason{Code: tier.CodePluginFault,
			Text: fmt.Sprintf(format, args...) + "; the built-in order serves"}
		s.mu.Lock()
		s.late = &r
		s.mu.Unlock()
		return engine.Failed{Reason: r}
	}
	select {
	case s.turn <- struct{}{}:
	default:
		return failed("plugin %s has not come back yet", s.running())
	}
	done := make(chan engine.Selected, 1)
	go func() {
		defer func() { <-s.turn }()
		done <- s.run(f)
	}()
	timer := time.NewTimer(s.patience)
	defer timer.Stop()
	select {
	case r := <-done:
		s.mu.Lock()
		s.late = nil
		s.mu.Unlock()
		return r
	case <-ctx.Done():
		return failed("%v", ctx.Err())
	case <-timer.C:
		return failed("plugin %s did not answer within %s", s.running(), s.patience)
	}
}

// pluginsInForce are the plugins of the generation, for people.
func (g *generation) pluginsInForce() (out []api.Plugin) {
	for _, p := range g.config.Plugins {
		out = append(out, api.Plugin{Name: p.Name, SHA256: p.SHA256})
	}
	return out
}

func (s *selector) names() (out []string) {
	for _, p := range s.set.Plugins() {
		out = append(out, p.Name)
	}
	return out
}

// running names the plugin that runs now.
func (s *selector) running() string {
	if name, ok := s.asker.Running(); ok {
		return name
	}
	return "of this batch"
}

// run asks all plugins.
func (s *selector) run(f engine.Select) engine.Selected {
	answer, r := s.asker.Ask(f)
	s.mu.Lock()
	s.faults = slices.Clone(r.Faults)
	s.mu.Unlock()
	s.told(answer.Plugins, r)
	return answer
}

// reasons are why plugins gave no answer to the last question. They stay until a plugin answers or
// another generation is loaded, also where nothing is left to ask about: nobody has seen that it is
// well again.
func (s *selector) reasons(now tier.Time) (out []tier.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.late != nil {
		out = append(out, *s.late)
	}
	for _, f := range s.faults {
		r := f.Reason()
		if f.Until <= now {
			r.Until = 0
			r.Text += "; it is asked again where something is to be copied or deleted"
		}
		out = append(out, r)
	}
	return out
}

// pluginTables are the tables that there are now, with their labels, ascending by name.
func (d *Daemon) pluginTables(c *config.Config) []plugin.Table {
	names := d.tables()
	out := make([]plugin.Table, len(names))
	for i, name := range names {
		t, _ := c.Table(name)
		out[i] = plugin.Table{Name: name, Labels: t.Labels}
	}
	return out
}

// sourceDisk is the space of the disk that a source lies on; zeros where it is not known.
func (d *Daemon) sourceDisk(name string) (used, free int64) {
	s := d.sourceNamed(name)
	if s == nil {
		return 0, 0
	}
	used, free, err := d.opts.Disk(s.Path)
	if err != nil {
		return 0, 0 // the source's own trouble tells of it
	}
	return used, free
}

// toldByPlugins counts what came of a question, and writes what failed to the log.
func (d *Daemon) toldByPlugins(plugins []string, r *plugin.Result) {
	now := d.now()
	faults := map[string]*plugin.Fault{}
	for i := range r.Faults {
		f := &r.Faults[i]
		faults[f.Plugin] = f
		if f.Kind != plugin.FaultBackoff {
			d.log.Warn("plugin failed; the built-in order serves", "plugin", f.Plugin,
				"kind", f.Kind, "why", f.Text, "again_in", f.Until.Sub(now))
		}
	}
	for i, name := range plugins {
		d.metrics.plugins.told(name, faults[name], r.Len(), r.Fuel[i])
	}
}

// pluginReasons are the plugins that do not answer.
func (d *Daemon) pluginReasons() []tier.Reason {
	if s := d.gen.Load().plugins; s != nil {
		return s.reasons(d.now())
	}
	return nil
}

// advise asks the plugins once, for a look that starts nothing.
func (d *Daemon) advise(ctx context.Context) {
	s := d.gen.Load().plugins
	if s == nil {
		return
	}
	d.mu.Lock()
	candidates := d.engine.Candidates()
	d.mu.Unlock()
	for _, f := range candidates {
		if answer, ok := s.ask(ctx, f).(engine.Selected); ok {
			d.step(engine.Advised{Asked: f, Answer: answer})
		}
	}
}

// pluginMetrics are by plugin. Of one that is configured no more nothing is shown.
type pluginMetrics struct {
	batches, segments, fuel, failures *prometheus.CounterVec
	resting, success                  *prometheus.GaugeVec
}

func (m *pluginMetrics) told(name string, f *plugin.Fault, segments int, fuel int64) {
	switch {
	case f == nil:
		m.batches.WithLabelValues(name).Inc()
		m.segments.WithLabelValues(name).Add(float64(segments))
		m.fuel.WithLabelValues(name).Add(float64(fuel))
		m.resting.WithLabelValues(name).Set(0)
		m.success.WithLabelValues(name).SetToCurrentTime()
		return
	case f.Kind != plugin.FaultBackoff:
		m.failures.WithLabelValues(name, string(f.Kind)).Inc()
	}
	m.resting.WithLabelValues(name).Set(1)
}

func (m *pluginMetrics) forget(name string) {
	of := prometheus.Labels{"plugin": name}
	for _, v := range []*prometheus.CounterVec{m.batches, m.segments, m.fuel, m.failures} {
		v.DeletePartialMatch(of)
	}
	m.resting.DeletePartialMatch(of)
	m.success.DeletePartialMatch(of)
}
