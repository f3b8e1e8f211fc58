package rego

import (
	"context"
	"errors"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/tier"
)

var _ gate.Policies = (*Set)(nil)

// query asks for all answers that count for one action.
type query struct {
	body     ast.Body
	compiler ast.QueryCompiler
	asks     []ask
}

// ask is one answer and the variable that takes it.
type ask struct {
	answer
	number int // index in Set.answers
	into   ast.Var
}

// counts tells whether an answer counts for an action.
func (a answer) counts(action tier.Action) bool {
	switch {
	case a.kind == answerDeny || a.kind == answerKeep:
		return true
	case action == tier.DeleteLocal:
		return a.kind == answerExpire
	case action == tier.DeleteRemote:
		return a.kind == answerExpireRemote
	}
	// An orphan, or what a disablement deletes, is no user's to expire.
	return a.kind == answerExpireRemote && a.builtin
}

// asks are the answers that count for an action, each with its variable.
func (s *Set) asks(action tier.Action) (out []ask) {
	for i, a := range s.answers {
		if a.counts(action) {
			out = append(out, askOf(a, i, len(out)))
		}
	}
	return out
}

// askOf asks for an answer, with its index in Set.answers, as the n-th of a question.
func askOf(a answer, index, n int) ask {
	return ask{answer: a, number: index, into: ast.Var(fmt.Sprintf("x%d", n))}
}

// question puts the asks into one query: x0 = data.tierd.hold.__tierd_deny; x1 = ...
func question(asks []ask) ast.Body {
	exprs := make([]*ast.Expr, len(asks))
	for i, a := range asks {
		exprs[i] = ast.Equality.Expr(ast.NewTerm(a.into), ast.NewTerm(a.ref))
	}
	return ast.NewBody(exprs...)
}

// prepare compiles the question for each action.
func (s *Set) prepare() (err error) {
	s.queries = map[tier.Action]*query{}
	for _, action := range []tier.Action{
		tier.DeleteLocal, tier.DeleteRemote, tier.DeleteOrphan, tier.DisableDelete,
	} {
		if s.queries[action], err = s.query(s.asks(action)); err != nil {
			return fmt.Errorf("%s: %w", action, err)
		}
	}
	return nil
}

// query compiles the question that puts the asks.
func (s *Set) query(asks []ask) (*query, error) {
	q := &query{compiler: s.compiler.QueryCompiler(), asks: asks}
	body, err := q.compiler.Compile(question(asks))
	if err != nil {
		return nil, fmt.Errorf("compile the question: %w", err)
	}
	q.body = body
	return q, nil
}

// Decide implements gate.Policies. Where the deletion is kept, the reasons are the denials and, if
// nothing expires, what the built-in limits wait for; Due is when the first of these is over,
// unless something is denied: a denial may end at any time. An error names the rule, and keeps.
func (s *Set) Decide(ctx context.Context, f *gate.Facts) (gate.Decision, error) {
	input, err := inputWith(f, &s.terms)
	if err != nil {
		return s.undecided(), err
	}
	in := &Input{value: input, action: f.Action, now: f.Now, unknown: f.Unknown}
	d, _, _, err := s.decide(ctx, in)
	return d, err
}

// decide asks, weighs the answers, and makes sure of a deletion while facts are unknown. It also
// gives the answers, and the number of steps that asking took.
func (s *Set) decide(ctx context.Context, in *Input) (gate.Decision, said, int64, error) {
	said, steps, err := s.ask(ctx, in)
	if err != nil {
		return s.undecided(), nil, steps, err
	}
	d, err := s.judge(said)
	if err == nil && d.Delete && len(in.unknown) > 0 {
		d, err = s.confirm(ctx, in, d, said)
	}
	return d, said, steps, err
}

// undecided is the decision of these policies that keeps and has no reason yet.
func (s *Set) undecided() gate.Decision { return gate.Decision{Digest: s.digest, Data: s.data} }

// said is what the rules of each kind answered.
type said map[string][]tier.Reason

// ask asks all questions about an input, and tells how many steps that took.
func (s *Set) ask(ctx context.Context, in *Input) (said, int64, error) {
	q := s.queries[in.action]
	found, steps, err := s.eval(ctx, q, in)
	if err != nil {
		return nil, steps, err
	}
	out := said{}
	for i, a := range q.asks {
		reasons, err := s.reasons(a, found[i])
		if err != nil {
			return nil, steps, err
		}
		out[a.kind] = append(out[a.kind], reasons...)
	}
	return out, steps, nil
}

// judge weighs the answers.
func (s *Set) judge(said said) (gate.Decision, error) {
	d := s.undecided()
	denied, keep := said[answerDeny], said[answerKeep]
	expired := append(said[answerExpire], said[answerExpireRemote]...)
	switch {
	case len(denied) == 0 && len(expired) > 0:
		d.Delete, d.Reasons = true, capped(expired)
	case len(expired) > 0:
		d.Reasons = capped(denied)
	default:
		d.Reasons = append(capped(denied), keep...)
	}
	if len(denied) == 0 && len(expired) == 0 {
		for _, r := range keep {
			if r.Until != 0 && (d.Due == 0 || r.Until < d.Due) {
				d.Due = r.Until
			}
		}
	}
	if len(d.Reasons) == 0 {
		return d, errors.New("no policy says why the segment is kept")
	}
	return d, nil
}

// eval runs a question and returns the values in the order of its asks, and the number of steps.
func (s *Set) eval(ctx context.Context, q *query, in *Input) ([]ast.Value, int64, error) {
	e, err := s.placed(ctx, in, func(e *evaluation) error { return s.run(e, q) })
	return e.found, e.steps(), err
}

// run is eval once.
func (s *Set) run(e *evaluation, q *query) error {
	if err := s.begin(e, q.body, q.compiler); err != nil {
		return err
	}
	defer e.end()
	found := make([]ast.Value, len(q.asks))
	answered := false
	e.query.WithBaseCache(s.base)
	err := s.failure(e, e.query.Iter(e.limit.ctx, func(r topdown.QueryResult) error {
		answered = true
		for i, a := range q.asks {
			if t := r[a.into]; t != nil {
				found[i] = t.Value
			}
		}
		return nil
	}))
	if err == nil && !answered {
		err = errors.New("the policies are undefined for this input")
	}
	if err == nil {
		e.found = found
	}
	return err
}
