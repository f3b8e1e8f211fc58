package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/tierd/tierd/policies/rego/suite"
	"github.com/tierd/tierd/runtime/api"
)

// policyTestCmd runs the tests of policies.
type policyTestCmd struct {
	policyFiles
	Match     string  `name:"run" placeholder:"REGEXP" help:"Only tests whose full name, such as tierd.hold_test.test_held, it matches."`
	Coverage  bool    `help:"Also show which lines of the policies no test reaches."`
	Threshold float64 `placeholder:"PERCENT" help:"Fail if the tests reach less of the policies."`
	Verbose   bool    `short:"v" help:"Also list the tests that pass."`
	Output    string  `short:"o" default:"table" enum:"table,json,yaml,junit,tap,github" env:"TIERD_OUTPUT" help:"Form of what is printed: ${enum}."`
}

// Help gives examples.
func (c *policyTestCmd) Help() string {
	return `Loads the policies as the daemon would, then runs the rules that begin with test_ in the
files that end in _test.rego. A test passes if it is true.

Exit code: 0 if there are tests and all pass, 1 if one does not, if there is none, or if coverage is
below the threshold, 2 if policies or tests do not compile or there is no policy.

Examples:

	tierd policy test
	tierd policy test policies/ --coverage --threshold 100
	tierd policy test policies/ --run legal_hold -v
	tierd policy test policies/ -o junit >policies.xml`
}

// Run runs the tests and prints how they ended.
func (c *policyTestCmd) Run(a *app) error {
	s, err := c.load(a)
	if err != nil {
		return err
	}
	if !(c.Threshold >= 0 && c.Threshold <= 100) { // also where it is no number
		return usagef("--threshold %g: want a percentage from 0 to 100", c.Threshold)
	}
	o := suite.Options{Load: s.options}
	if c.Match != "" {
		if o.Run, err = regexp.Compile(c.Match); err != nil {
			return usagef("--run: %v", err)
		}
	}
	r, err := runTests(a.ctx, s, o)
	if err == nil {
		err = c.show(a, r)
	}
	if err == nil {
		err = c.judge(r)
	}
	if c.Output == "github" {
		err = errors.Join(err, writeGitHubError(a.stdout, err))
	}
	return err
}

// testPatience is how long no test may end; each has a time-out of its own.
const testPatience = suite.Timeout + 10*time.Second

// runTests runs the tests. OPA ends one that takes too long between two expressions: where a single
// one takes for ever, the error says so, and the run is left behind.
func runTests(ctx context.Context, s *policySource, o suite.Options) (*suite.Report, error) {
	type outcome struct {
		report *suite.Report
		err    error
	}
	ended := make(chan string)
	o.Ended = func(test string) { ended <- test }
	done := make(chan outcome, 1)
	go func() {
		r, err := suite.Run(ctx, s.modules, s.data, o)
		done <- outcome{r, err}
	}()
	for last := "the beginning"; ; {
		select {
		case r := <-done:
			return r.report, r.err
		case last = <-ended:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(testPatience):
			return nil, &checkError{fmt.Errorf("no test has ended for %s, since %s: an expression of the "+
				"next one takes for ever", testPatience, last)}
		}
	}
}

// judge says why the run is no success.
func (c *policyTestCmd) judge(r *suite.Report) error {
	bad := r.Count(suite.Fail) + r.Count(suite.Error)
	percent := r.Coverage.Percent()
	switch {
	case len(r.Results) == r.Count(suite.Skip) && c.Match != "":
		return &checkError{fmt.Errorf("no test was run: none that --run %q matches", c.Match)}
	case len(r.Results) == r.Count(suite.Skip):
		return &checkError{fmt.Errorf("no test was run: want rules test_* in files *_test.rego")}
	case bad > 0:
		return errCheck
	case percent < c.Threshold:
		return &checkError{fmt.Errorf("coverage is %.1f%%, below the threshold of %g%%",
			percent, c.Threshold)}
	}
	return nil
}

func (c *policyTestCmd) show(a *app, r *suite.Report) error {
	switch c.Output {
	case "junit":
		return writeJUnit(a.stdout, r)
	case "tap":
		return writeTAP(a.stdout, r)
	case "github":
		return writeGitHub(a.stdout, r, c.Threshold)
	}
	return output{c.Output}.print(a, policyTestJSON(r), func(p *page) { c.table(p, r) })
}

