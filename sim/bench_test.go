package sim

import (
	"context"
	"testing"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/sim/choose"
)

// BenchmarkHistory makes histories of the built-in project, of seeds that do not fail, and says how
// many times the cost of their policy evaluations alone one of them costs.
func BenchmarkHistory(b *testing.B) {
	p, err := Builtin()
	if err != nil {
		b.Fatal(err)
	}
	var operations, steps, crashes, decisions int
	seed := uint64(0)
	for b.Loop() {
		seed++
		out := p.Run(choose.NewRandom(seed%100+1), Options{})
		operations += out.Operations
		steps += out.Effects
		crashes += out.Crashes
		decisions += out.Decisions
	}
	n := float64(b.N)
	b.ReportMetric(float64(operations)/n, "operations/history")
	b.ReportMetric(float64(steps)/n, "effects/history")
	b.ReportMetric(float64(crashes)/n, "crashes/history")
	b.ReportMetric(float64(decisions)/n, "decisions/history")
	b.ReportMetric(n/b.Elapsed().Seconds(), "histories/s")
}

// BenchmarkDecisions asks the policies of the built-in project about one set of facts as often as
// an average history does.
func BenchmarkDecisions(b *testing.B) {
	p, err := Builtin()
	if err != nil {
		b.Fatal(err)
	}
	var facts *gate.Facts
	asked := 0
	for seed := uint64(1); seed <= 20; seed++ {
		out := p.runAsked(choose.NewRandom(seed), func(f *gate.Facts) { facts = f })
		asked += out.Decisions
	}
	for b.Loop() {
		for range asked / 20 {
			if _, err := p.Config.Policies.Decide(context.Background(), facts); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "histories/s")
}

// runAsked makes a history and hands on the facts of its questions.
func (p *Project) runAsked(c choose.Chooser, asked func(*gate.Facts)) *Outcome {
	q := *p
	return q.Run(c, Options{asked: func(f *gate.Facts, e rego.Evaluation) {
		if e.Delete {
			asked(f)
		}
	}})
}

// BenchmarkShrink shrinks one failure: a property that no local segment ever goes.
func BenchmarkShrink(b *testing.B) {
	promises, err := rego.LoadPromises([]rego.Module{{Path: "never.rego", Source: []byte(
		"package tierd.sim\n\nviolation contains \"it goes\" if input.action == \"delete_local\"\n")}},
		nil, rego.Options{Timeout: rego.NoTimeout})
	if err != nil {
		b.Fatal(err)
	}
	p, err := Builtin()
	if err != nil {
		b.Fatal(err)
	}
	p.Promises = promises
	steps := 0
	for b.Loop() {
		_, f := p.Find(3)
		if f == nil {
			b.Fatal("the seed does not fail")
		}
		small := p.Shrink(f, 5000, func() bool { return true })
		steps = len(choose.Steps(small.Scenario.Choices)) - 1
	}
	b.ReportMetric(float64(steps), "steps")
}
