package sim

import (
	"testing"
	"time"

	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/tier"
)

// TestTTLChanges: a history changes for how long data are kept, and what is over by the new TTL,
// and is not by the old one, leaves its log.
func TestTTLChanges(t *testing.T) {
	t.Parallel()
	p, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	day := "time: passes, and the process runs; time: 9 hours"
	for ttl, expires := range map[string]bool{"0": false, "2 hours": true, "200 hours": false} {
		out := scripted(t, p, "owner: rolls", "process: runs",
			"settings: change table.log.ttl; table.log.ttl: "+ttl, day)
		if out.Violation != nil {
			t.Errorf("%s: %s", ttl, out.Violation)
		}
		before := out.Snapshots[4] // after the last step
		if got := before.Logs[0].LogStart > 0; got != expires {
			t.Errorf("table.log.ttl of %s: the log starts at %d", ttl, before.Logs[0].LogStart)
		}
	}
}

// TestTTLOfACentury: the longest TTL that a configuration has passes again and again in a history,
// and no clock comes to the end of time.
func TestTTLOfACentury(t *testing.T) {
	t.Parallel()
	p := plainProject(t)
	p.Unsettled = false
	tables := p.Config.Tables
	p.Config.Tables = func(name string) (tier.Table, bool) {
		t, ok := tables(name)
		t.TTL, t.LocalTTL = century, century/10
		return t, ok
	}
	out := scripted(t, p, "owner: rolls; segments: 2", "process: runs",
		"time: passes; time: the TTL of orders", "time: passes; time: the TTL of orders",
		"owner: rolls; segments: 2", "time: passes, and the process runs; time: the TTL of orders")
	if out.Violation != nil || out.Simulated < century || out.Simulated > 2*century {
		t.Errorf("after %s: %v", out.Simulated, out.Violation)
	}
}

// TestTimeOfAFailure: what passed before a promise broke is counted, too.
func TestTimeOfAFailure(t *testing.T) {
	t.Parallel()
	never, err := rego.LoadPromises([]rego.Module{{Path: "never.rego", Source: []byte(
		"package tierd.sim\n\nviolation contains \"it goes\" if input.segment.base >= 0\n")}},
		nil, rego.Options{Timeout: rego.NoTimeout})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	p.Promises = never
	out := scripted(t, p, "owner: rolls", "process: runs",
		"time: passes, and the process runs; time: 9 hours")
	if out.Violation == nil || out.Simulated < 9*time.Hour {
		t.Errorf("after %s: %v", out.Simulated, out.Violation)
	}
}
