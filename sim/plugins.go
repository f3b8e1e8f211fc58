package sim

import (
	"context"
	"time"

	"github.com/tierd/tierd/runtime/advice"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/plugin"
	"github.com/tierd/tierd/runtime/tier"
)

// selectEvery is how often plugins are asked again about what they held or kept.
const selectEvery = tier.Time(time.Minute)

// asker asks the plugins that are configured now, in one life of the process. Real modules run in
// the real host: their fuel ends them, by no clock.
type asker struct {
	set *plugin.Set
	*advice.Asker
}

// forget gives the instances back.
func (a *asker) forget() {
	if a.Asker != nil {
		a.Close()
	}
	*a = asker{}
}

// Close gives back what a world that is used no more has of its plugins and of its ledger's file.
// The set stays the caller's.
func (w *World) Close() {
	w.letGo()
	if w.process != nil {
		w.process.asker.forget()
	}
}

// askPlugins performs a Select. One that was given up is as if its answer came too late.
func (w *World) askPlugins(_ context.Context, f engine.Select) engine.Result {
	a := &w.process.asker
	if a.set != w.Config.Plugins {
		a.forget()
		*a = asker{w.Config.Plugins, advice.New(w.Config.Plugins, advice.Config{Now: w.now,
			Tables: w.pluginTables,
			Disk: func(string) (used, free int64) {
				n := &w.Config.Node
				return n.DiskUsedBytes, n.DiskFreeBytes
			}})}
	}
	answer, result := a.Ask(f)
	if w.Answered != nil {
		w.Answered(answer, result.Faults)
	}
	return answer
}

// pluginTables are the tables that the process knows, with their labels.
func (w *World) pluginTables() []plugin.Table {
	var out []plugin.Table
	for _, id := range w.process.engine.Logs() {
		if n := len(out); n > 0 && out[n-1].Name == id.Table {
			continue
		}
		t, _ := w.Config.Tables(id.Table)
		out = append(out, plugin.Table{Name: id.Table, Labels: t.Labels})
	}
	return out
}

// heard notes what the plugins asked to keep, as they said it, where the process takes their answer
// over: what of it an answer no more speaks of, and all of it where there is none, counts no more.
func (w *World) heard(f engine.Effect, r engine.Result) {
	asked, ok := f.(engine.Select)
	o := w.oracle
	if !ok || o == nil {
		return
	}
	answer, ok := r.(engine.Selected)
	if !ok {
		clear(o.keeps)
		return
	}
	if asked.Generation != w.generation {
		return
	}
	row := 0
	for _, l := range asked.Logs {
		keeps := map[tier.Offset]bool{}
		for _, s := range l.Segments {
			keeps[s.Base] = answer.Keeps[row] != 0
			row++
		}
		o.keeps[l.Log] = keeps
	}
}

// proposed (S12): nothing is put up for local deletion that a plugin keeps by its last answer. By
// its own record: whatever the process was told, or made of it.
func (o *Oracle) proposed(ev engine.Event, began []engine.Effect) {
	if _, other := ev.(engine.Reconfigured); other {
		clear(o.keeps) // the plugins are asked anew
	}
	for _, f := range began {
		f, deletes := f.(engine.Delete)
		if !deletes || f.Action != tier.DeleteLocal {
			continue
		}
		for _, c := range f.Segments {
			if base := c.Segment.Base; o.keeps[f.Log][base] {
				o.violateAt(PluginContainment, f.Log, base,
					"segment %d of %s is put up for deletion, and a plugin keeps it", base, f.Log)
			}
		}
	}
}

// contained (S12): whatever plugins say, what the process would propose to delete of a log is a
// beginning of what it would propose without them.
func (o *Oracle) contained() {
	p := o.w.process
	if p == nil || p.err != nil || o.w.Config.Plugins == nil {
		return
	}
	for _, l := range o.logs {
		with, without := p.engine.Deletable(l.id, true), p.engine.Deletable(l.id, false)
		for i := range with {
			if i >= len(without) || with[i] != without[i] {
				o.violate(PluginContainment, "%s: with its plugins %s may go, and not without", l.id,
					with[i].Segment.Range)
				break
			}
		}
	}
}
