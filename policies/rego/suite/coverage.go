package suite

import (
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"

	"github.com/tierd/tierd/policies/rego"
)

// Coverage is which lines of the policies the tests reached. Lines without a rule or an expression
// do not count, nor do tests and the built-in policy.
type Coverage struct {
	Files []FileCoverage // by path
}

// FileCoverage is the coverage of one policy file.
type FileCoverage struct {
	Path      string
	Covered   int     // lines
	Uncovered int     // lines
	Missed    []Lines // the uncovered ones, ascending
}

// Lines are the lines from First up to and including Last.
type Lines struct{ First, Last int }

// Percent is how much of the file is covered; 100 where nothing can be.
func (f *FileCoverage) Percent() float64 { return percent(f.Covered, f.Uncovered) }

// Percent is how much of all files together is covered.
func (c *Coverage) Percent() float64 {
	covered, uncovered := 0, 0
	for _, f := range c.Files {
		covered, uncovered = covered+f.Covered, uncovered+f.Uncovered
	}
	return percent(covered, uncovered)
}

func percent(covered, uncovered int) float64 {
	if covered+uncovered == 0 {
		return 100
	}
	return 100 * float64(covered) / float64(covered+uncovered)
}

func coverageOf(report cover.Report, modules map[string]*ast.Module) (c Coverage) {
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		r := report.Files[path]
		if rego.IsTest(path) || rego.IsBuiltin(path) || rego.IsProperties(modules[path]) || r == nil {
			continue
		}
		f := FileCoverage{Path: path, Covered: r.CoveredLines, Uncovered: r.NotCoveredLines}
		for _, missed := range r.NotCovered {
			f.Missed = addLines(f.Missed, Lines{missed.Start.Row, missed.End.Row})
		}
		c.Files = append(c.Files, f)
	}
	return c
}

// addLines adds lines to ascending ones. Several expressions may share a line, which counts once.
func addLines(list []Lines, l Lines) []Lines {
	if n := len(list); n > 0 && l.First <= list[n-1].Last {
		list[n-1].Last = max(list[n-1].Last, l.Last)
		return list
	}
	return append(list, l)
}
