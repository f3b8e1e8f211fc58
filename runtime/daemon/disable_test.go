package daemon

import (
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/tier"
)

// TestDisablingWaitsForNoInterval: no start moves before somebody has looked at the source again;
// that look does not wait for the next scan, which may be hours away.
func TestDisablingWaitsForNoInterval(t *testing.T) {
	t.Parallel()
	s := copiedOrders(t)
	config := strings.NewReplacer("interval: 10ms", "interval: 1h", "local-ttl: 1h",
		"local-ttl: 7d").Replace(ordersConfig(""))
	s.configure(config)
	r := s.run(s.options())
	// Watching begins with a look of its own, which must not be the one.
	s.until("the source was scanned again", func() bool {
		st, err := r.Status(t.Context())
		return err == nil && st.Ready && tier.Time(st.Sources[0].ScannedAt) >=
			tier.Time(st.StartedAt).Add(rescanPause)
	})
	s.configure(strings.Replace(config, "name: orders", "name: orders, "+
		"remote.storage.enable: false, remote.log.disable.policy: delete", 1))
	digest := digestIn(t, r.reload(""), "tierd reload")
	if err := r.reload(digest); err != nil {
		t.Fatal(err)
	}
	s.until("all is gone", func() bool { return len(s.files()) == 0 })
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}

// TestTheSwitchWaitsForTheTables: tiering as a whole is not switched off by a reload under a table
// that is not DISABLED; a start takes it, and turns off table by table.
func TestTheSwitchWaitsForTheTables(t *testing.T) {
	t.Parallel()
	const off = "remote.log.storage.system.enable: false\n"
	s := copiedOrders(t)
	table := func(settings string) string {
		return siteConfig + "tables: [{name: orders" + settings + "}]\n"
	}
	r := s.run(s.options())
	s.until("it is ready", func() bool {
		h, err := r.Health(t.Context())
		return err == nil && h.Ready
	})
	s.configure(table("") + off)
	if err := r.reload(""); err == nil ||
		!strings.Contains(err.Error(), `not DISABLED: 1 table, the first of them "orders"`) {
		t.Fatalf("with a table that tiers: %v", err)
	}
	disabled := func(r *running) func() bool {
		return func() bool {
			st, err := r.Status(t.Context())
			return err == nil && st.Tables[0].TierState == tier.Disabled
		}
	}
	s.configure(table(", remote.storage.enable: false"))
	if err := r.reload(""); err != nil {
		t.Fatal(err)
	}
	s.until("the table is DISABLED", disabled(r))
	s.configure(table("") + off)
	if err := r.reload(""); err != nil {
		t.Errorf("without one: %v", err)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	s.configure(table(""))
	r = s.run(s.options())
	s.until("the table is ENABLED", func() bool {
		st, err := r.Status(t.Context())
		return err == nil && st.Tables[0].TierState == tier.Enabled
	})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	s.configure(table("") + off)
	r = s.run(s.options())
	s.until("the table is DISABLED by a start", disabled(r))
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}
