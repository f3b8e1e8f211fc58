// Package advice puts the engine's questions to plugins, and their answers into the engine's words.
// The daemon and the simulator ask by the same code; what they wait for, and for how long, is
// their own.
package advice

import (
	"maps"
	"slices"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/plugin"
	"github.com/tierd/tierd/runtime/tier"
)

// Config is what an Asker knows beside the question. All fields are required.
type Config struct {
	Now func() tier.Time
	// Tables are the tables that there are now, with their labels, ascending by name.
	Tables func() []plugin.Table
	// Disk is the space of the disk that a source lies on, in bytes; zeros where it is not known.
	Disk func(source string) (used, free int64)
}

// Asker asks the plugins of one set, with instances of its own. One goroutine uses it at a time;
// only Running may be called at any time.
type Asker struct {
	c      Config
	worker *plugin.Worker
	listed []plugin.Table
	list   *plugin.Tables // of listed; every instance is configured with it
	result plugin.Result
}

// New returns an asker. It must be closed before the set is.
func New(set *plugin.Set, c Config) *Asker {
	return &Asker{c: c, worker: set.NewWorker()}
}

// Close discards the instances.
func (a *Asker) Close() { a.worker.Close() }

// Running names the plugin that runs now; ok is false if none does.
func (a *Asker) Running() (name string, ok bool) {
	name, _, ok = a.worker.Running()
	return name, ok
}

// Ask asks all plugins. A plugin that gives no answer has no say, and stands in the Faults of the
// result, which is good until the next question.
func (a *Asker) Ask(f engine.Select) (engine.Selected, *plugin.Result) {
	if tables := a.c.Tables(); a.list == nil || !slices.EqualFunc(tables, a.listed, same) {
		if list, err := plugin.NewTables(tables); err == nil { // texts are always JSON
			a.listed, a.list = tables, list
		}
	}
	a.worker.Select(a.batch(f), &a.result)
	plugins, scores, holds, keeps := a.result.Columns()
	return engine.Selected{Plugins: plugins, Scores: scores, Holds: holds, Keeps: keeps}, &a.result
}

func same(a, b plugin.Table) bool { return a.Name == b.Name && maps.Equal(a.Labels, b.Labels) }

// batch is the question in the plugins' form.
func (a *Asker) batch(f engine.Select) *plugin.Batch {
	type space struct{ used, free int64 }
	disks := map[string]space{}
	now := a.c.Now()
	b := &plugin.Batch{Now: now, Tables: a.list, Logs: make([]plugin.Log, len(f.Logs))}
	for i := range f.Logs {
		l := &f.Logs[i]
		d, ok := disks[l.Source]
		if !ok {
			d.used, d.free = a.c.Disk(l.Source)
			disks[l.Source] = d
		}
		out := plugin.Log{ID: l.Log, Table: a.list.Index(l.Log.Table), State: l.State,
			LocalBytes: l.LocalBytes, DiskUsedBytes: d.used, DiskFreeBytes: d.free,
			Segments: make([]plugin.Segment, len(l.Segments))}
		for k, x := range l.Segments {
			out.Segments[k] = plugin.Segment{Range: x.Range, Bytes: x.Bytes, MaxTime: x.MaxTime,
				Local: true, Remote: x.Remote, Copied: x.Copied, Verified: x.Verified}
			if x.Birth > 0 {
				out.Segments[k].Age = max(now.Sub(x.Birth), 0)
			}
		}
		b.Logs[i] = out
	}
	return b
}
