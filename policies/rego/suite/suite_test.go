package suite_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"

	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/policies/rego/suite"
)

// TestRun runs testdata/run: the input is policies and tests as "-- path --" sections, a section
// data.yaml is the data; run=REGEXP chooses tests.
func TestRun(t *testing.T) {
	t.Parallel()
	datadriven.RunTest(t, "testdata/run", func(t *testing.T, d *datadriven.TestData) string {
		var modules []rego.Module
		var data map[string]any
		for _, f := range txtar.Parse([]byte(d.Input + "\n")).Files {
			if f.Name == "data.yaml" {
				if err := yaml.Unmarshal(f.Data, &data); err != nil {
					d.Fatalf(t, "%v", err)
				}
				continue
			}
			modules = append(modules, rego.Module{Path: f.Name, Source: f.Data})
		}
		if d.Cmd == "check" {
			_, n, err := suite.Check(modules, data, rego.Options{})
			if err != nil {
				return err.Error() + "\n"
			}
			return fmt.Sprintf("%d tests\n", n)
		}
		var o suite.Options
		for _, arg := range d.CmdArgs {
			o.Run = regexp.MustCompile(arg.Vals[0])
		}
		report, err := suite.Run(context.Background(), modules, data, o)
		if err != nil {
			return err.Error() + "\n"
		}
		return reportText(report)
	})
}

func reportText(r *suite.Report) string {
	var b strings.Builder
	for _, x := range r.Results {
		fmt.Fprintf(&b, "%s:%d: %s.%s: %s\n", x.File, x.Line, x.Package, x.Name, x.Outcome)
		for _, name := range x.Cases {
			fmt.Fprintf(&b, "  case %s\n", name)
		}
		for line := range strings.Lines(x.Why + x.Output) {
			fmt.Fprintf(&b, "  %s\n", strings.TrimRight(line, " \n"))
		}
	}
	for _, f := range r.Coverage.Files {
		fmt.Fprintf(&b, "%s: %.1f%%, missed %v\n", f.Path, f.Percent(), f.Missed)
	}
	fmt.Fprintf(&b, "%.1f%%\n", r.Coverage.Percent())
	return b.String()
}

// TestStops: a run that is given up says so, and claims nothing.
func TestStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	modules := []rego.Module{{Path: "x_test.rego", Source: []byte("package tierd.x_test\n" +
		"test_x if true\n")}}
	if r, err := suite.Run(ctx, modules, nil, suite.Options{}); err == nil {
		t.Errorf("a report without a run: %+v", r)
	}
}
