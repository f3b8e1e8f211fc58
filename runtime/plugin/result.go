package plugin

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/tierd/tierd/runtime/tier"
)

// MaxPlugins is how many plugins can be configured.
const MaxPlugins = 16

// Result is what the plugins say of a batch: a score of each plugin for each segment, and who
// asks to hold or to keep it. It is reused from batch to batch.
//
// There is no way for a plugin to say that something may be copied or deleted: a Result can only
// put segments into another order, and take them away from what would be done without it.
type Result struct {
	Faults []Fault // of the plugins that gave no answer to this batch, in configured order

	Fuel []int64 // that each plugin used for the batch, in configured order; 0 where it gave none

	names  []string
	scores [][]int64 // by plugin; zeros where a plugin gave no answer
	holds  []uint16  // by segment: the set of plugins that ask for it
	keeps  []uint16
}

// reset makes r the result of n segments that no plugin said anything of.
func (r *Result) reset(names []string, n int) {
	r.names, r.Faults = names, r.Faults[:0]
	r.holds, r.keeps = zeros(r.holds, n), zeros(r.keeps, n)
	for len(r.scores) < len(names) {
		r.scores = append(r.scores, nil)
	}
	r.scores = r.scores[:len(names)]
	r.Fuel = zeros(r.Fuel, len(names))
	for i := range r.scores {
		r.scores[i] = zeros(r.scores[i], n)
	}
}

func zeros[T int64 | uint16](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// Len is the number of segments.
func (r *Result) Len() int { return len(r.holds) }

// Scores appends the scores of segment i to dst, one of each plugin in configured order. Scores
// of different batches may be compared.
func (r *Result) Scores(dst []int64, i int) []int64 {
	for _, column := range r.scores {
		dst = append(dst, column[i])
	}
	return dst
}

// Columns copies the whole answer. Scores of segment i are those from i*len(plugins) on; bit k of
// the sets is plugin k.
func (r *Result) Columns() (plugins []string, scores []int64, holds, keeps []uint16) {
	width := len(r.scores)
	scores = make([]int64, r.Len()*width)
	for k, column := range r.scores {
		for i, v := range column {
			scores[i*width+k] = v
		}
	}
	return slices.Clone(r.names), scores, slices.Clone(r.holds), slices.Clone(r.keeps)
}

// CompareScores orders what should be copied first before the rest: the first plugin's higher
// score goes first, the next plugin breaks ties. It is 0 where the built-in order decides.
func CompareScores(a, b []int64) int {
	for k := range min(len(a), len(b)) {
		if c := cmp.Compare(b[k], a[k]); c != 0 {
			return c
		}
	}
	return 0
}

// Compare orders the segments i and j as CompareScores does.
func (r *Result) Compare(i, j int) int {
	for _, column := range r.scores {
		if c := cmp.Compare(column[j], column[i]); c != 0 {
			return c
		}
	}
	return 0
}

// MayCopy is whether segment i may be copied now, where builtin says whether it might without
// plugins.
func (r *Result) MayCopy(i int, builtin bool) bool { return builtin && r.holds[i] == 0 }

// MayDelete is whether segment i may be asked of the gate for local deletion, where builtin says
// whether it might without plugins.
func (r *Result) MayDelete(i int, builtin bool) bool { return builtin && r.keeps[i] == 0 }

// Held returns the reason for which segment i is held; ok is false if nobody holds it.
func (r *Result) Held(i int) (reason tier.Reason, ok bool) {
	return r.reason(r.holds[i], tier.CodeHeld, "held back from copying by")
}

// Kept returns the reason for which segment i is kept; ok is false if nobody keeps it.
func (r *Result) Kept(i int) (reason tier.Reason, ok bool) {
	return r.reason(r.keeps[i], tier.CodeKept, "kept on local disk by")
}

func (r *Result) reason(set uint16, code tier.Code, text string) (tier.Reason, bool) {
	if set == 0 {
		return tier.Reason{}, false
	}
	var who []string
	for ; set != 0; set &= set - 1 {
		who = append(who, r.names[bits.TrailingZeros16(set)])
	}
	noun := "plugin"
	if len(who) > 1 {
		noun = "plugins"
	}
	return tier.Reason{Code: code,
		Text: fmt.Sprintf("%s the %s %s", text, noun, strings.Join(who, ", "))}, true
}

// FaultKind is a stable word for how a plugin failed.
type FaultKind string

// The kinds of faults.
const (
	FaultStart     FaultKind = "start"     // it could not be instantiated or initialized
	FaultConfigure FaultKind = "configure" // it refused its configuration
	FaultTrap      FaultKind = "trap"      // it trapped or exited
	FaultFuel      FaultKind = "fuel"      // it ran out of fuel
	FaultStack     FaultKind = "stack"     // it recursed too deep
	FaultMemory    FaultKind = "memory"    // its tierd_alloc gave no usable memory
	FaultOutput    FaultKind = "output"    // its answer has a wrong length or place
	FaultAction    FaultKind = "action"    // its answer has an unknown action
	FaultTime      FaultKind = "time"      // it took longer than wall-clock time allows
	FaultBackoff   FaultKind = "backoff"   // it failed before and is not asked yet
)

// Fault says why a plugin gave no answer.
type Fault struct {
	Plugin string
	Kind   FaultKind
	Text   string
	Until  tier.Time // when it is asked again

	starting bool // before it was asked anything
}

// Reason is the fault for status and explain.
func (f Fault) Reason() tier.Reason {
	return tier.Reason{Code: tier.CodePluginFault, Until: f.Until,
		Text: fmt.Sprintf("plugin %s gave no answer (%s), the built-in order serves: %s",
			f.Plugin, f.Kind, f.Text)}
}

// Error implements error.
func (f *Fault) Error() string { return fmt.Sprintf("%s: %s", f.Kind, f.Text) }
