package daemon

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/exec"
	"github.com/tierd/tierd/runtime/tier"
)

// labelled is the value of the counter with just these labels; 0 if there is none.
func labelled(t *testing.T, opts Options, name string, labels map[string]string) float64 {
	t.Helper()
	families, err := opts.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
	metric:
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if labels[l.GetName()] != l.GetValue() {
					continue metric
				}
			}
			return m.GetCounter().GetValue()
		}
	}
	return 0
}

// removedAs expects that so many copies of orders went by the action, all of which may, and that
// report, metrics and log say so, and nothing of local segments.
func (s *site) removedAs(opts Options, r *Report, action string, segments int64, asked float64) {
	s.t.Helper()
	bytes := 32 * segments
	if r.RemovedSegments != segments || r.RemovedBytes != bytes || r.DeletedSegments != 0 ||
		r.RemovedOrphans != 0 {
		s.t.Errorf("%+v, want %d removed (%d bytes) and no other", r.Progress, segments, bytes)
	}
	of := map[string]string{"table": "orders", "action": action}
	if n := labelled(s.t, opts, "tierd_deleted_segments_total", of); n != float64(segments) {
		s.t.Errorf("tierd_deleted_segments_total%v is %v, want %d", of, n, segments)
	}
	if n := labelled(s.t, opts, "tierd_deleted_bytes_total", of); n != float64(bytes) {
		s.t.Errorf("tierd_deleted_bytes_total%v is %v, want %d", of, n, bytes)
	}
	allowed := map[string]string{"action": action, "verdict": "delete", "code": "allowed", "rule": ""}
	if n := labelled(s.t, opts, "tierd_gate_decisions_total", allowed); n != asked {
		s.t.Errorf("tierd_gate_decisions_total%v is %v, want %v", allowed, n, asked)
	}
	line := `msg="removed from the store" log=orders/0 action=` + action
	if n := strings.Count(s.log.String(), line); n != int(segments) {
		s.t.Errorf("%d lines %q, want %d, in:\n%s", n, line, segments, s.log.String())
	}
}

// atOnce lets one run remove all that leaves the store: no brake and no grace is in its way.
func atOnce(config string) string {
	return strings.NewReplacer("max_delete_segments: 2", "max_delete_segments: 9",
		"remote_delete_grace: 1ms", "remote_delete_grace: 0s").Replace(config)
}

// TestWhatIsTurnedOffIsTold: what leaves the store with its tiering.
func TestWhatIsTurnedOffIsTold(t *testing.T) {
	t.Parallel()
	s := copiedOrders(t)
	s.configure(atOnce(ordersConfig(", remote.storage.enable: false, " +
		"remote.log.disable.policy: delete")))
	opts := s.options()
	r, err := s.once(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.removedAs(opts, r, "disable_delete", 3, 3)
}

// TestWhatExpiresIsTold: a copy is asked about before it leaves its log, and before its object
// goes.
func TestWhatExpiresIsTold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.segments("orders/0", 3)
	if _, err := s.once(s.options()); err != nil {
		t.Fatal(err)
	}
	s.configure(atOnce(ordersConfig(", table.log.ttl: 1ms, table.log.local-ttl: 1ms")))
	opts := s.options()
	r, err := s.once(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.removedAs(opts, r, "delete_remote", 3, 6)
}

// TestAnswersAboutCopiesAreCounted: as what they are, for an expiry, a removal and what an attempt
// left.
func TestAnswersAboutCopiesAreCounted(t *testing.T) {
	t.Parallel()
	d := newTold()
	copies := make([]engine.RemoteCandidate, 3)
	for i := range copies {
		copies[i].Position, copies[i].Next = tier.Position(i), tier.Offset(10*(i+1))
	}
	kept := engine.KeptRemote{Reasons: []tier.Reason{{Code: tier.CodeDenied, Rule: "p.rego:3"}}}
	expire := engine.Expire{ID: 1, Segments: copies}
	for _, end := range []struct {
		f engine.Effect
		r engine.Result
	}{
		{expire, engine.Moved{Start: 20, Kept: &kept}},
		{expire, engine.StaysAll{Kept: kept}},
		{engine.MoveStart{ID: 2}, engine.Moved{Start: 20}}, // nobody is asked
		{engine.Remove{ID: 3, Action: tier.DisableDelete, Copies: copies},
			engine.Removed{Positions: []tier.Position{0, 1}, Kept: []engine.KeptRemote{kept}}},
		{engine.Clear{ID: 4}, engine.StaysAll{Kept: kept}},
	} {
		d.metrics.begun(end.f)
		d.metrics.ended(end.f, end.r, 0)
	}
	for _, c := range []struct {
		action        tier.Action
		allowed, kept float64
	}{{tier.DeleteRemote, 2, 2}, {tier.DisableDelete, 0, 1}, {tier.DeleteOrphan, 0, 1}} {
		a := testutil.ToFloat64(d.metrics.decisions.WithLabelValues(string(c.action), "delete",
			"allowed", ""))
		k := testutil.ToFloat64(d.metrics.decisions.WithLabelValues(string(c.action), "keep",
			string(tier.CodeDenied), "p.rego:3"))
		if a != c.allowed || k != c.kept {
			t.Errorf("%s: %v allowed, %v kept, want %v, %v", c.action, a, k, c.allowed, c.kept)
		}
	}
}

// announced is an audit log that takes everything.
type announced struct {
	exec.Audit
	seq uint64
}

func (a *announced) Intend(context.Context, tier.Deletion) (uint64, error) {
	a.seq++
	return a.seq, nil
}

func (a *announced) Conclude(context.Context, uint64, tier.Outcome) error { return nil }

// TestTheAuditLogIsTold: what it has as deleted from the store, once, and nothing else of it.
func TestTheAuditLogIsTold(t *testing.T) {
	t.Parallel()
	d := newTold()
	a := d.told(&announced{})
	for _, c := range []struct {
		action tier.Action
		result tier.OutcomeResult
	}{
		{tier.DeleteLocal, tier.OutcomeDeleted}, {tier.DeleteRemote, tier.OutcomeKept},
		{tier.DeleteRemote, tier.OutcomeUnknown}, {tier.DeleteRemote, tier.OutcomeDeleted},
		{tier.DeleteOrphan, tier.OutcomeDeleted}, {tier.AcceptLoss, tier.OutcomeKept},
	} {
		seq, err := a.Intend(t.Context(), tier.Deletion{Action: c.action, Bytes: 5,
			Log: tier.LogID{Table: "orders", Name: "0"}})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := a.Conclude(t.Context(), seq, tier.Outcome{Result: c.result}); err != nil {
				t.Fatal(err)
			}
		}
	}
	p := &d.done
	if p.removedSegments.Load() != 1 || p.removedBytes.Load() != 5 || p.removedOrphans.Load() != 1 {
		t.Errorf("%d removed (%d bytes), %d orphans", p.removedSegments.Load(),
			p.removedBytes.Load(), p.removedOrphans.Load())
	}
	if n := d.lines("removed from the store"); n != 2 {
		t.Errorf("told of %d removals, want 2", n)
	}
}

