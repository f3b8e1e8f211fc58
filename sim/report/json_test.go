package report_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/tierd/tierd/sim/report"
)

// TestEveryFieldIsDocumented looks for each field of a run's JSON in the part of docs/json.md that
// is about it, and for one in that part that no run has.
func TestEveryFieldIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(text), "\n## A run of tiersim\n")
	if !found {
		t.Fatal("docs/json.md has no part about a run of tiersim")
	}
	part, _, _ = strings.Cut(part, "\n## ")
	known := map[string]bool{}
	var walk func(reflect.Type)
	walk = func(x reflect.Type) {
		if x.Kind() == reflect.Slice {
			x = x.Elem()
		}
		if x.Kind() != reflect.Struct {
			return
		}
		for i := range x.NumField() {
			name := x.Field(i).Tag.Get("json")
			if name == "-" {
				continue
			}
			known[name] = true
			if !strings.Contains(part, "`"+name+"`") {
				t.Errorf("docs/json.md says nothing of %s.%s", x.Name(), name)
			}
			walk(x.Field(i).Type)
		}
	}
	walk(reflect.TypeFor[report.Run]())
	for line := range strings.Lines(part) {
		cell, isRow := strings.CutPrefix(line, "| `")
		if !isRow {
			continue
		}
		cell, _, _ = strings.Cut(cell, "` |")
		for _, name := range strings.Split(cell, "`, `") {
			if !known[name] {
				t.Errorf("docs/json.md has a field %s, and a run has none", name)
			}
		}
	}
}

// TestJSONOfNothing: by the rules of docs/json.md each field is there, what there is none of is
// null, and lists are lists. A text is as it was.
func TestJSONOfNothing(t *testing.T) {
	t.Parallel()
	const said = `the case is "": ""` + "\n"
	run := report.Run{Failures: []report.Failure{{Text: said}}}
	text, err := run.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	check := func(name string, got any, want any) {
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %#v, want %#v", name, got, want)
		}
	}
	x := reflect.TypeFor[report.Run]()
	for i := range x.NumField() {
		name := x.Field(i).Tag.Get("json")
		if name == "-" {
			continue
		}
		value, there := got[name]
		switch x.Field(i).Type.Kind() {
		case reflect.Slice:
			if _, list := value.([]any); !list {
				t.Errorf("%s is %v, want a list", name, value)
			}
		case reflect.String:
			check(name, value, nil)
		}
		if !there {
			t.Errorf("%s is not there", name)
		}
	}
	failure := got["failures"].([]any)[0].(map[string]any)
	check("failures.text", failure["text"], said)
	check("failures.steps", failure["steps"], []any{})
	check("failures.decided_by", failure["decided_by"], nil)
	if run.Failures[0].Steps != nil || run.Rules != nil {
		t.Error("the run itself was changed")
	}
}
