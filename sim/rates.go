package sim

import (
	"slices"

	"github.com/tierd/tierd/sim/choose"
)

// rates say how likely each kind of action is in one history. They are drawn by chance for each
// seed, so that some histories have much of one kind and nothing of another, and some no fault at
// all; other choosers have no use for them.
type rates struct {
	length    int
	faultless bool
	swarm     bool
	kinds     map[string]int
	focus     map[string]int // see Project
	drift     int            // of drifts
	ntp       ntp
}

// The kinds of actions.
const (
	kindOwner    = "owner"
	kindProcess  = "process"
	kindTime     = "time"
	kindOperator = "operator"
	kindSettings = "settings"
	kindClock    = "clock"
	kindStore    = "store"
	kindDisk     = "disk"
	kindStop     = "stop"
	kindOverlap  = "overlap"
	kindFacts    = "facts"
	kindReader   = "reader"
)

// faultKinds are those that a faultless history has none of.
var faultKinds = []string{kindClock, kindStore, kindDisk, kindStop, kindOverlap}

// swarmKinds are those of which a swarm has more or none.
var swarmKinds = append([]string{kindOwner, kindProcess, kindTime, kindOperator, kindSettings,
	kindFacts, kindReader}, faultKinds...)

func (p *Project) drawRates(c choose.Chooser) rates {
	r := rates{focus: p.Focus, kinds: map[string]int{kindOwner: 3, kindProcess: 8, kindTime: 4,
		kindOperator: 1, kindFacts: 1, kindReader: 1}}
	r.length = choose.Rate(c, "length", 60, 90, 160)
	r.faultless = choose.Rate(c, "faultless", 0, 0, 0, 0, 0, 0, 0, 1) == 1
	for _, kind := range faultKinds {
		levels := []int{0, 1, 2, 4}
		if kind == kindStop {
			levels = []int{2, 4, 8, 12} // a crash is in the middle of what recoveries are for
		}
		if rate := choose.Rate(c, kind, levels...); !r.faultless {
			r.kinds[kind] = rate
		}
	}
	if rate := choose.Rate(c, kindSettings, 0, 1, 2); p.Unsettled {
		r.kinds[kindSettings] = rate
	}
	r.drawShape(c)
	r.drawSwarm(c)
	return r
}

// drawSwarm makes a few kinds of actions far more likely in a fourth of the histories, leaves some
// out, and lets the history be longer: what needs many of one kind, or much time without another,
// hardly comes about where each has its usual share.
func (r *rates) drawSwarm(c choose.Chooser) {
	if r.swarm = choose.Rate(c, "swarm", 1, 0, 0, 0) == 1; !r.swarm {
		return
	}
	r.length *= choose.Rate(c, "longer", 1, 1, 2)
	for _, kind := range swarmKinds {
		levels := []int{0, 1, 1, 1, 1, 4, 12}
		if kind == kindOwner || kind == kindProcess || kind == kindTime {
			levels = levels[1:] // nothing comes about without them
		}
		r.kinds[kind] *= choose.Rate(c, kind+" times", levels...)
	}
}

// A swarm favours up to so many single actions, each so many times as likely as its kind makes it.
const (
	favourites     = 2
	favouriteTimes = 8
)

// favours draws what a swarm favours of the actions.
func (r *rates) favours(c choose.Chooser, names []string) map[string]bool {
	often := map[string]bool{}
	for i := 0; r.swarm && i < favourites; i++ {
		often[choose.Favour(c, names)] = true
	}
	return often
}

// weights are those of the end and of each action, in the order of their names. The end comes when
// the length is reached.
func (r *rates) weights(acts []act, names []string, often map[string]bool) (before, then []int) {
	before, then = make([]int, len(names)), make([]int, len(names))
	then[0] = 1
	for i, a := range acts {
		before[i+1] = r.kinds[a.kind] * a.weight
		times := r.focus[names[i+1]]
		if often[names[i+1]] && !(r.faultless && slices.Contains(faultKinds, a.kind)) {
			times = max(times, favouriteTimes)
		}
		if times > 0 {
			before[i+1] = max(r.kinds[a.kind], 1) * a.weight * times
		}
	}
	return before, then
}
