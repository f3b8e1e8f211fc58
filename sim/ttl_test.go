package sim

import "testing"

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
