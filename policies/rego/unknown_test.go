package rego_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/tier"
)

// conditions are what rules about the fact f may ask for.
var conditions = []string{
	`input.facts.f.x > 5`,
	`not input.facts.f.x`,
	`not input.facts.f.x == 7`,
	`not input.facts.f`,
	`input.facts[input.table.labels.team].x == 7`,
	`some _, v in input.facts
	v.x == 7`,
	`count([1 | input.facts.f.x == 7]) == 0`,
	`object.get(input.facts, ["f", "x"], 7) == 7`,
	`every k in ["x"] { input.facts.f[k] > 3 }`,
	`helper`,
	`not helper`,
	`named(input)`,
	`not named(input)`,
	`walk(input, [_, 7])`,
	`some part in ["facts", "node"]
	input[part].f.x == 7`,
	`object.keys(input.facts) == {"known"}`,
	`count(input.facts) == 1`,
	`json.filter(input, ["facts/f/x"]) == {"facts": {}}`,
	`object.union(input.facts, {"y": 1}).f.x == 7`,
	`not helper with input.facts.f as {"x": 4}`,
	`helper with input as object.union(input, {"segment": {"base": 0}})`,
	`min([v | some v in [object.get(input, ["facts", "f", "x"], 1)]]) == 1`,
	`input.facts.known`,
	`input.table.name == "orders"`,
	`not input.table.name == "orders"`,
	`input.segment.age_ns > 7200000000000`,
}

// values are what f may be.
var values = []any{map[string]any{"x": 7}, map[string]any{"x": 4}, map[string]any{"x": "text"},
	map[string]any{}, []any{}, 5, true, false, nil, "text"}

// TestUnknownIsAnyValue: what goes while a fact is not known would go whatever it is.
func TestUnknownIsAnyValue(t *testing.T) {
	t.Parallel()
	went, stayed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		var source strings.Builder
		source.WriteString("package tierd.x\n\n" +
			"helper if input.facts.f.x == 7\n\nhelper if input.segment.base > 50\n\n" +
			"named(x) if x.facts.f.x == 7\n")
		for i := range rapid.IntRange(1, 4).Draw(t, "rules") {
			kind := rapid.SampledFrom([]string{"deny", "expire"}).Draw(t, "kind")
			body := rapid.SliceOfNDistinct(rapid.SampledFrom(conditions), 1, 3,
				rapid.ID[string]).Draw(t, "body")
			fmt.Fprintf(&source, "\n%s contains \"%d\" if {\n\t%s\n}\n", kind, i,
				strings.Join(body, "\n\t"))
		}
		text := source.String()
		set, err := rego.Load(modules("x.rego", text), nil, rego.Options{Timeout: rego.NoTimeout})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		f := segmentOf(hour * tier.Time(rapid.SampledFrom([]int{1, 3, 25}).Draw(t, "hours")))
		f.Table.Labels["team"] = rapid.SampledFrom([]string{"f", "g"}).Draw(t, "team")
		f.Extern = map[string]any{"known": true}
		f.Unknown = []tier.UnknownFact{{Name: "f", Why: "is missing"}}
		unknown, err := set.Decide(context.Background(), f)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !unknown.Delete {
			stayed++
			return
		}
		went++
		f.Unknown = nil
		for _, v := range values {
			f.Extern = map[string]any{"known": true, "f": v}
			d, err := set.Decide(context.Background(), f)
			if err != nil || !d.Delete {
				t.Fatalf("with f as %v it stays, not known it goes: %+v, %v\n%s", v, d, err, text)
			}
		}
	})
	if went == 0 || stayed == 0 {
		t.Errorf("%d went and %d stayed: nothing was shown", went, stayed)
	}
}

