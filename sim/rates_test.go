package sim

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tierd/tierd/sim/choose"
)

// drawn is a chooser whose rates are set: those with a name, and the second level of the others. It
// favours the last name.
type drawn struct {
	choose.Chooser
	rates map[string]int
}

func (d drawn) Rate(kind string, levels ...int) int {
	if rate, ok := d.rates[kind]; ok {
		return rate
	}
	return levels[1]
}

func (d drawn) Favour(names []string) string { return names[len(names)-1] }

// TestASwarmHasMoreOfAFew: of kinds of actions, and of single ones; a history without faults stays
// one, and one that is no swarm is as it was.
func TestASwarmHasMoreOfAFew(t *testing.T) {
	t.Parallel()
	acts := []act{{kind: kindOwner, weight: 5}, {kind: kindStop, weight: 3}}
	names := []string{"the end", "owner: rolls", "stop: now"}
	p := &Project{}
	weights := func(rates map[string]int) (length int, before []int) {
		c := drawn{rates: rates}
		r := p.drawRates(c)
		before, then := r.weights(acts, names, r.favours(c, names[1:]))
		if !slices.Equal(then, []int{1, 0, 0}) {
			t.Errorf("%v: %v after the length", rates, then)
		}
		return r.length, before
	}
	for _, c := range []struct {
		rates  map[string]int
		length int
		want   []int
	}{
		{map[string]int{}, 90, []int{0, 15, 12}},
		{map[string]int{"owner times": 12}, 90, []int{0, 15, 12}},
		{map[string]int{"swarm": 1, "longer": 2, "owner times": 12}, 180, []int{0, 180, 96}},
		{map[string]int{"swarm": 1, "stop times": 0}, 90, []int{0, 15, 24}},
		{map[string]int{"swarm": 1, "faultless": 1, "stop times": 12}, 90, []int{0, 15, 0}},
	} {
		length, before := weights(c.rates)
		if length != c.length || !slices.Equal(before, c.want) {
			t.Errorf("%s: %d steps with weights %v, want %d with %v",
				strings.Join(slices.Sorted(maps.Keys(c.rates)), ", "), length, before, c.length, c.want)
		}
	}
}

// TestTheLowestPickIsTriedFirst: of like waits a search keeps the shortest, which comes first.
func TestTheLowestPickIsTriedFirst(t *testing.T) {
	t.Parallel()
	var tried []uint8
	for open := [][]uint8{{1}}; len(open) > 0; {
		picks := open[len(open)-1]
		open = open[:len(open)-1]
		w := way{slices.Clone(picks), slices.Repeat([]uint8{4}, len(picks))}
		if len(w.picks) == 1 {
			w = way{append(w.picks, 0), append(w.of, 4)}
		}
		tried = append(tried, w.picks[1])
		open = w.others(open, len(picks))
	}
	if !slices.Equal(tried, []uint8{0, 1, 2, 3}) {
		t.Errorf("tried are %v", tried)
	}
}
