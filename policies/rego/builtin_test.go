package rego_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/format"
	"github.com/open-policy-agent/opa/v1/tester"
)

// TestBuiltin runs policies/*_test.rego with OPA's own tester, and demands that every rule of the
// built-in policy was evaluated.
func TestBuiltin(t *testing.T) {
	t.Parallel()
	parsed := map[string]*ast.Module{}
	opts := ast.ParserOptions{RegoVersion: ast.RegoV1}
	for _, path := range policyFiles(t) {
		m, err := ast.ParseModuleWithOpts(path, read(t, path), opts)
		if err != nil {
			t.Fatal(err)
		}
		parsed[path] = m
	}
	coverage := cover.New()
	results, err := tester.NewRunner().SetModules(parsed).SetParallel(1).
		RaiseBuiltinErrors(true).SetCoverageQueryTracer(coverage).
		RunTests(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	passed := 0
	for r := range results {
		if !r.Pass() {
			t.Errorf("%s:%d: %s: %v", r.Location.File, r.Location.Row, r.Name, r.Error)
		}
		passed++
	}
	if passed == 0 {
		t.Fatal("no test was found")
	}
	for path, report := range coverage.Report(parsed).Files {
		for _, lines := range report.NotCovered {
			t.Errorf("%s:%d: no test reaches this", path, lines.Start.Row)
		}
	}
}

// TestFormat demands that our policies look as opa fmt leaves them.
func TestFormat(t *testing.T) {
	t.Parallel()
	for _, path := range policyFiles(t) {
		source := read(t, path)
		formatted, err := format.SourceWithOpts(path, []byte(source),
			format.Opts{RegoVersion: ast.RegoV1})
		if err != nil {
			t.Fatal(err)
		}
		if string(formatted) != source {
			t.Errorf("%s is not formatted; opa fmt gives\n%s", path, formatted)
		}
	}
}

// policyFiles are the .rego files of package policies.
func policyFiles(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("../*.rego")
	if err != nil || len(paths) < 2 {
		t.Fatalf("policies: found %v (%v)", paths, err)
	}
	return paths
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