// TestUnknownIsBounded: the time-out also ends what is asked once facts may be anything.
func TestUnknownIsBounded(t *testing.T) {
	t.Parallel()
	set, err := rego.Load(modules("x.rego", "package tierd.x\n\ndeny contains \"x\" if {\n"+
		"\tinput.facts.f == 7\n\tsome i in numbers.range(1, 5000)\n"+
		"\tsome j in numbers.range(1, 5000)\n\ti + j < 0\n}\n"), nil,
		rego.Options{Timeout: 20 * time.Millisecond, Steps: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	f := segmentOf(25 * hour)
	f.Unknown = []tier.UnknownFact{{Name: "f", Why: "is missing"}}
	d, err := set.Decide(context.Background(), f)
	if !errors.Is(err, context.DeadlineExceeded) || d.Delete {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestRecordedFacts: the record has the facts as far as they fit, and what it has not cannot be
// asked about later.
func TestRecordedFacts(t *testing.T) {
	t.Parallel()
	fact := func(bytes int) *rego.Fact {
		made, err := rego.NewFact(strings.Repeat("x", bytes-2)) // and the quotes
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	set, err := rego.Load(nil, nil, rego.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := segmentOf(hour)
	f.Extern = map[string]any{"a": fact(100 << 10), "b": fact(156 << 10), "small": 7}
	whole, err := rego.InputJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	if recorded, err := set.RecordJSON(f); err != nil || string(recorded) != string(whole) {
		t.Errorf("facts of 256 KiB are not recorded as they are: %v", err)
	}
	f.Extern["b"] = fact(156<<10 + 1)
	recorded, err := set.RecordJSON(f)
	if err != nil || len(recorded) > 200<<10 ||
		!strings.Contains(string(recorded), `"$omitted":{"b":{"bytes":159745,"sha256":"`) {
		t.Errorf("%d bytes, %v", len(recorded), err)
	}
	_, err = rego.ParseInput("record 7", recorded)
	if err == nil || !strings.HasPrefix(err.Error(), "record 7: the record was too small for "+
		`some facts, and has only their hashes: {"b":{"bytes":159745,`) {
		t.Errorf("%v", err)
	}
	if _, has := f.Extern["$omitted"]; has {
		t.Error("the facts themselves were changed")
	}
}

// TestNewFact: what is no JSON is refused, and numbers keep their digits.
func TestNewFact(t *testing.T) {
	t.Parallel()
	if _, err := rego.NewFact(map[any]any{1: 2}); err == nil {
		t.Error("a map with numbers for keys was taken")
	}
	for _, c := range []struct {
		document any
		want     string
	}{
		{nil, "it has null, "},
		{[]any{1, []any{true, nil}}, "it has null at [1][1], "},
		{map[string]any{"b": nil, "a": map[string]any{"orders/0": nil}},
			`it has null at .a["orders/0"], `},
	} {
		if _, err := rego.NewFact(c.document); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.document, err, c.want)
		}
	}
	f := segmentOf(25 * hour)
	large, err := rego.NewFact(map[string]any{"offset": uint64(1<<63 + 1)})
	if err != nil {
		t.Fatal(err)
	}
	f.Extern = map[string]any{"f": large}
	set := load(t, "x.rego", "package tierd.x\n\n"+
		"deny contains sprintf(\"%d\", [input.facts.f.offset]) if input.facts.f.offset > 0\n")
	d, err := set.Decide(context.Background(), f)
	if err != nil || d.Delete || d.Reasons[0].Text != "9223372036854775809" {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestNullIsUnknown: null in a fact of a saved input is not known, and what depends on it is kept,
// though null is not "busy".
func TestNullIsUnknown(t *testing.T) {
	t.Parallel()
	set := load(t, "x.rego", "package tierd.x\n\n"+
		"expire contains \"x\" if input.facts.state[input.table.name] != \"busy\"\n")
	f := segmentOf(hour)
	f.Extern = map[string]any{"state": map[string]any{"orders": "STATE"}}
	text, err := rego.InputJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	for state, want := range map[string]string{
		`"idle"`: "true expire 0 unknown",
		`"busy"`: "false local-ttl 0 unknown",
		`null`:   "false local-ttl 1 unknown",
	} {
		saved := strings.Replace(string(text), `"STATE"`, state, 1)
		in, err := rego.ParseInput("saved", []byte(saved))
		if err != nil {
			t.Fatal(err)
		}
		d, err := set.DecideInput(context.Background(), in)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%t %s %d unknown", d.Delete, d.Reasons[0].Code, len(in.Unknown()))
		if got != want {
			t.Errorf("%s: %s, want %s: %+v", state, got, want, d)
		}
	}
}
