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
	"go.yaml.in/yaml/v3"

	"github.com/tierd/tierd/policies/rego"
)

// TestPolicies runs our policies' own tests, policies/*_test.rego and those of the examples, with
// OPA's tester, and demands that they reach every rule.
func TestPolicies(t *testing.T) {
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

// TestExamples loads the examples with their data, as a user would, and asks them.
func TestExamples(t *testing.T) {
	t.Parallel()
	var list []rego.Module
	for _, path := range glob(t, "../examples/*.rego") {
		list = append(list, rego.Module{Path: path, Source: []byte(read(t, path))})
	}
	var data map[string]any
	if err := yaml.Unmarshal([]byte(read(t, "../examples/holds.yaml")), &data); err != nil {
		t.Fatal(err)
	}
	set, err := rego.Load(list, data, rego.Options{Timeout: rego.NoTimeout})
	if err != nil {
		t.Fatal(err)
	}
	f := segmentOf(25 * hour)
	f.Now += 11 * hour // 19:00 UTC
	d, err := set.Decide(context.Background(), f)
	if err != nil || d.Delete || len(d.Reasons) != 1 || d.Reasons[0].Code != "legal-hold" {
		t.Errorf("a held table: %+v, %v", d, err)
	}
	f.Table.Name = "clicks"
	if d, err = set.Decide(context.Background(), f); err != nil || !d.Delete {
		t.Errorf("a free table: %+v, %v", d, err)
	}
}

// policyFiles are all our .rego files.
func policyFiles(t *testing.T) []string {
	t.Helper()
	return append(glob(t, "../*.rego"), glob(t, "../examples/*.rego")...)
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) < 2 {
		t.Fatalf("%s: found %v (%v)", pattern, paths, err)
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
