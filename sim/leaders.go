package sim

import (
	"time"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/sim/choose"
)

// BuiltinKafka is tierd's own project on a broker's directory: with leaders that change, and
// replicas that fall behind.
func BuiltinKafka() (*Project, error) {
	p, err := Builtin()
	if err != nil {
		return nil, err
	}
	p.Config.Layout, p.Digest = tier.LayoutKafka, p.Digest+" "+string(tier.LayoutKafka)
	return p, nil
}

// leaderLog chooses a log of the broker. The clock goes on, as file systems tell changes apart.
func (h *play) leaderLog() *brokerLog {
	h.w.Advance(time.Millisecond)
	return h.broker.logs[choose.Pick(h.c, "log", h.p.logNames(), nil)]
}

// leaderActs are what the leaders of a broker's logs do.
func (h *play) leaderActs() []act {
	return []act{
		{kindOwner, "appends", 3, func() {
			l := h.leaderLog()
			h.broker.append(l, choose.Number(h.c, "batches", 1, 3))
			h.line(LaneDisk, "%s ends at %d", l.id, l.end())
		}},
		{kindOwner, "rolls", 6, func() {
			l := h.leaderLog()
			for range choose.Number(h.c, "segments", 1, 3) {
				h.broker.roll(l)
			}
			h.line(LaneDisk, "%s rolls", l.id)
		}},
		{kindOwner, "has another leader", 2, h.elects},
		{kindOwner, "loses its replicas, or has them again", 2, func() {
			l := h.leaderLog()
			l.stalled = !l.stalled
			h.broker.flush(l)
			h.line(LaneDisk, "the high watermark of %s is %d", l.id, l.hw)
		}},
		{kindOwner, "drops the head", 1, func() {
			l := h.leaderLog()
			local, err := h.w.Bases(l.id)
			must(err)
			if len(local) > 1 && local[1] <= l.hw { // a broker keeps what its replicas lack
				must(h.w.Remove(l.id, local[0]))
				h.line(LaneDisk, "%s loses its segment %d by its owner's hand", l.id, local[0])
			}
		}},
		{kindOwner, "repairs what rotted", 1, func() { h.broker.repair(h.leaderLog(), true) }},
		{kindOwner, "loses its mount", 1, func() { must(h.w.Vanish()) }},
		{kindOwner, "has its mount", 2, func() { must(h.w.Return()) }},
	}
}

// elects lets another replica lead. Nobody cuts off what is not there any more, nor what all
// replicas have, unless the election is unclean.
func (h *play) elects() {
	l := h.leaderLog()
	local, err := h.w.Bases(l.id)
	must(err)
	if len(local) == 0 {
		return
	}
	low := 0
	for low < len(l.batches) && l.batches[low].Base < local[0] {
		low++
	}
	i := choose.Number(h.c, "first batch that differs", low, len(l.batches))
	h.broker.elect(l, i, choose.Number(h.c, "batches of an older leader", 0, 2))
	if choose.Yes(h.c, "it writes at once") {
		h.broker.append(l, 1)
	}
	h.line(LaneDisk, "%s has leader epoch %d, and ends at %d", l.id, l.epoch, l.end())
}

// leaderBetween lets the leader write in the middle of an effect.
func (h *play) leaderBetween() {
	l, batches := h.leaderLog(), choose.Number(h.c, "batches; 0 for a new segment", 0, 2)
	h.aside = choose.Number(h.c, "operations before", 1, 40)
	h.deed = func() {
		h.w.Advance(time.Millisecond)
		if batches == 0 {
			h.broker.roll(l)
		} else {
			h.broker.append(l, batches)
		}
		h.line(LaneDisk, "its leader writes in between: %s", l.id)
	}
}

// leadersHeal lets all replicas follow, and whoever leads write.
func (h *play) leadersHeal() {
	if h.broker == nil {
		return
	}
	ends := []string{"is repaired", "stays as it is"}
	whole := len(h.o.losses) == 0 || choose.Later(h.c, "what was given up", ends, nil) == 0
	for _, l := range h.broker.logs {
		h.w.Advance(time.Millisecond)
		l.stalled = false
		h.broker.repair(l, whole)
		h.broker.append(l, 1)
	}
}

// repairsAgain repairs what was given up in a tier epoch that has ended since: the next one knows
// nothing of that, and finds it damaged.
func (h *play) repairsAgain() {
	for _, l := range h.broker.logs {
		h.w.Advance(time.Millisecond)
		h.broker.repair(l, false)
	}
}
