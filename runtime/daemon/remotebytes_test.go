package daemon

import (
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/tier"
)

// TestRemoteBytes: what table.log.bytes takes out of a log leaves the store too, and no more goes
// than that, also where a policy has the oldest segments asked about at any time.
func TestRemoteBytes(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]string{
		"the limit alone": "",
		"and a policy": "package tierd.tmp\n\n" +
			"expire_remote contains \"x\" if input.table.name == \"tmp\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			config := strings.Replace(siteConfig, "local-ttl: 1h", "local-ttl: 1h, table.log.bytes: 64", 1)
			config = strings.Replace(config, "table.log.ttl: 7d", "table.log.ttl: 0", 1)
			config += "limits: {remote_delete_grace: 0}\n"
			if policy != "" {
				s.put("tmp.rego", policy)
				config += "policies: {paths: [tmp.rego]}\n"
			}
			s.configure(config)
			s.segments("orders/0", 6) // of 32 bytes each
			keep := s.options()
			keep.NoDelete = true
			if _, err := s.once(keep); err != nil {
				t.Fatal(err)
			}
			if got := s.planned(tier.DeleteRemote); got != 4 {
				t.Errorf("%d remote segments are planned to go, want 4", got)
			}
			for range 2 { // the first may ask before the oldest copy is finished
				if _, err := s.once(s.options()); err != nil {
					t.Fatal(err)
				}
			}
			b, done, err := Snapshot(t.Context(), s.options())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = done() }()
			list, err := b.Segments(t.Context(), tier.LogID{Table: "orders", Name: "0"})
			if err != nil {
				t.Fatal(err)
			}
			st, err := b.Status(t.Context())
			if err != nil || st.Logs[0].Remote.Bytes != 64 || st.Logs[0].Remote.Start != 40 {
				t.Errorf("%+v, %v", st.Logs, err)
			}
			for _, x := range list.Segments {
				if x.Next <= 40 && x.Object != nil {
					t.Errorf("%+v is still in the store", x)
				}
			}
			if files := s.stored(".log"); files != 2 {
				t.Errorf("%d segments are in the store, want 2", files)
			}
		})
	}
}

// planned counts the deletions that a plan has of the action.
func (s *site) planned(a tier.Action) (n int) {
	s.t.Helper()
	b, done, err := Snapshot(s.t.Context(), s.options())
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = done() }()
	p, err := b.Plan(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, x := range p.Deletions {
		if x.Action == a {
			n++
		}
	}
	return n
}

// stored counts the objects in the store whose keys end so.
func (s *site) stored(suffix string) (n int) {
	for _, key := range s.store.Keys() {
		if strings.HasSuffix(key, suffix) {
			n++
		}
	}
	return n
}
