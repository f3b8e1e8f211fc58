package sim

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tierd/tierd/runtime/tier"
)

// TestAnyLineage lets chance write histories of a broker whose leaders change, and cut off at any
// batch what was copied or is being copied: with and without a record of their epochs, and with
// tails of older epochs that this broker never had. In the end readers get the broker's log.
func TestAnyLineage(t *testing.T) {
	t.Parallel()
	for name, kinds := range map[string][]string{
		"nothing fails":   {"process", "settings", "tiering"},
		"the store fails": {"process", "store"},
		"machines stop":   {"process", "stop"},
		"effects overlap": {"process", "overlap", "store"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				h, b := newLedChance(t)
				actions := h.actions(kinds)
				delete(actions, "overlap with its owner")
				delete(actions, "settings forbid")
				for name, do := range h.leadersDo(b) {
					actions[name] = do
				}
				actions[""] = h.judge
				t.Repeat(actions)
				for _, l := range b.logs { // whoever leads writes in the end
					b.append(l, 1)
				}
				h.calm()
				h.heal()
				h.judge(t)
			})
		})
	}
}

func newLedChance(t *rapid.T) (*chance, *broker) {
	h := beginChance(t, tier.LayoutKafka)
	b := newBroker(h.w, rapid.Bool().Draw(t, "without a record of epochs"), logsOf[:2]...)
	h.must(h.w.Start())
	return h, b
}

// leadersDo are what leaders do. The clock goes on with each, as file systems tell changes apart.
func (h *chance) leadersDo(b *broker) map[string]func(*rapid.T) {
	log := func(t *rapid.T) *brokerLog {
		h.w.Advance(time.Millisecond)
		return b.logs[rapid.IntRange(0, len(b.logs)-1).Draw(t, "log")]
	}
	return map[string]func(*rapid.T){
		"the leader appends": func(t *rapid.T) {
			b.append(log(t), rapid.IntRange(1, 3).Draw(t, "batches"))
		},
		"the leader rolls": func(t *rapid.T) { b.roll(log(t)) },
		"the leader rolls again": func(t *rapid.T) {
			l := log(t)
			for range rapid.IntRange(1, 3).Draw(t, "segments") {
				b.roll(l)
			}
		},
		"another leads": func(t *rapid.T) {
			l := log(t)
			local, err := h.w.Bases(l.id)
			h.must(err)
			// Nobody cuts off what is not there any more.
			low := 0
			for low < len(l.batches) && l.batches[low].Base < local[0] {
				low++
			}
			i := rapid.IntRange(low, len(l.batches)).Draw(t, "first batch that differs")
			b.elect(l, i, rapid.IntRange(0, 2).Draw(t, "batches of an older leader"))
			if rapid.Bool().Draw(t, "it writes at once") {
				b.append(l, 1)
			}
		},
	}
}
