package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/tier"
)

// ordersConfig governs the table orders, and no other, with the settings.
func ordersConfig(settings string) string {
	return siteConfig + "limits: {max_delete_segments: 2, remote_delete_grace: 1ms}\n" +
		"tables: [{name: orders" + settings + "}]\n"
}

// copiedOrders leaves a site whose ledger has three copies of orders/0.
func copiedOrders(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.configure(ordersConfig(""))
	s.segments("orders/0", 3)
	opts := s.options()
	opts.NoDelete = true
	if _, err := s.once(opts); err != nil {
		t.Fatal(err)
	}
	return s
}

// files are the keys of segment files in the store.
func (s *site) files() (out []string) {
	for _, key := range s.store.Keys() {
		if strings.HasSuffix(key, ".log") {
			out = append(out, key)
		}
	}
	return out
}

// digestIn is what an error tells to give back after --accept.
func digestIn(t *testing.T, err error, command string) string {
	t.Helper()
	if api.CodeOf(err) != api.CodeRefused {
		t.Fatalf("got error %v, want a refusal", err)
	}
	_, digest, ok := strings.Cut(err.Error(), command+" --accept ")
	if !ok {
		t.Fatalf("no %q in: %v", command, err)
	}
	return digest
}

// TestTurningOffWithDeleteIsAccepted: a start and a reload that would let more remote data go than
// the limits allow need the digest of just these.
func TestTurningOffWithDeleteIsAccepted(t *testing.T) {
	t.Parallel()
	const off = ", remote.storage.enable: false, remote.log.disable.policy: delete"
	s := copiedOrders(t)
	s.configure(ordersConfig(off))
	_, err := s.once(s.options())
	first := digestIn(t, err, "tierd run --once")
	if n := len(s.files()); n != 3 || !strings.Contains(err.Error(), "orders (3 segments in the "+
		"store, 96 bytes; of 0 segments, 0 bytes, nothing is local)") {
		t.Fatalf("%d files in the store after: %v", n, err)
	}

	// What was accepted then is another thing once more is there.
	s.configure(ordersConfig(""))
	s.segments("orders/1", 4)
	opts := s.options()
	opts.NoDelete = true
	r := s.run(opts)
	s.until("all is copied", func() bool {
		st, err := r.Status(t.Context())
		return err == nil && len(st.Logs) == 2 &&
			st.Logs[0].Remote.Segments+st.Logs[1].Remote.Segments == 7
	})
	s.configure(ordersConfig(off))
	second := digestIn(t, r.reload(""), "tierd reload")
	digestIn(t, r.reload(first), "tierd reload")
	digestIn(t, r.reload("0000-zz"), "tierd reload")
	plan, err := r.Plan(t.Context())
	if err != nil || plan.Disablement == nil || plan.Disablement.Tables[0].Segments != 7 {
		t.Fatalf("plan: %+v, %v", plan, err)
	}
	if err := r.reload(second); err != nil {
		t.Fatal(err)
	}
	s.until("the table has its state", func() bool {
		st, err := r.Status(t.Context())
		return err == nil && st.Tables[0].TierState == tier.Disabling
	})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if n := len(s.files()); n != 7 {
		t.Fatalf("%d files in the store, want 7: it runs without deletions", n)
	}

	// It goes on in another process, and is not asked about again.
	r = s.run(s.options())
	s.until("all is gone", func() bool { return len(s.files()) == 0 })
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}

// TestAFewMayGoUnasked: what the limits allow, and what came since as far as they do.
func TestAFewMayGoUnasked(t *testing.T) {
	t.Parallel()
	s := copiedOrders(t)
	d := s.open()
	at := d.now()
	r, _ := d.removal(tier.MoveDisabled, []string{"orders"}, at)
	for _, tc := range []struct {
		digest string
		since  int64 // segments that may have come
		at     tier.Time
		want   bool
	}{
		{r.Digest, 0, at, true},
		{r.Digest[1:], 0, at, false},
		{strings.Replace(r.Digest, "-", "-1", 1), 0, at, false},
		{"", 0, at, false},
	} {
		b := tier.Brake{MaxSegments: tc.since, MaxBytes: 1 << 20}
		if got := d.accepted(tc.digest, tier.MoveDisabled, []string{"orders"}, b); got != tc.want {
			t.Errorf("%q: accepted: %t", tc.digest, got)
		}
	}
	if d.accepted(r.Digest, tier.MoveDropped, []string{"orders"}, tier.Brake{}) {
		t.Error("a disablement's digest let a table be dropped")
	}
	old, _ := d.removal(tier.MoveDisabled, []string{"orders"}, at.Add(-time.Hour))
	if n := old.Tables[0].Segments; n != 0 {
		t.Fatalf("%d copies were finished before they began", n)
	}
	for since, want := range map[int64]bool{2: false, 3: true} {
		b := tier.Brake{MaxSegments: since, MaxBytes: 1 << 20}
		if got := d.accepted(old.Digest, tier.MoveDisabled, []string{"orders"}, b); got != want {
			t.Errorf("3 copies came since, %d may: accepted: %t", since, got)
		}
	}
}

