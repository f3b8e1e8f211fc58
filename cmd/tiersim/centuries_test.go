package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tierd/tierd/sim"
	"github.com/tierd/tierd/sim/report"
)

// TestCenturies: what a long run has simulated is more than 64 bits have of nanoseconds.
func TestCenturies(t *testing.T) {
	t.Parallel()
	p, err := sim.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a := &app{system: system{stdout: &out, stderr: &out}, ctx: t.Context()}
	r := &runner{p: p, from: 1, to: 1, flags: &runFlags{}, stopAt: 1, a: a, sum: report.Run{
		Simulated: 300_000 * 24 * 60 * 60}}
	r.met, r.rules = map[sim.Situation]int{}, make([]sim.RuleSeen, len(p.Config.Policies.Rules()))
	r.try(1)
	a.summary(r.report("x"))
	if !strings.Contains(out.String(), " 3000") || !strings.Contains(out.String(), " days simulated") {
		t.Error(out.String())
	}
}
