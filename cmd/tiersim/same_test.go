package main

import (
	"bytes"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/sim"
)

// TestNotDeterministic: settings that are others each time they are looked at make two runs of one
// seed differ, and check says so by exit code 4.
func TestNotDeterministic(t *testing.T) {
	t.Parallel()
	p, err := sim.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	tables := p.Config.Tables
	var looks atomic.Int64
	p.Config.Tables = func(name string) (tier.Table, bool) {
		table, ok := tables(name)
		table.LocalTTL = time.Duration(looks.Add(1)%977) * time.Minute
		return table, ok
	}
	var out bytes.Buffer
	a := &app{system: system{stdout: &out, stderr: &out}, ctx: t.Context()}
	c := &checkCmd{projectFlags: projectFlags{Builtin: true}, AllowVacuous: true}
	r := &runner{p: p, from: repeatEvery, to: repeatEvery, flags: &c.runFlags, stopAt: 2, a: a}
	r.run()
	report := r.report(c.subject())
	report.Failures = nil // the oracle may have seen it, too
	var ended *verdict
	if err := c.finish(a, report); !errors.As(err, &ended) || ended.code != exitIndeterminate {
		t.Errorf("got %v, want exit code %d", err, exitIndeterminate)
	}
	if want := "NOT DETERMINISTIC: two runs of seed 20 differ"; !strings.Contains(out.String(), want) {
		t.Errorf("want %q in\n%s", want, out.String())
	}
}