func (c *policyTestCmd) table(p *page, r *suite.Report) {
	for i := range r.Results {
		t := &r.Results[i]
		switch {
		case t.Outcome == suite.Fail || t.Outcome == suite.Error:
			word := strings.ToUpper(string(t.Outcome))
			p.alarm("%s %s (%s:%d)", word, testName(t), t.File, t.Line)
			p.indented(details(t))
		case c.Verbose || t.Outcome == suite.Skip:
			p.line("%s %s (%s:%d)", t.Outcome, testName(t), t.File, t.Line)
			p.indented(t.Output)
		}
	}
	if c.Coverage || r.Coverage.Percent() < c.Threshold {
		rows := make([]string, len(r.Coverage.Files))
		for i, f := range r.Coverage.Files {
			rows[i] = row(f.Path, fmt.Sprintf("%.1f%%", f.Percent()), missedLines(f.Missed))
		}
		p.table("FILE\tCOVERAGE\tNOT REACHED", rows)
	}
	p.line("%s", summary(r))
}

// summary counts the outcomes.
func summary(r *suite.Report) string {
	text := fmt.Sprintf("%d passed", r.Count(suite.Pass))
	for _, o := range []suite.Outcome{suite.Fail, suite.Error, suite.Skip} {
		if n := r.Count(o); n > 0 {
			text += fmt.Sprintf(", %d %s", n, map[suite.Outcome]string{
				suite.Fail: "failed", suite.Error: "in error", suite.Skip: "skipped"}[o])
		}
	}
	return text + fmt.Sprintf(", coverage %.1f%%", r.Coverage.Percent())
}

func testName(t *suite.Result) string { return t.Package + "." + t.Name }

// details is all that is known of why a test did not pass.
func details(t *suite.Result) string {
	var b strings.Builder
	for _, name := range t.Cases {
		fmt.Fprintf(&b, "case %q\n", name)
	}
	if t.Why != "" {
		b.WriteString(t.Why + "\n")
	}
	b.WriteString(t.Output)
	return b.String()
}

// missedLines gives lines and ranges of lines.
func missedLines(list []suite.Lines) string {
	if len(list) == 0 {
		return "-"
	}
	var parts []string
	for i := 0; i < len(list); i++ {
		first, last := list[i].First, list[i].Last
		for i+1 < len(list) && list[i+1].First <= last+1 {
			i++
			last = max(last, list[i].Last)
		}
		if first == last {
			parts = append(parts, fmt.Sprint(first))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", first, last))
		}
	}
	return strings.Join(parts, " ")
}

// policyTested is what policy test prints as JSON.
type policyTested struct {
	Passed   int                  `json:"passed"`
	Failed   int                  `json:"failed"`
	Errors   int                  `json:"errors"`
	Skipped  int                  `json:"skipped"`
	Tests    api.List[testResult] `json:"tests"`
	Coverage testCoverage         `json:"coverage"`
}

type testResult struct {
	Package string           `json:"package"`
	Name    string           `json:"name"`
	File    string           `json:"file"`
	Line    int              `json:"line"`
	Outcome suite.Outcome    `json:"outcome"`
	Seconds float64          `json:"seconds"`
	Cases   api.List[string] `json:"cases"`
	Why     *string          `json:"why"`
	Output  *string          `json:"output"`
}

type testCoverage struct {
	Percent float64                `json:"percent"`
	Files   api.List[fileCoverage] `json:"files"`
}

type fileCoverage struct {
	Path      string              `json:"path"`
	Percent   float64             `json:"percent"`
	Covered   int                 `json:"covered_lines"`
	Uncovered int                 `json:"uncovered_lines"`
	Missed    api.List[lineRange] `json:"missed"`
}

type lineRange struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

func policyTestJSON(r *suite.Report) policyTested {
	out := policyTested{Passed: r.Count(suite.Pass), Failed: r.Count(suite.Fail),
		Errors: r.Count(suite.Error), Skipped: r.Count(suite.Skip),
		Coverage: testCoverage{Percent: r.Coverage.Percent()}}
	for _, t := range r.Results {
		out.Tests = append(out.Tests, testResult{Package: t.Package, Name: t.Name, File: t.File,
			Line: t.Line, Outcome: t.Outcome, Seconds: t.Duration.Seconds(), Cases: t.Cases,
			Why: orNull(t.Why), Output: orNull(t.Output)})
	}
	for _, f := range r.Coverage.Files {
		file := fileCoverage{Path: f.Path, Percent: f.Percent(), Covered: f.Covered,
			Uncovered: f.Uncovered}
		for _, l := range f.Missed {
			file.Missed = append(file.Missed, lineRange(l))
		}
		out.Coverage.Files = append(out.Coverage.Files, file)
	}
	return out
}
