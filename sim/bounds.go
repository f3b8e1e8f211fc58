package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/tier"
)

// Bounds are those of an exhaustive search: one log that begins with so many closed segments, up to
// so many actions, and at any operation that changes something a stop of the process or its
// machine, or at any call of the store a fault, so many in one history.
type Bounds struct {
	Segments     int
	Actions      int
	Disturbances int

	acts []string // of boundedActs; nil for all
}

func (b *Bounds) kinds() []string {
	if b.acts == nil {
		return boundedActs
	}
	return b.acts
}

// boundedActs are the actions of an exhaustive search.
var boundedActs = []string{"owner: rolls", "owner: rewrites a segment", "owner: drops the head",
	"process: runs", "time: passes, and the process runs"}

// lastPart says of the actions of which a part is what the process is let do which of its parts is
// the last: where it stops in that one, nothing of the action follows.
var lastPart = map[string]int{"process: runs": 1, "time: passes, and the process runs": 2}

// boundedFaults are the faults of the store that it tries.
var boundedFaults = slices.Concat(
	faultsOf(fault.OpUpload, "has no effect", "times out, and took effect",
		"times out, and comes late", "is cut, and says it is whole"),
	faultsOf(fault.OpGet, "gives no answer", "gives other bytes", "finds nothing"),
	faultsOf(fault.OpDelete, "has no effect", "times out, and took effect"),
	faultsOf(fault.OpIter, "gives no answer"),
)

// boundedChoices are what can become of a kind of call, by names: first that it is as it should be.
var boundedChoices = func() map[fault.OpKind]*boundedChoice {
	out := map[fault.OpKind]*boundedChoice{}
	for _, f := range boundedFaults {
		if out[f.kind] == nil {
			out[f.kind] = &boundedChoice{[]string{"as it should"}, []storeFault{{}}}
		}
		c := out[f.kind]
		c.names, c.faults = append(c.names, f.name), append(c.faults, f)
	}
	return out
}()

type boundedChoice struct {
	names  []string
	faults []storeFault
}

// faultsOf are the faults of a kind of call by their names; it panics where there is none.
func faultsOf(kind fault.OpKind, names ...string) (out []storeFault) {
	all := slices.Concat(uploadFaults, readFaults, deleteFaults, listFaults)
	for _, name := range names {
		i := slices.IndexFunc(all, func(f storeFault) bool { return f.kind == kind && f.name == name })
		if i < 0 {
			panic(fmt.Sprintf("sim: no fault of %s %s", kind, name))
		}
		out = append(out, all[i])
	}
	return out
}

// within is what a search is exhaustive within that has so many kinds of actions.
func (b *Bounds) within(kinds int) string {
	disturbances := ", without stops and faults"
	if b.Disturbances > 0 {
		disturbances = fmt.Sprintf(", and before every change a stop, or a fault of the store: up to %d "+
			"of them in a history", b.Disturbances)
	}
	return fmt.Sprintf("1 log of %s, up to %s of %d kinds (of times after which the process does the "+
		"same, the shortest)%s", tier.Count(b.Segments, "closed segment"),
		tier.Count(b.Actions, "action"), kinds, disturbances)
}

func (b *Bounds) among(acts []act) []act {
	if b == nil {
		return acts
	}
	return slices.DeleteFunc(acts, func(a act) bool {
		return !slices.Contains(b.kinds(), a.kind+": "+a.name)
	})
}

// apart leaves out, for a search, a span where the next longer one is less than nearTimes as long:
// what waits for it is due after that one, too. What policies ask for stays.
func (b *Bounds) apart(all []span) []span {
	if b == nil {
		return all
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.long, b.long) })
	var out []span
	for i, s := range all {
		if s.asked || i == len(all)-1 || all[i+1].long >= nearTimes*s.long {
			out = append(out, s)
		}
	}
	return out
}

const nearTimes = 3

func (b *Bounds) steps() int {
	if b == nil {
		return historyStepsMax
	}
	return b.Actions
}

// small is the project of one log. Where settings are nobody's, limits are reached within a few
// actions; those of a user stay, or properties would be asked about what nobody configured.
func (h *play) small() {
	b := h.opts.Bounds
	if b == nil {
		return
	}
	if h.broker == nil {
		must(h.w.Append(h.p.Logs[0], b.Segments-1))
	} else {
		for range b.Segments { // the broker has begun with one that is not closed
			h.broker.roll(h.broker.logs[0])
		}
	}
	if h.p.Unsettled {
		h.over.localSegments = &tier.Limit{Set: true, Value: 1}
		must(h.w.Reload())
	}
}
