package rego

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// evaluation is one query of OPA's about one input, with all that bounds it.
type evaluation struct {
	set    *Set
	ctx    context.Context // of whoever asks; once it has begun, it ends with the time-out too
	in     *Input
	run    func(*evaluation) error // may be called for another evaluation at the same time
	tracer topdown.QueryTracer     // nil where nobody looks
	// every has rules evaluated also where their index says that they cannot have a result.
	every bool
	limit budget
	query *topdown.Query
	end   func() // to be called once the query is over

	// What run came to. It is in here, because a Watch runs what hangs once more: what the one says
	// must never be taken for what the other does.
	found []ast.Value // in the order of the asks
	parts []ast.Body

	slot  int // in Watch.running
	looks int // of the Watch, since it began
	// seen is what was left of its steps at the last look, where steps alone bound it: looks begin
	// anew with each step.
	seen int64
}

// evaluate runs an evaluation, in sight of the Watch.
func (s *Set) evaluate(e *evaluation) error {
	e.set = s
	e.limit.left.Store(s.opts.Steps)
	if err := s.Hung(); err != nil {
		return err
	}
	err := s.watched(e)
	if hung := s.Hung(); hung != nil {
		return hung // it has been said to decide nothing any more
	}
	return err
}

// watched runs an evaluation, and takes it out of the Watch also where OPA panics and somebody
// recovers.
func (s *Set) watched(e *evaluation) error {
	s.opts.Watch.enter(e)
	defer s.opts.Watch.leave(e)
	return e.run(e)
}

// steps is how many steps it took.
func (e *evaluation) steps() int64 { return e.set.opts.Steps - max(e.limit.left.Load(), 0) }

// begin makes a query ready, whose results depend on policies, data and input alone.
func (s *Set) begin(e *evaluation, body ast.Body, compiler ast.QueryCompiler) error {
	ctx, cancel := e.ctx, func() {}
	if s.opts.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, s.opts.Timeout)
	}
	if err := ctx.Err(); err != nil {
		cancel()
		return s.exceeded(err)
	}
	txn, err := s.store.NewTransaction(ctx)
	if err != nil {
		cancel()
		return fmt.Errorf("read the policies' data: %w", err)
	}
	e.end = func() {
		s.store.Abort(ctx, txn)
		cancel()
	}
	e.limit.ctx = ctx
	e.query = topdown.NewQuery(body).
		WithQueryCompiler(compiler).
		WithCompiler(s.compiler).
		WithStore(s.store).
		WithTransaction(txn).
		WithInput(ast.NewTerm(e.in.value)).
		WithTime(e.in.now.Std()).
		WithSeed(zeros{}).
		WithStrictBuiltinErrors(true).
		WithIndexing(!e.every).
		WithCancel(&e.limit)
	if e.tracer != nil {
		e.query.WithQueryTracer(e.tracer)
	}
	return nil
}

// failure is why a query has no results: what bounds it, or what OPA says.
func (s *Set) failure(e *evaluation, err error) error {
	switch {
	case e.limit.err != nil:
		return s.exceeded(e.limit.err)
	case err != nil:
		return evalError(err)
	}
	return nil
}

// exceeded puts the end of an evaluation into words that say what was exceeded.
func (s *Set) exceeded(err error) error {
	switch {
	case errors.Is(err, errSteps):
		return fmt.Errorf("evaluate policies: %w (at most %d)", err, s.opts.Steps)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("evaluate policies: not done within %s: %w", s.opts.Timeout, err)
	}
	return fmt.Errorf("evaluate policies: %w", err)
}

// placed evaluates by run. Where that took too many steps, or too long, the error begins with the
// place that it had come to: it is run again for that, within the same bounds, and told by a
// tracer.
func (s *Set) placed(ctx context.Context, in *Input, run func(*evaluation) error) (*evaluation,
	error) {
	first := &evaluation{ctx: ctx, in: in, run: run}
	err := s.evaluate(first)
	if ctx.Err() == nil && (errors.Is(err, errSteps) || errors.Is(err, context.DeadlineExceeded)) {
		last := &lastPlace{}
		again := s.evaluate(&evaluation{ctx: ctx, in: in, run: run, tracer: last})
		if again != nil && last.at != nil {
			err = fmt.Errorf("%s: %w", place(last.at), err)
		}
	}
	return first, err
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
