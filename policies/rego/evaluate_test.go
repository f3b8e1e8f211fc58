package rego_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/tier"
)

// savedInput is the input of the facts, saved and read again.
func savedInput(t *testing.T, f *gate.Facts) *rego.Input {
	t.Helper()
	text, err := rego.InputJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	in, err := rego.ParseInput("input.json", text)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// TestExplain runs testdata/explain: which rules gave a reason, and how far the others came. The
// input and the arguments are those of testdata/decide.
func TestExplain(t *testing.T) {
	t.Parallel()
	datadriven.RunTest(t, "testdata/explain", func(t *testing.T, d *datadriven.TestData) string {
		set, err := loadText(t, d.Input)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		in := savedInput(t, factsOf(t, d))
		e, err := set.Evaluate(context.Background(), in)
		trace, terr := set.Trace(context.Background(), in)
		if terr != nil {
			d.Fatalf(t, "%v", terr)
		}
		var b strings.Builder
		fmt.Fprintf(&b, "delete=%t error=%v\n", e.Delete, err)
		for _, r := range e.Fired {
			fmt.Fprintf(&b, "  fired %s %s: %s\n", r.Answer, r.Rule, r.Text)
		}
		for _, r := range trace.Silent {
			if r.Builtin {
				continue
			}
			fmt.Fprintf(&b, "  silent %s %s", r.Answer, r.Rule)
			if r.At != "" {
				fmt.Fprintf(&b, " at %s: %s", r.At, r.Expr)
			}
			b.WriteByte('\n')
		}
		return b.String()
	})
}

// TestTrace: each kind of trace has the events that it is for, with their places.
func TestTrace(t *testing.T) {
	t.Parallel()
	set := load(t, "hold.rego", `package tierd.hold

deny contains "held" if {
	trace("looked at the name")
	input.table.name == "clicks"
}
`)
	trace, err := set.Trace(context.Background(), savedInput(t, segmentOf(hour)))
	if err != nil || trace.Cut {
		t.Fatalf("cut: %t, %v", trace.Cut, err)
	}
	size := map[string]int{}
	for _, kind := range rego.TraceKinds {
		var b strings.Builder
		trace.Write(&b, kind)
		text := b.String()
		size[kind] = strings.Count(text, "\n")
		if has := strings.Contains(text, `Note "looked at the name"`); has != (kind != "fails") {
			t.Errorf("%s has the note: %t\n%s", kind, has, text)
		}
		if has := strings.Contains(text, "Fail input.table.name"); has != (kind != "notes") {
			t.Errorf("%s has the failure: %t\n%s", kind, has, text)
		}
		if !strings.Contains(text, "hold.rego:3") {
			t.Errorf("%s has no place\n%s", kind, text)
		}
	}
	if size["full"] <= size["fails"] || size["fails"] <= size["notes"] {
		t.Errorf("lines by kind: %v", size)
	}
}

// TestEvaluateIsDecide: a saved input is decided as the facts that it was saved from.
func TestEvaluateIsDecide(t *testing.T) {
	t.Parallel()
	set := load(t, "hold.rego", holdOrders, "disk.rego", diskFull)
	for _, table := range []string{"orders", "clicks"} {
		for hours := range 30 {
			f := segmentOf(hour * tier.Time(hours))
			f.Table.Name = table
			want, err := set.Decide(context.Background(), f)
			if err != nil {
				t.Fatal(err)
			}
			got, err := set.Evaluate(context.Background(), savedInput(t, f))
			if diff := cmp.Diff(want, got.Decision); err != nil || diff != "" {
				t.Errorf("%s, %d hours: %v\n%s", table, hours, err, diff)
			}
			if got.Steps <= 0 || len(got.Fired) == 0 {
				t.Errorf("%s, %d hours: %d steps, fired %v", table, hours, got.Steps, got.Fired)
			}
		}
	}
}

// TestParseInput: what differs from the schema is named, all of it.
func TestParseInput(t *testing.T) {
	t.Parallel()
	good, err := rego.InputJSON(segmentOf(hour))
	if err != nil {
		t.Fatal(err)
	}
	change := func(old, new string) string {
		t.Helper()
		if !strings.Contains(string(good), old) {
			t.Fatalf("%s is not in %s", old, good)
		}
		return strings.ReplaceAll(string(good), old, new)
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "in.json: no JSON: EOF"},
		{"cut", string(good[:len(good)/2]), "in.json: no JSON: unexpected EOF"},
		{"two", string(good) + "{}",
			"in.json: more than one JSON value: want one input, as the audit record has it"},
		{"list", "[]", "in.json: input: want an object, got []"},
		{"misspelt and missing", change(`"age_ns"`, `"age"`),
			"in.json: input.segment has no field \"age\"; did you mean \"age_ns\"?\n" +
				"in.json: input.segment.age_ns is missing"},
		{"word", change(`"delete_local"`, `"delete-local"`),
			`in.json: input.action is "delete-local"; did you mean "delete_local"?`},
		{"type", change(`"verified":true`, `"verified":"yes"`),
			`in.json: input.segment.verified: want true or false, got "yes"`},
		{"fraction", change(`"base":0`, `"base":0.5`),
			"in.json: input.segment.base: want a whole number of 64 bits, got 0.5"},
		{"negative", change(`"tier_epoch":1`, `"tier_epoch":-1`),
			"in.json: input.log.tier_epoch: want at least 0, got -1"},
		{"label", change(`"payments"`, `{"a":"0123456789012345678901234567890123456789"}`),
			`in.json: input.table.labels.team: want a string, got ` +
				`{"a":"0123456789012345678901234567890123...`},
		{"text", change(`"id":"orders/0"`, `"id":7`),
			"in.json: input.log.id: want a string, got 7"},
	} {
		_, err := rego.ParseInput("in.json", []byte(c.text))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got\n%v\nwant\n%s", c.name, err, c.want)
		}
	}
}

// FuzzParseInput: no text makes it panic, and what it takes can be decided on.
func FuzzParseInput(f *testing.F) {
	good, err := rego.InputJSON(segmentOf(hour))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(good))
	f.Add(`{"action":"delete_local","now_ns":1e3}`)
	set, err := rego.Load(nil, nil, rego.Options{Timeout: rego.NoTimeout})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in, err := rego.ParseInput("in.json", []byte(text))
		if err != nil {
			return
		}
		e, err := set.Evaluate(context.Background(), in)
		if err == nil && len(e.Reasons) == 0 {
			t.Errorf("no reason for %s", text)
		}
	})
}