// TestDrop: only a frozen table is dropped, on the digest of just what goes; it ends in another
// process, and touches nothing local.
func TestDrop(t *testing.T) {
	t.Parallel()
	s := copiedOrders(t)
	b, done, err := Exclusive(t.Context(), s.options())
	if err != nil {
		t.Fatal(err)
	}
	refused(t, b, "orders", "governed by")
	if _, err := b.DropPlan(t.Context(), "none"); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("a table that nobody knows: %v", err)
	}
	closes(t, done)

	s.configure(strings.Replace(ordersConfig(""), "name: orders", "name: payroll", 1))
	r := s.run(s.options())
	s.until("it is ready", func() bool {
		h, err := r.Health(t.Context())
		return err == nil && h.Ready
	})
	plan, err := r.DropPlan(t.Context(), "orders")
	if err != nil || plan.Tables[0] != (api.LeftTable{Table: "orders", Logs: 1, Segments: 3,
		Bytes: 96}) {
		t.Fatalf("%+v, %v", plan, err)
	}
	_, err = r.Drop(t.Context(), "orders", "")
	digestIn(t, err, "tierd drop orders")
	_, err = r.Drop(t.Context(), "orders", "1"+plan.Digest)
	digestIn(t, err, "tierd drop orders")
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}

	b, done, err = Exclusive(t.Context(), s.options())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Drop(t.Context(), "orders", plan.Digest); err != nil {
		t.Fatal(err)
	}
	refused(t, b, "orders", "already")
	closes(t, done)

	r = s.run(s.options())
	s.until("all is gone", func() bool { return len(s.files()) == 0 })
	s.until("the table has its state", func() bool {
		st, err := r.Status(t.Context())
		return err == nil && st.Tables[0].TierState == tier.Disabled && st.Tables[0].Dropped != 0
	})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if n := s.local("orders/0"); n != 4 {
		t.Errorf("%d local files, want 4", n)
	}
	if n := s.audited(tier.DisableDelete); n != 3 {
		t.Errorf("%d deletions on record, want 3", n)
	}
}

func refused(t *testing.T, b api.Backend, table, why string) {
	t.Helper()
	_, err := b.DropPlan(t.Context(), table)
	if api.CodeOf(err) != api.CodeRefused || !strings.Contains(err.Error(), why) {
		t.Errorf("drop %s: %v, want a refusal with %q", table, err, why)
	}
	if _, err := b.Drop(t.Context(), table, "x-1"); api.CodeOf(err) != api.CodeRefused {
		t.Errorf("drop %s: %v", table, err)
	}
}

func closes(t *testing.T, done func() error) {
	t.Helper()
	if err := done(); err != nil {
		t.Fatal(err)
	}
}

// open opens the site's data_dir in this process, until the end of the test.
func (s *site) open() *Daemon {
	s.t.Helper()
	d, err := open(s.t.Context(), s.options())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { closes(s.t, d.close) })
	return d
}

// audited counts the deletions of a kind that were announced.
func (s *site) audited(a tier.Action) (n int) {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "data", AuditDir, "*.jsonl"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			s.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, `"action":"`+string(a)+`"`) {
				n++
			}
		}
	}
	return n
}

// TestPlanOfRemovals: what has left its log waits for the end of the grace in a plan, and is a
// deletion after it.
func TestPlanOfRemovals(t *testing.T) {
	t.Parallel()
	s := copiedOrders(t)
	s.configure(strings.NewReplacer("remote_delete_grace: 1ms", "remote_delete_grace: 1h",
		"max_delete_segments: 2", "max_delete_segments: 9").Replace(
		ordersConfig(", remote.storage.enable: false, remote.log.disable.policy: delete")))
	if _, err := s.once(s.options()); err != nil {
		t.Fatal(err)
	}
	plan := func(later time.Duration) *api.Plan {
		opts := s.options()
		opts.Now = func() time.Time { return time.Now().Add(later) }
		b, done, err := Snapshot(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		defer closes(t, done)
		p, err := b.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := plan(0)
	i := slices.IndexFunc(p.Waiting, func(w api.PlannedWait) bool {
		return w.Action == tier.DisableDelete && w.Reason.Code == tier.CodeGrace &&
			w.Reason.Until > p.At
	})
	if len(p.Deletions) != 0 || i < 0 {
		t.Errorf("within the grace: %+v", p)
	}
	p = plan(2 * time.Hour)
	if len(p.Deletions) != 3 || p.Totals[0] != (api.PlannedTotal{Table: "orders",
		Action: tier.DisableDelete, Segments: 3, Bytes: 96}) ||
		p.Deletions[0].Reasons[0].Code != tier.CodeTieringDisabled {
		t.Errorf("after it: %+v", p)
	}
}

// TestPlanWithoutASource: a log that no source has any more is no reason to give no answer.
func TestPlanWithoutASource(t *testing.T) {
	t.Parallel()
	s := copiedOrders(t)
	s.configure(strings.Replace(ordersConfig(""), "name: wal", "name: other", 1))
	b, done, err := Snapshot(t.Context(), s.options())
	if err != nil {
		t.Fatal(err)
	}
	defer closes(t, done)
	if _, err := b.Plan(t.Context()); err != nil {
		t.Error(err)
	}
}
