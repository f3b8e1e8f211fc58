package main

import (
	"context"
	"time"

	"github.com/tierd/tierd/policies/rego/bench"
)

// policyBenchCmd measures decisions.
type policyBenchCmd struct {
	output
	policyInput
	Duration time.Duration `default:"2s" help:"How long to measure."`
}

// Help gives examples.
func (c *policyBenchCmd) Help() string {
	return `Decides on one input again and again, in turns with OPA's own evaluation of the same
rules, on one core. What is measured begins with the input ready and ends with the verdict.

Examples:

	tierd policy bench orders/0@1042
	tierd policy bench input.json -p policies/ --duration 10s`
}

// benched is what policy bench prints as JSON.
type benched struct {
	Decision sample  `json:"decision"`
	OPA      sample  `json:"opa"`
	Ratio    float64 `json:"ratio"`
	Steps    int64   `json:"steps"`
}

// sample is the cost of one answer.
type sample struct {
	PerSecond float64 `json:"per_second"`
	Seconds   float64 `json:"seconds"`
	Allocs    int64   `json:"allocations"`
	Bytes     int64   `json:"bytes"`
	Answers   int     `json:"measured"`
}

// Run measures and prints.
func (c *policyBenchCmd) Run(a *app) error {
	s, q, err := c.load(a)
	if err != nil {
		return err
	}
	if c.Duration <= 0 || c.Duration > time.Hour {
		return usagef("--duration %s: want more than 0 and at most 1h", c.Duration)
	}
	var r *bench.Report
	err = s.ask(a.ctx, func(ctx context.Context) (err error) {
		r, err = bench.Run(ctx, s.modules, s.data, q.input,
			bench.Options{Duration: c.Duration, Now: time.Now, Watch: s.options.Watch})
		return err
	})
	if err != nil {
		return err
	}
	out := benched{Decision: sampleOf(r.Tierd), OPA: sampleOf(r.OPA), Ratio: r.Ratio(),
		Steps: r.Steps}
	return c.print(a, out, func(p *page) {
		p.line("decision  %8.0f/s  %8s  %5d allocations  %8s  %d steps", out.Decision.PerSecond,
			r.Tierd.Time, r.Tierd.Allocs, humanBytes(r.Tierd.Bytes), r.Steps)
		p.line("OPA       %8.0f/s  %8s  %5d allocations  %8s", out.OPA.PerSecond, r.OPA.Time,
			r.OPA.Allocs, humanBytes(r.OPA.Bytes))
		p.line("a decision takes %.2f times OPA's own evaluation", out.Ratio)
	})
}

func sampleOf(s bench.Sample) sample {
	return sample{PerSecond: s.PerSecond(), Seconds: s.Time.Seconds(), Allocs: s.Allocs,
		Bytes: s.Bytes, Answers: s.Answers}
}
