package sim

import (
	"cmp"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/plugin"
	"github.com/tierd/tierd/runtime/tier"
)

// PluginHeeded says how often the word of a plugin made a difference, and how often the engine did
// otherwise.
type PluginHeeded struct {
	Name string
	// Obeyed counts copies that were held and deletions that were kept because of it, at each
	// answer, and copies that began before that of another log because it says so.
	Obeyed int
	// Overruled counts copies of what it holds, deletions of what it keeps, and copies that began
	// before what it puts first.
	Overruled int
	// Holds, Keeps and Orders count the answers that ask to hold something, to keep something, and
	// that put some segment before another.
	Holds, Keeps, Orders int
}

// Unheedable says why no history can obey the plugin, or overrule it, whose counts over a whole run
// these are; "" where histories must.
func (p *Project) Unheedable(c PluginHeeded) (obeyed, overruled string) {
	if c.Keeps == 0 || c.Holds > 0 || c.Orders > 0 {
		return "", ""
	}
	overruled = "it asks only to keep, which nothing overrules"
	if p.Config.Delete != tier.LocalDeleteUnlink {
		obeyed = "it asks only to keep, and no source deletes local segments"
	}
	return obeyed, overruled
}

// Add counts what another history has of the same plugin.
func (c *PluginHeeded) Add(o PluginHeeded) {
	c.Name = o.Name
	c.Obeyed += o.Obeyed
	c.Overruled += o.Overruled
	c.Holds += o.Holds
	c.Keeps += o.Keeps
	c.Orders += o.Orders
}

// heed watches what becomes of the word of the plugins that the world begins with. It has its own
// record of their answers.
type heed struct {
	w    *World
	set  *plugin.Set
	list []PluginHeeded
	said map[tier.LogID]map[tier.Offset]wish // last, in this life of the process
}

// wish is what was asked for a segment: bit k by plugin k.
type wish struct{ hold, keep uint16 }

func newHeed(w *World) *heed {
	h := &heed{w: w, set: w.Config.Plugins}
	if h.set != nil {
		for _, p := range h.set.Plugins() {
			h.list = append(h.list, PluginHeeded{Name: p.Name})
		}
	}
	h.forget()
	return h
}

// forget is for a new process, which asks anew before it acts.
func (h *heed) forget() { h.said = map[tier.LogID]map[tier.Offset]wish{} }

// own reports whether the plugins that are asked now are those that are watched.
func (h *heed) own() bool { return h.set != nil && h.w.Config.Plugins == h.set }

// ended is told how an effect ended, before the engine is.
func (h *heed) ended(f engine.Effect, r engine.Result) {
	if !h.own() {
		return
	}
	switch f := f.(type) {
	case engine.Select:
		if r, ok := r.(engine.Selected); ok {
			h.heard(f, &r)
		}
	case engine.Delete:
		if r, ok := r.(engine.Deleted); ok {
			for _, s := range r.Gone {
				h.overruled(h.said[f.Log][s.Base].keep)
			}
		}
	}
}

// heard takes an answer down.
func (h *heed) heard(f engine.Select, r *engine.Selected) {
	for k := range h.list {
		h.list[k].answered(r, k)
	}
	row := 0
	for _, l := range f.Logs {
		of := map[tier.Offset]wish{}
		for _, s := range l.Segments {
			of[s.Base] = wish{r.Holds[row], r.Keeps[row]}
			row++
		}
		h.said[l.Log] = of
	}
}

// answered counts what plugin k asks for in an answer.
func (c *PluginHeeded) answered(r *engine.Selected, k int) {
	var hold, keep uint16
	order := false
	for row := range r.Holds {
		hold, keep = hold|r.Holds[row], keep|r.Keeps[row]
		order = order || r.Scores[row*len(r.Plugins)+k] != r.Scores[k]
	}
	c.Holds += int(hold >> k & 1)
	c.Keeps += int(keep >> k & 1)
	if order {
		c.Orders++
	}
}

func (h *heed) obeyed(set uint16) {
	for k := range h.list {
		h.list[k].Obeyed += int(set >> k & 1)
	}
}

func (h *heed) overruled(set uint16) {
	for k := range h.list {
		h.list[k].Overruled += int(set >> k & 1)
	}
}

// stepped looks at what the engine does with an answer, and at the copies that it begins.
func (h *heed) stepped(ev engine.Event, began []engine.Effect) {
	if !h.own() {
		return
	}
	if f, ok := ev.(engine.Finished); ok {
		if _, ok := f.Result.(engine.Selected); ok {
			h.retained()
		}
	}
	for i, f := range began {
		if f, ok := f.(engine.Copy); ok {
			h.overruled(h.said[f.Log][f.Segment.Base].hold)
			h.ordered(f, began[i+1:])
		}
	}
}

// retained counts what stays, and would not without plugins.
func (h *heed) retained() {
	e := h.w.process.engine
	for _, c := range e.PlanCopies(0).Held {
		h.obeyed(h.said[c.Log][c.Base].hold)
	}
	for _, id := range e.Logs() {
		with, without := e.Deletable(id, true), e.Deletable(id, false)
		kept, reason := e.KeptByPlugin(id)
		if n := len(with); reason != nil && n < len(without) && without[n].Segment.Base == kept.Base {
			h.obeyed(h.said[id][kept.Base].keep)
		}
	}
}

// ordered compares a copy that begins with those that wait, and those that begin after it.
func (h *heed) ordered(f engine.Copy, later []engine.Effect) {
	var first engine.PlannedCopy
	var waiting []engine.PlannedCopy
	busy := map[tier.LogID]bool{f.Log: true}
	for _, c := range h.w.process.engine.PlanCopies(copiesMax).List {
		switch {
		case c.Log == f.Log && c.Base == f.Segment.Base:
			first = c
		case c.Copying && !begins(later, c):
			busy[c.Log] = true // its next segment waits for this one
		default:
			waiting = append(waiting, c)
		}
	}
	var obeyed, overruled uint16
	for _, c := range waiting {
		if len(c.Scores) != len(h.list) || len(first.Scores) != len(h.list) {
			continue // nobody was asked
		}
		decides := -1
		for k, score := range first.Scores {
			if score < c.Scores[k] {
				overruled |= 1 << k
			}
			if score > c.Scores[k] && decides < 0 {
				decides = k
			}
			if score != c.Scores[k] && decides < 0 {
				decides = len(h.list)
			}
		}
		builtin := cmp.Or(cmp.Compare(c.Written, first.Written), c.Log.Compare(first.Log)) < 0
		if builtin && !busy[c.Log] && decides >= 0 && decides < len(h.list) {
			obeyed |= 1 << decides
		}
		busy[c.Log] = true
	}
	h.obeyed(obeyed)
	h.overruled(overruled)
}

// copiesMax is more than histories have to copy at one time.
const copiesMax = 10_000

// begins reports whether the copy is one of the effects.
func begins(effects []engine.Effect, c engine.PlannedCopy) bool {
	for _, f := range effects {
		if f, ok := f.(engine.Copy); ok && f.Log == c.Log && f.Segment.Base == c.Base {
			return true
		}
	}
	return false
}
