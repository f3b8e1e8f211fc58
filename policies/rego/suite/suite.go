package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/tierd/tierd/policies/rego"
)

// Timeout bounds one test.
const Timeout = 30 * time.Second

// Outcome is how a test ended.
type Outcome string

// The outcomes of a test.
const (
	Pass  Outcome = "pass"
	Fail  Outcome = "fail"  // it was false or undefined
	Error Outcome = "error" // it could not be evaluated
	Skip  Outcome = "skip"  // its name begins with todo_test_
)

// Result is one test.
type Result struct {
	Package  string // such as tierd.hold_test
	Name     string
	File     string
	Line     int
	Outcome  Outcome
	Duration time.Duration
	// Cases are the names of the cases that did not pass, of a test with several.
	Cases []string
	// Why says where it ended, for people: an error, or the expression that did not hold with the
	// values in it. It may have several lines.
	Why string
	// Output is what print() wrote.
	Output string
}

// Report is a whole run.
type Report struct {
	Results  []Result // by file, line and name
	Coverage Coverage
}

// Count gives the number of tests that ended so.
func (r *Report) Count(o Outcome) (n int) {
	for i := range r.Results {
		if r.Results[i].Outcome == o {
			n++
		}
	}
	return n
}

// Options choose and bound the tests.
type Options struct {
	// Run limits the tests to those whose full name, such as tierd.hold_test.test_held, it matches.
	Run *regexp.Regexp
	// Load are the options under which the policies must load.
	Load rego.Options
	// Ended is told the name of each test that has ended; nil where nobody listens.
	Ended func(test string)
}

// Run loads the policies as a generation would, and runs their tests. The error is a rego.Errors
// where policies or tests do not compile.
func Run(
	ctx context.Context, modules []rego.Module, data map[string]any, o Options,
) (*Report, error) {
	_, parsed, err := check(modules, data, o.Load)
	if err != nil {
		return nil, err
	}
	store, err := rego.NewStore(data)
	if err != nil {
		return nil, err
	}
	coverage := cover.New()
	runner := newRunner(parsed, store).SetCoverageQueryTracer(coverage).SetCoverageRuns(nil)
	results, err := collect(ctx, runner, o)
	if err != nil {
		return nil, err
	}
	report := &Report{Coverage: coverageOf(coverage.Report(parsed), parsed)}
	for _, r := range results {
		report.Results = append(report.Results, resultOf(r))
	}
	if report.Count(Fail) > 0 {
		// Tracing excludes coverage, and costs: only what does not pass is run again.
		again, err := collect(ctx, newRunner(parsed, store).EnableTracing(true), o)
		if err != nil {
			return nil, err
		}
		for i := range report.Results {
			if report.Results[i].Outcome == Fail && i < len(again) {
				report.Results[i].Why = reached(again[i])
			}
		}
	}
	return report, nil
}

// Check loads policies, compiles their tests and runs nothing. It returns the policies and the
// number of tests. The error is a rego.Errors.
func Check(
	modules []rego.Module, data map[string]any, o rego.Options,
) (set *rego.Set, tests int, err error) {
	set, parsed, err := check(modules, data, o)
	if err != nil {
		return nil, 0, err
	}
	for _, m := range parsed {
		for _, r := range m.Rules {
			if strings.HasPrefix(r.Head.Ref()[0].String(), tester.TestPrefix) {
				tests++
			}
		}
	}
	return set, tests, nil
}

// check loads the policies, and compiles them once more with their tests.
func check(
	modules []rego.Module, data map[string]any, o rego.Options,
) (*rego.Set, map[string]*ast.Module, error) {
	set, err := rego.Load(modules, data, o)
	if err != nil {
		return nil, nil, err
	}
	parsed, err := rego.WithTests(modules)
	if err != nil {
		return nil, nil, err
	}
	c := rego.NewCompiler()
	if c.Compile(parsed); c.Failed() {
		return nil, nil, rego.ErrorsOf(c.Errors)
	}
	return set, parsed, rego.CheckTests(c)
}

func newRunner(modules map[string]*ast.Module, store storage.Store) *tester.Runner {
	return tester.NewRunner().SetCompiler(rego.NewCompiler()).SetModules(modules).
		SetStore(store).SetParallel(1).SetTimeout(Timeout).
		RaiseBuiltinErrors(true)
}

// collect runs the tests, and returns them in a fixed order.
func collect(
	ctx context.Context, runner *tester.Runner, o Options,
) ([]*tester.Result, error) {
	if o.Run != nil {
		runner = runner.Filter(o.Run.String())
	}
	results, err := runner.RunTests(ctx, nil)
	if list := (ast.Errors)(nil); errors.As(err, &list) {
		return nil, rego.ErrorsOf(list)
	}
	if err != nil {
		return nil, fmt.Errorf("run tests: %w", err)
	}
	var out []*tester.Result
	for r := range results {
		out = append(out, r)
		if o.Ended != nil {
			o.Ended(r.Package + "." + r.Name)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("run tests: %w", err)
	}
	slices.SortFunc(out, func(a, b *tester.Result) int {
		return cmp.Or(cmp.Compare(a.Location.File, b.Location.File),
			cmp.Compare(a.Location.Row, b.Location.Row), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

func resultOf(r *tester.Result) Result {
	out := Result{Package: strings.TrimPrefix(r.Package, "data."), Name: r.Name,
		File: r.Location.File, Line: r.Location.Row, Outcome: Pass, Duration: r.Duration,
		Output: string(r.Output)}
	switch {
	case r.Skip:
		out.Outcome = Skip
	case r.Error != nil:
		out.Outcome, out.Why = Error, errorText(r.Error)
	case r.Fail:
		out.Outcome = Fail
	}
	for name, sub := range r.SubResults.Iter {
		if sub.Fail && len(sub.SubResults) == 0 {
			out.Cases = append(out.Cases, strings.Join(name, "/"))
		}
	}
	return out
}

// errorText is the error on one line, after its place.
func errorText(err error) string {
	var e *topdown.Error
	if errors.As(err, &e) && e.Location != nil {
		return fmt.Sprintf("%s:%d: %s", e.Location.File, e.Location.Row,
			strings.Join(strings.Fields(e.Message), " "))
	}
	return err.Error()
}

// reached says at which expression a test ended, with the values in it.
func reached(r *tester.Result) string {
	var last *topdown.Event
	var own []uint64 // queries of the test rule itself
	for _, e := range r.Trace {
		switch node := e.Node.(type) {
		case *ast.Rule:
			if node.Location.Equal(r.Location) {
				own = append(own, e.QueryID)
			}
		case *ast.Expr:
			if e.Op == topdown.FailOp && slices.Contains(own, e.QueryID) {
				last = e
			}
		}
	}
	if last == nil {
		return "it is not true"
	}
	var b strings.Builder
	if err := topdown.PrettyEvent(&b, last, topdown.PrettyEventOpts{PrettyVars: true}); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s:%d: not so:\n%s", last.Location.File, last.Location.Row,
		indented(strings.TrimRight(b.String(), " \n")))
}

// indented moves a text, as a whole, to two spaces from the left.
func indented(text string) string {
	lines := strings.Split(text, "\n")
	left := len(text)
	for _, l := range lines {
		if rest := strings.TrimLeft(l, " \t"); rest != "" {
			left = min(left, len(l)-len(rest))
		}
	}
	for i, l := range lines {
		lines[i] = strings.TrimRight("  "+l[min(left, len(l)):], " ")
	}
	return strings.Join(lines, "\n")
}
