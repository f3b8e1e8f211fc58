package sim

import (
	"context"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/sim/choose"
)

// BenchmarkHistory makes histories of the built-in project, of seeds that do not fail, and after
// each of them asks its policies again what they were asked in it: by turns, so that whatever else
// the machine does slows down both. The heap may grow as in tiersim.
func BenchmarkHistory(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	p, err := Builtin()
	if err != nil {
		b.Fatal(err)
	}
	var operations, steps, crashes []int
	decisions := 0
	var history, evaluations time.Duration
	seed := uint64(0)
	for b.Loop() {
		seed++
		var asked []*gate.Facts
		began := time.Now()
		out := p.Run(choose.NewRandom(seed%100+1), Options{
			asked: func(f *gate.Facts, _ rego.Evaluation) { asked = append(asked, f) }})
		history += time.Since(began)
		began = time.Now()
		for _, f := range asked {
			if _, err := p.Config.Policies.Decide(context.Background(), f); err != nil {
				b.Fatal(err)
			}
		}
		evaluations += time.Since(began)
		operations = append(operations, out.Operations)
		steps = append(steps, out.Effects)
		crashes = append(crashes, out.Crashes)
		decisions += len(asked)
	}
	n := float64(b.N)
	b.ReportMetric(median(operations), "operations/history")
	b.ReportMetric(median(steps), "effects/history")
	b.ReportMetric(median(crashes), "crashes/history")
	b.ReportMetric(float64(decisions)/n, "decisions/history")
	b.ReportMetric(float64(history.Nanoseconds())/n, "ns/history")
	b.ReportMetric(float64(evaluations.Nanoseconds())/n, "evaluations-ns/history")
}

func median(of []int) float64 {
	slices.Sort(of)
	return float64(of[len(of)/2])
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
