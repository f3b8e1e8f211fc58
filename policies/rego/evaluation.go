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
	ctx   context.Context // ends with the time-out
	query *topdown.Query
	limit *budget
	end   func() // to be called once the query is over
}

// begin makes a query ready, whose results depend on policies, data and input alone. The tracer may
// be nil.
func (s *Set) begin(
	ctx context.Context, body ast.Body, compiler ast.QueryCompiler, in *Input,
	tracer topdown.QueryTracer,
) (*evaluation, error) {
	cancel := func() {}
	if s.opts.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, s.opts.Timeout)
	}
	if err := ctx.Err(); err != nil {
		cancel()
		return nil, s.exceeded(err)
	}
	txn, err := s.store.NewTransaction(ctx)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("read the policies' data: %w", err)
	}
	e := &evaluation{ctx: ctx, limit: &budget{ctx: ctx, left: s.opts.Steps}, end: func() {
		s.store.Abort(ctx, txn)
		cancel()
	}}
	e.query = topdown.NewQuery(body).
		WithQueryCompiler(compiler).
		WithCompiler(s.compiler).
		WithStore(s.store).
		WithTransaction(txn).
		WithInput(ast.NewTerm(in.value)).
		WithTime(in.now.Std()).
		WithSeed(zeros{}).
		WithStrictBuiltinErrors(true).
		WithCancel(e.limit)
	if tracer != nil {
		e.query.WithQueryTracer(tracer)
	}
	return e, nil
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

// placed calls run. Where that took too many steps, or too long, the error begins with the place
// that it had come to: it is run again for that, within the same bounds, and told by a tracer.
func (s *Set) placed(ctx context.Context, run func(topdown.QueryTracer) error) error {
	err := run(nil)
	if ctx.Err() == nil && (errors.Is(err, errSteps) || errors.Is(err, context.DeadlineExceeded)) {
		last := &lastPlace{}
		if again := run(last); again != nil && last.at != nil {
			return fmt.Errorf("%s: %w", place(last.at), err)
		}
	}
	return err
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
