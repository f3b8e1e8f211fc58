package rego

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/tier"
)

// Evaluation is everything that the policies say of one input.
type Evaluation struct {
	gate.Decision
	// Fired are the reasons of every rule that gave one, also of those that did not count.
	Fired []Fired
	// Steps is how many evaluation steps it took; Options.Steps bounds them.
	Steps int64
}

// Fired is a reason and the kind of rule that gave it.
type Fired struct {
	Answer string // deny, expire, expire_remote or keep
	tier.Reason
}

// Evaluate decides on a saved input as Decide does on facts. The guard is not asked: what the
// policies let go may still be kept by it.
func (s *Set) Evaluate(ctx context.Context, in *Input) (Evaluation, error) {
	d, said, steps, err := s.decide(ctx, in)
	e := Evaluation{Decision: d, Steps: steps}
	for _, kind := range slices.Concat(answers, []string{answerKeep}) {
		for _, r := range said[kind] {
			e.Fired = append(e.Fired, Fired{kind, r})
		}
	}
	return e, err
}

// EvaluateFacts is Evaluate on facts as Decide takes them.
func (s *Set) EvaluateFacts(ctx context.Context, f *gate.Facts) (Evaluation, error) {
	input, err := inputWith(f, &s.terms)
	if err != nil {
		return Evaluation{Decision: s.undecided()}, err
	}
	return s.Evaluate(ctx, &Input{value: input, action: f.Action, now: f.Now, unknown: f.Unknown})
}

// DecideInput is Evaluate without what is for people alone.
func (s *Set) DecideInput(ctx context.Context, in *Input) (gate.Decision, error) {
	d, _, _, err := s.decide(ctx, in)
	return d, err
}

// Question is what is asked for one action, as a query that OPA's own tools understand.
func (s *Set) Question(action tier.Action) string {
	var parts []string
	for _, a := range s.asks(action) {
		parts = append(parts, fmt.Sprintf("%s = %s", a.into, a.plain))
	}
	return strings.Join(parts, "; ")
}
