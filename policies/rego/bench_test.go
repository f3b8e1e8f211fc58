package rego

import (
	"context"
	"fmt"
	"slices"
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

func benchSet(b testing.TB) (*Set, *gate.Facts) {
	data := map[string]any{"cases": []map[string]string{
		{"table": "payroll", "id": "7"}, {"table": "users", "id": "8"},
	}}
	set, err := Load([]Module{{Path: "hold.rego", Source: []byte(benchPolicy)}}, data,
		Options{Watch: &Watch{}})
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
			MaxTime: now - tier.Time(3*time.Hour), File: tier.Stat{Inode: 7}},
		Node: gate.NodeFacts{DiskFreeBytes: 5000},
		Safety: gate.SafetyFacts{
			Closed: tier.Yes, FirstLocal: tier.Yes, EpochCurrent: tier.Yes, SourceWhole: tier.Yes,
			NotPaused: tier.Yes, OwnsSource: tier.Yes, DropWay: tier.LocalDeleteUnlink,
			Brake: tier.Brake{MaxSegments: 10, MaxBytes: 100_000, Per: time.Hour},
			Proof: gate.Proof{Recorded: tier.Yes, Identity: tier.Yes, Manifest: tier.Yes,
				Objects: tier.Yes, Lineage: tier.Yes, Sound: tier.Yes},
		},
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
	for _, kept := range []bool{false, true} {
		b.Run(fmt.Sprintf("kept=%t", kept), func(b *testing.B) {
			_, f := benchSet(b)
			b.ReportAllocs()
			t := &terms{}
			for b.Loop() {
				if !kept {
					t = &terms{}
				}
				if _, err := inputWith(f, t); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkInputJSON is the input as text, for a record.
func BenchmarkInputJSON(b *testing.B) {
	_, f := benchSet(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := InputJSON(f); err != nil {
			b.Fatal(err)
		}
	}
}

// askOPA is the same question to OPA's own prepared query, with the input ready.
func askOPA(b *testing.B, set *Set, f *gate.Facts) func() {
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
	return func() {
		if rs, err := prepared.Eval(ctx, opa.EvalParsedInput(input)); err != nil || len(rs) != 1 {
			b.Fatal(rs, err)
		}
	}
}

// BenchmarkOPA is OPA's part of BenchmarkGate.
func BenchmarkOPA(b *testing.B) {
	set, f := benchSet(b)
	ask := askOPA(b, set, f)
	b.ReportAllocs()
	for b.Loop() {
		ask()
	}
}

// TestBenchmarkAsksPolicies: the guard lets the facts of the benchmark pass.
func TestBenchmarkAsksPolicies(t *testing.T) {
	t.Parallel()
	if _, f := benchSet(t); len(gate.Guard(f)) > 0 {
		t.Error(gate.Guard(f))
	}
}

// BenchmarkGate asks gate and OPA by turns, so that a busy machine slows down both, and gives the
// medians: guard, input, evaluation, reasons and verdict on the one side, evaluation alone on the
// other. From question to question another segment of the log is asked about.
func BenchmarkGate(b *testing.B) {
	set, f := benchSet(b)
	opa, judge := askOPA(b, set, f), gate.New(set)
	var sides [2][]time.Duration
	for b.Loop() {
		f.Seg.Range.Base = (f.Seg.Range.Base + 1) % 100
		before := time.Now()
		v := judge.Judge(context.Background(), f)
		between := time.Now()
		opa()
		sides[0] = append(sides[0], between.Sub(before))
		sides[1] = append(sides[1], time.Since(between))
		if v.Delete || len(v.Guard) > 0 || v.Digest == "" {
			b.Fatalf("%+v", v)
		}
	}
	for i, unit := range []string{"gate-ns/decision", "opa-ns/decision"} {
		slices.Sort(sides[i])
		b.ReportMetric(float64(sides[i][len(sides[i])/2]), unit)
	}
}

// BenchmarkLoad is a whole generation: the built-in policy and one of a user.
func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		benchSet(b)
	}
}
