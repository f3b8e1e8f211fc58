package plugin

import (
	"fmt"
	"slices"

	"github.com/tierd/tierd/runtime/tier"
)

// PluginsMax is how many plugins can be configured.
const PluginsMax = 16

// Result is what the plugins say of a batch: a score of each plugin for each segment, and who
// asks to hold or to keep it. It is reused from batch to batch.
//
// There is no way for a plugin to say that something may be copied or deleted: a Result has nothing
// but an order, and what to take away from what would be done without it.
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
