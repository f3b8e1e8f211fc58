package daemon

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/tier"
)

// lines writes a plan as text: totals, deletions, and what waits, whether with an end or not.
func lines(p *api.Plan, ledger string) string {
	var out strings.Builder
	for _, t := range p.Totals {
		fmt.Fprintf(&out, "total %s %s %d %d\n", t.Table, t.Action, t.Segments, t.Bytes)
	}
	for _, x := range p.Deletions {
		object := ""
		if x.Object != nil {
			object = " " + strings.ReplaceAll(*x.Object, ledger, "LEDGER")
		}
		fmt.Fprintf(&out, "delete %s %s [%d, %d)%s\n", x.Log, x.Action, x.Base, x.Next, object)
	}
	for _, w := range p.Waiting {
		end := ""
		if w.Reason.Until != 0 {
			end = " until then"
		}
		text, _, _ := strings.Cut(strings.ReplaceAll(w.Reason.Text, ledger, "LEDGER"), " (")
		if w.Reason.Code == tier.CodeTTL || w.Reason.Code == tier.CodeLocalTTL {
			text = "..." // it has a time
		}
		fmt.Fprintf(&out, "wait%s %s %s [%d, %d) %s: %s\n", end, w.Log, w.Action, w.Base, w.Next,
			w.Reason.Code, text)
	}
	return out.String()
}

// abandon leaves an attempt of orders/0 that was given up at the time, with its object.
func (s *site) abandon(d *Daemon, id byte, at tier.Time) {
	s.t.Helper()
	a := tier.Attempt{ID: tier.AttemptID{id}, Epoch: 1, Range: tier.Range{Base: 500, Next: 510},
		Names: []string{"00000000000000000500.log"}, StartedAt: at}
	log := tier.LogID{Table: "orders", Name: "0"}
	pos, err := d.ledger.Append(s.t.Context(), tier.CopyStarted{Log: log, Attempt: a})
	if err == nil {
		_, err = d.ledger.Append(s.t.Context(), tier.CopyAbandoned{Log: log, Position: pos, At: at})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.leave(d, log, id, 500)
}

// leave puts an object into the store that nobody recorded.
func (s *site) leave(d *Daemon, log tier.LogID, attempt byte, base tier.Offset) {
	s.t.Helper()
	key, err := d.store.FileKey(tier.ObjectKey{Log: log, Epoch: 1, Base: base,
		Attempt: tier.AttemptID{attempt}, Name: fmt.Sprintf("%020d.log", base)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.store.Put(key, []byte("half a segment"))
}

// TestPlanHasAllThatGoes: beside the segments of both tiers a plan has what is on its way out of
// the store, or waits for that, also where no segment names it; with counts and bytes.
func TestPlanHasAllThatGoes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var back atomic.Int64 // the store's clock
	s.store = fault.NewMem(func() time.Time { return time.Now().Add(-time.Duration(back.Load())) })
	s.bucket = fault.Wrap(s.store, nil)
	config := strings.Replace(siteConfig, "local-ttl: 1h", "local-ttl: 7d", 1) +
		"limits: {remote_delete_grace: 1h, orphan_age: 1h}\n"
	s.configure(config)
	s.segments("orders/0", 2)
	s.segments("payroll/0", 2)
	if _, err := s.once(s.options()); err != nil {
		t.Fatal(err)
	}
	s.configure(config + "tables: [{name: payroll, remote.storage.enable: false, " +
		"remote.log.disable.policy: delete}, {name: '*'}]\n")
	noDelete := s.options()
	noDelete.NoDelete = true
	if _, err := s.once(noDelete); err != nil {
		t.Fatal(err)
	}
	const local = "wait until then orders/0 delete_local [0, 10) local-ttl: ...\n" +
		"wait until then orders/0 delete_remote [0, 10) ttl: ...\n"
	const payroll = "wait until then payroll/0 delete_local [0, 10) ttl: ...\n"
	ledger := "?"
	plan := func() (*api.Plan, string) {
		t.Helper()
		b, done, err := Snapshot(t.Context(), s.options())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { closes(t, done) }()
		p, err := b.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return p, lines(p, ledger)
	}
	_, got := plan()
	if d := cmp.Diff(local+"wait payroll/0 disable_delete [0, 20) tier-state: 2 copies\n"+
		payroll, got); d != "" {
		t.Errorf("before the start of payroll has moved:\n%s", d)
	}

	if _, err := s.once(s.options()); err != nil {
		t.Fatal(err)
	}
	d, err := open(t.Context(), s.options())
	if err != nil {
		t.Fatal(err)
	}
	ledger = d.ledger.ID()
	orders := tier.LogID{Table: "orders", Name: "0"}
	back.Store(int64(2 * time.Hour))
	s.leave(d, orders, 0xaa, 100)
	back.Store(0)
	s.leave(d, orders, 0xcc, 200)
	s.abandon(d, 0xdd, d.now().Add(-2*time.Hour))
	s.abandon(d, 0xee, d.now())
	closes(t, d.close)

	first, got := plan()
	const attempts = "LEDGER/logs/orders/0/00000001/"
	want := "total orders delete_orphan 2 28\n" +
		"delete orders/0 delete_orphan [0, 0) " + attempts + "00000000000000000100-" +
		"aa000000000000000000000000000000/00000000000000000100.log\n" +
		"delete orders/0 delete_orphan [0, 0) " + attempts + "00000000000000000500-" +
		"dd000000000000000000000000000000/00000000000000000500.log\n" +
		"wait until then orders/0 delete_orphan [0, 0) remote-delete-grace: younger than " +
		"limits.orphan_age: 1 object that nothing names\n" +
		"wait until then orders/0 delete_orphan [0, 0) remote-delete-grace: what 1 abandoned attempt " +
		"to copy may have left is looked for after limits.orphan_age\n" + local +
		"wait until then payroll/0 disable_delete [0, 20) remote-delete-grace: 2 copies\n" + payroll
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("what nothing names:\n%s", d)
	}
	if second, _ := plan(); second.Digest != first.Digest {
		t.Error("the digest of the same deletions is another one")
	}
	back.Store(int64(2 * time.Hour))
	s.leave(d, orders, 0x99, 300)
	if second, _ := plan(); second.Digest == first.Digest {
		t.Error("the digest of another orphan is the same")
	}

	s.leave(d, tier.LogID{Table: "gone", Name: "7"}, 0xbb, 0)
	_, got = plan()
	if want := "wait  delete_orphan [0, 0) ledger-stale: LEDGER/logs/gone/7/00000001/" +
		"00000000000000000000-bb000000000000000000000000000000/00000000000000000000.log is of a log " +
		"that the ledger never opened: the ledger is an older one; "; !strings.HasPrefix(got, want) {
		t.Errorf("of a ledger that is older than the store:\n%s", got)
	}
}

// TestReadable: a name that would break the line, or that is no text, is quoted.
func TestReadable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"orders/0": "orders/0", "ünï x/0": "ünï x/0", "new\nline/0": `"new\nline/0"`,
		"bad\xff": `"bad\xff"`, "\x1b[2J": `"\x1b[2J"`, "a\u202eb": `"a\u202eb"`,
	} {
		if got := readable(in); got != want {
			t.Errorf("%q is shown as %s, want %s", in, got, want)
		}
	}
}
