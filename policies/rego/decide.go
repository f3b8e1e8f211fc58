package rego

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
			into := ast.Var(fmt.Sprintf("x%d", len(out)))
			out = append(out, ask{answer: a, number: i, into: into})
		}
	}
	return out
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
func (s *Set) prepare() error {
	s.queries = map[tier.Action]*query{}
	for _, action := range []tier.Action{
		tier.DeleteLocal, tier.DeleteRemote, tier.DeleteOrphan, tier.DisableDelete,
	} {
		q := &query{compiler: s.compiler.QueryCompiler(), asks: s.asks(action)}
		body, err := q.compiler.Compile(question(q.asks))
		if err != nil {
			return fmt.Errorf("compile the question for %s: %w", action, err)
		}
		q.body = body
		s.queries[action] = q
	}
	return nil
}

// Decide implements gate.Policies. Where the deletion is kept, the reasons are the denials and, if
// nothing expires, what the built-in limits wait for; Due is when the first of these is over,
// unless something is denied: a denial may end at any time. An error names the rule, and keeps.
func (s *Set) Decide(ctx context.Context, f *gate.Facts) (gate.Decision, error) {
	input, err := inputWith(f, &s.terms)
	if err != nil {
		return gate.Decision{Digest: s.digest, Data: s.data}, err
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
		return gate.Decision{Digest: s.digest, Data: s.data}, nil, steps, err
	}
	d, err := s.judge(said)
	if err == nil && d.Delete && len(in.unknown) > 0 {
		d, err = s.confirm(ctx, in, d, said)
	}
	return d, said, steps, err
}

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
	d := gate.Decision{Digest: s.digest, Data: s.data}
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
// Where it took too many of them, or too long, the error begins with the place that it had come to:
// it is run again for that, within the same bounds, and told by a tracer.
func (s *Set) eval(ctx context.Context, q *query, in *Input) ([]ast.Value, int64, error) {
	found, steps, err := s.run(ctx, q, in, nil)
	if ctx.Err() == nil && (errors.Is(err, errSteps) || errors.Is(err, context.DeadlineExceeded)) {
		last := &lastPlace{}
		if _, _, again := s.run(ctx, q, in, last); again != nil && last.at != nil {
			err = fmt.Errorf("%s: %w", place(last.at), err)
		}
	}
	return found, steps, err
}

// run is eval once. With the tracer of Trace every rule is evaluated, also where its index says
// that it cannot have a result; the tracer may be nil.
func (s *Set) run(
	ctx context.Context, q *query, in *Input, tracer topdown.QueryTracer,
) ([]ast.Value, int64, error) {
	if s.opts.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.opts.Timeout)
		defer cancel()
	}
	if err := ctx.Err(); err != nil {
		return nil, 0, s.explain(err)
	}
	txn, err := s.store.NewTransaction(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("read the policies' data: %w", err)
	}
	defer s.store.Abort(ctx, txn)
	limit := &budget{ctx: ctx, left: s.opts.Steps}
	found := make([]ast.Value, len(q.asks))
	answered := false
	run := topdown.NewQuery(q.body).
		WithQueryCompiler(q.compiler).
		WithCompiler(s.compiler).
		WithStore(s.store).
		WithTransaction(txn).
		WithBaseCache(s.base).
		WithInput(ast.NewTerm(in.value)).
		WithTime(in.now.Std()).
		WithSeed(zeros{}).
		WithStrictBuiltinErrors(true).
		WithCancel(limit).
		WithIndexing(!everyRule(tracer))
	if tracer != nil {
		run = run.WithQueryTracer(tracer)
	}
	err = run.Iter(ctx, func(r topdown.QueryResult) error {
		answered = true
		for i, a := range q.asks {
			if t := r[a.into]; t != nil {
				found[i] = t.Value
			}
		}
		return nil
	})
	steps := s.opts.Steps - max(limit.left, 0)
	switch {
	case limit.err != nil:
		return nil, steps, s.explain(limit.err)
	case err != nil:
		return nil, steps, evalError(err)
	case !answered:
		return nil, steps, errors.New("the policies are undefined for this input")
	}
	return found, steps, nil
}

// everyRule reports whether a tracer wants to see the rules that cannot have a result too.
func everyRule(t topdown.QueryTracer) bool {
	_, all := t.(*tracer)
	return all
}

// explain puts the end of an evaluation into words that say what was exceeded.
func (s *Set) explain(err error) error {
	switch {
	case errors.Is(err, errSteps):
		return fmt.Errorf("evaluate policies: %w (at most %d)", err, s.opts.Steps)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("evaluate policies: not done within %s: %w", s.opts.Timeout, err)
	}
	return fmt.Errorf("evaluate policies: %w", err)
}

// evalError names the place at which OPA gave up.
func evalError(err error) error {
	var e *topdown.Error
	if errors.As(err, &e) && e.Location != nil {
		text := strings.Join(strings.Fields(e.Message), " ")
		return fmt.Errorf("%s:%d: %s", e.Location.File, e.Location.Row, text)
	}
	return fmt.Errorf("evaluate policies: %w", err)
}

// zeros is the seed: no built-in that policies have draws from it.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
