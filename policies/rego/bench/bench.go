// Package bench measures what a decision costs, beside OPA's own evaluation of the same rules.
package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	opa "github.com/open-policy-agent/opa/v1/rego"

	"github.com/tierd/tierd/policies/rego"
)

// Sample is the cost of one answer.
type Sample struct {
	Answers int           // how many were measured
	Time    time.Duration // of one, the median over the rounds
	Allocs  int64         // heap objects of one
	Bytes   int64         // heap bytes of one
}

// PerSecond is how many answers one worker gives.
func (s *Sample) PerSecond() float64 {
	if s.Time <= 0 {
		return 0
	}
	return float64(time.Second) / float64(s.Time)
}

// Report is what was measured.
type Report struct {
	// Tierd is a decision on an input that is ready: the bounded evaluation of numbered rules, the
	// reasons, and the verdict.
	Tierd Sample
	// OPA is the evaluation of the rules as they are written by OPA's prepared query, with the
	// input ready too. It only fetches the sets.
	OPA Sample
	// Steps is how many evaluation steps a decision takes.
	Steps int64
}

// Ratio is how much longer a decision takes than OPA's own evaluation.
func (r *Report) Ratio() float64 { return float64(r.Tierd.Time) / float64(max(r.OPA.Time, 1)) }

// Options bound the measurement.
type Options struct {
	Duration time.Duration    // of the whole; 0: one second
	Now      func() time.Time // the clock to measure with
	Watch    *rego.Watch      // that looks at decisions; nil where nobody does
}

// rounds is how often the two take turns: often, so that a busy machine slows down both, and the
// median tells of neither's bad moments.
const rounds = 50

// Run measures decisions of the policies on the input. The error is a rego.Errors where they do not
// load, or that of the first decision.
func Run(
	ctx context.Context, modules []rego.Module, data map[string]any, in *rego.Input, o Options,
) (*Report, error) {
	set, err := rego.Load(modules, data, rego.Options{Watch: o.Watch})
	if err != nil {
		return nil, err
	}
	first, err := set.Evaluate(ctx, in)
	if err != nil {
		return nil, err
	}
	theirs, err := plain(ctx, set, modules, data, in)
	if err != nil {
		return nil, err
	}
	ours := func() error {
		_, err := set.DecideInput(ctx, in)
		return err
	}
	if o.Duration <= 0 {
		o.Duration = time.Second
	}
	report := &Report{Steps: first.Steps}
	var tierd, peer []Sample
	for range rounds {
		for _, side := range []struct {
			ask func() error
			to  *[]Sample
		}{{ours, &tierd}, {theirs, &peer}} {
			s, err := measure(ctx, o.Duration/(2*rounds), o.Now, side.ask)
			if err != nil {
				return nil, err
			}
			*side.to = append(*side.to, s)
		}
	}
	report.Tierd, report.OPA = median(tierd), median(peer)
	return report, nil
}

// plain returns what asks OPA itself.
func plain(
	ctx context.Context, set *rego.Set, modules []rego.Module, data map[string]any, in *rego.Input,
) (func() error, error) {
	modules = slices.DeleteFunc(slices.Clone(modules), func(m rego.Module) bool {
		return rego.IsTest(m.Path)
	})
	parsed, err := rego.WithTests(modules)
	if err != nil {
		return nil, err
	}
	store, err := rego.NewStore(data)
	if err != nil {
		return nil, err
	}
	compiler := ast.NewCompiler()
	if compiler.Compile(parsed); compiler.Failed() {
		return nil, rego.ErrorsOf(compiler.Errors)
	}
	query, err := opa.New(opa.Compiler(compiler), opa.Store(store),
		opa.Query(set.Question(in.Action())), opa.StrictBuiltinErrors(true)).PrepareForEval(ctx)
	if err != nil {
		return nil, fmt.Errorf("prepare OPA's query: %w", err)
	}
	return func() error {
		found, err := query.Eval(ctx, opa.EvalParsedInput(in.Value()))
		if err == nil && len(found) != 1 {
			err = fmt.Errorf("OPA gave %d results", len(found))
		}
		return err
	}, nil
}

// measure asks again and again for about the given time.
func measure(
	ctx context.Context, long time.Duration, now func() time.Time, ask func() error,
) (Sample, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began, n := now(), 0
	took := time.Duration(0)
	for took < long || n == 0 {
		// A few at a time, so that reading the clock does not count.
		for range 16 {
			if err := ask(); err != nil {
				return Sample{}, err
			}
			n++
		}
		if err := ctx.Err(); err != nil {
			return Sample{}, err
		}
		took = now().Sub(began)
	}
	runtime.ReadMemStats(&after)
	return Sample{Answers: n, Time: took / time.Duration(n),
		Allocs: int64(after.Mallocs-before.Mallocs) / int64(n),
		Bytes:  int64(after.TotalAlloc-before.TotalAlloc) / int64(n)}, nil
}

// median is the sample in the middle by time, with the answers of all.
func median(all []Sample) Sample {
	slices.SortFunc(all, func(a, b Sample) int { return int(a.Time - b.Time) })
	out := all[len(all)/2]
	out.Answers = 0
	for _, s := range all {
		out.Answers += s.Answers
	}
	return out
}