// TestTheGraceIsListed: copies that have left their log, and whose objects go after the grace, are
// among what waits, with the time.
func TestTheGraceIsListed(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]string{
		"turned off": ", remote.storage.enable: false, remote.log.disable.policy: delete",
		"expired":    ", table.log.ttl: 1ms, table.log.local-ttl: 1ms",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := copiedOrders(t)
			s.configure(strings.NewReplacer("grace: 1ms", "grace: 1h", "segments: 2", "segments: 9").
				Replace(ordersConfig(settings)))
			before := tier.TimeOf(time.Now())
			r, err := s.once(s.options())
			if err != nil {
				t.Fatal(err)
			}
			said := 0
			for _, w := range r.Waiting {
				if w.Reason.Code != tier.CodeGrace {
					continue
				}
				said++
				if at := w.Reason.Until; at < before.Add(time.Hour) || at > before.Add(2*time.Hour) {
					t.Errorf("until %s, want in an hour", at)
				}
				if !strings.HasPrefix(w.Reason.Text, "3 copies (96 bytes) out of the log") {
					t.Errorf("said as %q", w.Reason.Text)
				}
			}
			if said != 1 || r.RemovedSegments != 0 {
				t.Errorf("said %d times in %+v, %d removed", said, r.Waiting, r.RemovedSegments)
			}
		})
	}
}

// TestWhatLeftWithTieringIsNotExpired: explain says how an offset left its log, and accept-loss
// that a copied segment is not what it is for.
func TestWhatLeftWithTieringIsNotExpired(t *testing.T) {
	t.Parallel()
	s := copiedOrders(t)
	log := tier.LogID{Table: "orders", Name: "0"}
	settings := func(grace, more string) {
		s.configure(strings.NewReplacer("grace: 1ms", "grace: "+grace, "segments: 2", "segments: 9").
			Replace(ordersConfig(more)))
	}
	ask := func() (*api.Explanation, error) {
		t.Helper()
		b, done, err := Exclusive(t.Context(), s.options())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { closes(t, done) }()
		_, refused := b.AcceptLoss(t.Context(), log, 5)
		x, err := b.Explain(t.Context(), log, 5)
		if err != nil {
			t.Fatal(err)
		}
		return x, refused
	}
	if _, err := ask(); err == nil ||
		!strings.Contains(err.Error(), "the segment [0, 10), which holds the offset 5, is copied") {
		t.Errorf("accept-loss of what is copied: %v", err)
	}
	settings("1h", "")
	if _, err := s.once(s.options()); err != nil { // nothing is left on local disk
		t.Fatal(err)
	}
	settings("1h", ", remote.storage.enable: false, remote.log.disable.policy: delete")
	if _, err := s.once(s.options()); err != nil {
		t.Fatal(err)
	}
	x, _ := ask()
	if len(x.Reasons) != 1 || x.Reasons[0].Code != tier.CodeTieringDisabled || !strings.HasSuffix(
		x.Reasons[0].Text, "the offset left it when tiering was turned off with the policy delete") {
		t.Errorf("left with tiering: %+v", x.Reasons)
	}
}
