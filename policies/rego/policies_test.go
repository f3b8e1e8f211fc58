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

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/tier"
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
	for _, path := range glob(t, "../examples/*/*.rego") {
		list = append(list, rego.Module{Path: path, Source: []byte(read(t, path))})
	}
	data := map[string]any{}
	for _, path := range glob(t, "../examples/*/*.yaml") {
		if err := yaml.Unmarshal([]byte(read(t, path)), &data); err != nil {
			t.Fatal(err)
		}
	}
	set, err := rego.Load(list, data, rego.Options{Timeout: rego.NoTimeout,
		Facts: []string{"offsets"}})
	if err != nil {
		t.Fatal(err)
	}
	remote := func(f *gate.Facts) { f.Action, f.Table.Name = tier.DeleteRemote, "clicks" }
	for name, c := range map[string]struct {
		change func(*gate.Facts)
		delete bool
		code   tier.Code
	}{
		"free":     {func(f *gate.Facts) { f.Table.Name = "clicks" }, true, tier.CodeLocalTTL},
		"held":     {func(f *gate.Facts) { f.Table.Name = "payroll" }, false, "legal-hold"},
		"not read": {func(f *gate.Facts) { f.Table.Name = "orders" }, false, "not-consumed"},
		"disk full": {func(f *gate.Facts) {
			f.Table.Name, f.Table.LocalTTL, f.Node.DiskFreeBytes = "clicks", 0, 9
		}, true, "disk-pressure"},
		"on a Friday": {func(f *gate.Facts) {
			remote(f)
			f.Seg.MaxTime = now - 200*hour
		}, false, "business-hours"},
		"too old": {func(f *gate.Facts) {
			remote(f)
			f.Now -= 20 * hour // Thursday
			f.Seg.MaxTime, f.Table.TTL = now-2000*hour, 0
			f.Table.Labels = map[string]string{"personal_data": "tracking"}
		}, true, "max-age"},
	} {
		f := segmentOf(25 * hour)
		f.Extern = map[string]any{"offsets": map[string]any{
			"billing": map[string]any{"orders/0": 5}}}
		c.change(f)
		d, err := set.Decide(context.Background(), f)
		if err != nil || d.Delete != c.delete || d.Reasons[0].Code != c.code {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
}

// policyFiles are all our .rego files.
func policyFiles(t *testing.T) []string {
	t.Helper()
	return append(append(glob(t, "../*.rego"), glob(t, "../examples/*/*.rego")...),
		"../examples/together_test.rego")
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) < 2 {
		t.Fatalf("%s: found %v (%v)", pattern, paths, err)
	}
	return paths
}

// readExample is the policy of an example.
func readExample(name string) (string, error) {
	b, err := os.ReadFile(filepath.Join("../examples", name, name+".rego"))
	return string(b), err
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
