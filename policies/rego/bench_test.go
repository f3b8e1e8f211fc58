package rego

import (
	"context"
	"testing"
	"time"

	opa "github.com/open-policy-agent/opa/v1/rego"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/tier"
)

const benchPolicy = `package tierd.hold

deny contains reason if {
	some case in data.cases
	case.table == input.table.name
	reason := sprintf("held for %s", [case.id])
}

expire contains "the disk is nearly full" if input.node.disk_free_bytes < 1000
`

func benchSet(b *testing.B) (*Set, *gate.Facts) {
	data := map[string]any{"cases": []map[string]string{
		{"table": "payroll", "id": "7"}, {"table": "users", "id": "8"},
	}}
	set, err := Load([]Module{{Path: "hold.rego", Source: []byte(benchPolicy)}}, data, Options{})
	if err != nil {
		b.Fatal(err)
	}
	now := tier.Time(1_800_000_000_000_000_000)
	return set, &gate.Facts{
		Action: tier.DeleteLocal, Now: now,
		Table: tier.Table{Name: "orders", TTL: 168 * time.Hour, LocalTTL: 24 * time.Hour,
			DisablePolicy: tier.PolicyRetain, Tiering: true},
		Log: gate.LogFacts{ID: tier.LogID{Table: "orders", Name: "0"}, Layout: tier.LayoutPlain,
			State: tier.Enabled, Epoch: 1, Copied: 300},
		Seg: gate.SegmentFacts{Range: tier.Range{Base: 0, Next: 100}, Bytes: 1000,
			MaxTime: now - tier.Time(3*time.Hour)},
		Node:   gate.NodeFacts{DiskFreeBytes: 5000},
		Safety: gate.SafetyFacts{DropWay: tier.LocalDeleteUnlink},
	}
}

// BenchmarkDecide is a whole decision: input, evaluation, reasons.
func BenchmarkDecide(b *testing.B) {
	set, f := benchSet(b)
	b.ReportAllocs()
	for b.Loop() {
		if d, err := set.Decide(context.Background(), f); err != nil || d.Delete {
			b.Fatalf("%+v, %v", d, err)
		}
	}
}

// BenchmarkInput is the part of it that builds the input.
func BenchmarkInput(b *testing.B) {
	_, f := benchSet(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := inputOf(f); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOPA is the same question to OPA's own prepared query, with the input ready.
func BenchmarkOPA(b *testing.B) {
	set, f := benchSet(b)
	ctx := context.Background()
	input, err := inputOf(f)
	if err != nil {
		b.Fatal(err)
	}
	prepared, err := opa.New(opa.Compiler(set.compiler), opa.Store(set.store),
		opa.ParsedQuery(question(set.asks(tier.DeleteLocal))), opa.StrictBuiltinErrors(true)).
		PrepareForEval(ctx)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if rs, err := prepared.Eval(ctx, opa.EvalParsedInput(input)); err != nil || len(rs) != 1 {
			b.Fatal(rs, err)
		}
	}
}

// BenchmarkLoad is a whole generation: the built-in policy and one of a user.
func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		benchSet(b)
	}
}
