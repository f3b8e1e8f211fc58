package bench_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/policies/rego/bench"
	"github.com/tierd/tierd/runtime/tier"
)

const policy = `package tierd.hold

deny contains sprintf("case %s", [case.id]) if {
	some case in data.cases
	case.table == input.table.name
}
`

func input(t *testing.T) *rego.Input {
	t.Helper()
	text, err := rego.InputJSON(&gate.Facts{Action: tier.DeleteLocal, Now: 1,
		Table: tier.Table{Name: "orders", DisablePolicy: tier.PolicyRetain},
		Log: gate.LogFacts{ID: tier.LogID{Table: "orders", Name: "0"}, Layout: tier.LayoutPlain,
			State: tier.Enabled},
		Safety: gate.SafetyFacts{DropWay: tier.LocalDeleteUnlink}})
	if err != nil {
		t.Fatal(err)
	}
	in, err := rego.ParseInput("input.json", text)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// TestRun: with a clock that goes on by a millisecond at each look, what is measured is exact.
func TestRun(t *testing.T) {
	t.Parallel()
	at := time.Unix(0, 0)
	clock := func() time.Time {
		at = at.Add(time.Millisecond)
		return at
	}
	r, err := bench.Run(context.Background(), []rego.Module{
		{Path: "hold.rego", Source: []byte(policy)},
		{Path: "hold_test.rego", Source: []byte("package tierd.hold_test\ntest_x if true\n")},
	}, map[string]any{"cases": []any{}}, input(t),
		bench.Options{Duration: 40 * time.Millisecond, Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	// Fifty rounds of one look after 16 answers each.
	for name, s := range map[string]bench.Sample{"tierd": r.Tierd, "opa": r.OPA} {
		if s.Answers != 800 || s.Time != time.Millisecond/16 || s.Allocs <= 0 || s.Bytes <= 0 ||
			s.PerSecond() != 16000 {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if r.Ratio() != 1 || r.Steps < 5 {
		t.Errorf("ratio %v, %d steps", r.Ratio(), r.Steps)
	}
}

// TestErrors: nothing is measured of policies that do not load, do not evaluate, or when given up.
func TestErrors(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		ctx    context.Context
		source string
	}{
		"load":     {context.Background(), "package tierd.x\n"},
		"evaluate": {context.Background(), "package tierd.x\ndeny contains 1 + input.now_ns if true"},
		"given up": {over, policy},
	} {
		_, err := bench.Run(c.ctx, []rego.Module{{Path: "x.rego", Source: []byte(c.source)}},
			map[string]any{"cases": []any{}}, input(t), bench.Options{Now: time.Now})
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if errs := (rego.Errors)(nil); errors.As(err, &errs) != (name == "load") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
