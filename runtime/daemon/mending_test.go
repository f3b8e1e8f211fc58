package daemon

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/tier"
)

// consumed is what a consumer of the manifest alone sees of orders/0: the bases of its copies,
// ascending.
func (s *site) consumed(ledger string) (bases []tier.Offset) {
	s.t.Helper()
	store, err := objstore.New(s.bucket, ledger)
	if err != nil {
		s.t.Fatal(err)
	}
	facts, _, err := store.Manifest(s.t.Context(), tier.LogID{Table: "orders", Name: "0"})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range facts {
		if f.Add != nil {
			bases = append(bases, f.Add.Content.Range.Base)
		}
	}
	slices.Sort(bases) // the positions are in the order in which copies began
	return bases
}

// looks counts by result what the metric says of objects of manifests that were looked at.
func looks(t *testing.T, opts Options) map[string]int {
	t.Helper()
	return results(t, opts, "tierd_scrubbed_manifest_objects_total")
}

// results is what the metric counts or shows, by its label.
func results(t *testing.T, opts Options, metric string) map[string]int {
	t.Helper()
	families, err := opts.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == metric {
				out[m.GetLabel()[0].GetValue()] = int(m.GetCounter().GetValue() + m.GetGauge().GetValue())
			}
		}
	}
	return out
}

// TestALostManifestIsWrittenAgain: nothing is over, so that nobody asks for the entries, and a
// scrub finds that the store lost or altered them. It is told, and nothing is copied for it. A
// store that is out of order for a moment is asked again.
func TestALostManifestIsWrittenAgain(t *testing.T) {
	t.Parallel()
	for _, alter := range []bool{false, true} {
		s := newSite(t)
		held := strings.Replace(keepLocal, "local-ttl: 1h", "local-ttl: 7d", 1)
		s.configure(strings.Replace(held, "every: 1ms", "every: 0", 1))
		s.segments("orders/0", 3)
		if _, err := s.once(s.options()); err != nil || s.local("orders/0") != 4 {
			t.Fatal(err)
		}
		before := s.store.Keys()
		if n := s.spoil("orders/0", ".json", alter); n != 3 {
			t.Fatalf("%d entries", n)
		}
		s.configure(held)
		var up atomic.Bool
		s.bucket.SetHook(func(op fault.Op) fault.Effect {
			if op.Kind == fault.OpUpload && strings.Contains(op.Key, "000001-") && !up.Load() {
				return fault.Effect{Err: errors.New("403")}
			}
			return fault.Effect{}
		})
		opts := s.options()
		d := s.run(opts)
		ledger := strings.SplitN(before[0], "/", 2)[0]
		s.until("the store is asked again", func() bool { return looks(t, opts)["error"] > 0 })
		up.Store(true)
		s.until("the manifest says all again", func() bool {
			return slices.Equal(s.consumed(ledger), []tier.Offset{0, 10, 20})
		})
		s.until("the metric says so", func() bool {
			n := looks(t, opts)
			return n["mended"] == 3 && n["good"] > 0 && n["bad"] == 0
		})
		if n := strings.Count(s.log.String(), "and has it again"); n != 3 {
			t.Errorf("%d lines of the log, want 3:\n%s", n, s.log.String())
		}
		if got := alarms(t, d); len(got) > 0 {
			t.Errorf("alarms: %v", got)
		}
		if now := s.store.Keys(); !slices.Equal(now, before) {
			t.Errorf("%v, before %v", now, before)
		}
		if err := d.stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestAScrubThatIsTurnedOffTriesNoMore: also where it waits for a store that is out of order, be it
// with an entry or with a copy. Turned on again it goes on.
func TestAScrubThatIsTurnedOffTriesNoMore(t *testing.T) {
	t.Parallel()
	for part, result := range map[string]string{"/manifest/": "tierd_scrubbed_manifest_objects_total",
		".log": "tierd_scrubbed_segments_total"} {
		s := newSite(t)
		on := strings.Replace(keepLocal, "local-ttl: 1h", "local-ttl: 7d", 1)
		off := strings.Replace(on, "every: 1ms", "every: 0", 1)
		s.configure(off)
		s.segments("orders/0", 1)
		if _, err := s.once(s.options()); err != nil {
			t.Fatal(err)
		}
		s.configure(on)
		s.bucket.SetHook(func(op fault.Op) fault.Effect {
			if strings.Contains(op.Key, part) {
				return fault.Effect{Err: errors.New("403")}
			}
			return fault.Effect{}
		})
		opts := s.options()
		d := s.run(opts)
		s.until("it cannot look", func() bool { return results(t, opts, result)["error"] > 0 })
		s.configure(off)
		if err := d.reload(""); err != nil {
			t.Fatal(err)
		}
		s.until("it stops", func() bool {
			return strings.Contains(s.log.String(), "scrub: turned off")
		})
		s.bucket.SetHook(nil)
		s.configure(on)
		if err := d.reload(""); err != nil {
			t.Fatal(err)
		}
		s.until("it goes on", func() bool { return results(t, opts, result)["good"] > 0 })
	}
}
