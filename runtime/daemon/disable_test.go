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
	digest := digestIn(t, r.Reload(t.Context(), ""), "tierd reload")
	if err := r.Reload(t.Context(), digest); err != nil {
		t.Fatal(err)
	}
	s.until("all is gone", func() bool { return len(s.files()) == 0 })
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}
