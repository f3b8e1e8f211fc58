package rego

import (
	"context"
	"slices"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/tier"
)

// Replayed is what these policies say of a deletion that others let happen.
type Replayed struct {
	gate.Decision
	// Err is why there is no answer, which keeps; nil where there is one.
	Err error
	// OtherReasons is set where it would still go, and not for the reasons of then.
	OtherReasons bool
}

// Kept reports whether the deletion would not happen today.
func (r *Replayed) Kept() bool { return r.Err != nil || !r.Delete }

// Replay decides anew on an input that was recorded with a deletion. then are the reasons that were
// recorded with it. The input must be that of ParseInput.
func (s *Set) Replay(ctx context.Context, in *Input, then []tier.Reason) Replayed {
	var r Replayed
	r.Decision, r.Err = s.DecideInput(ctx, in)
	r.OtherReasons = !r.Kept() && !slices.Equal(codes(then), codes(r.Reasons))
	return r
}

// codes are the codes of the reasons, ascending, each once: the words that last, while texts and
// lines change.
func codes(reasons []tier.Reason) []tier.Code {
	out := make([]tier.Code, len(reasons))
	for i, r := range reasons {
		out[i] = r.Code
	}
	slices.Sort(out)
	return slices.Compact(out)
}
