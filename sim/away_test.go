package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// turns turns tiering off with a policy, or on, and lets the table come to rest.
func (r *rig) turns(on bool, policy tier.DisablePolicy) {
	r.t.Helper()
	r.tables(func(t *tier.Table) {
		t.Tiering, t.DisablePolicy, t.TTL = on, policy, time.Hour
	})
	for range 2 {
		r.run()
		r.w.Advance(11 * time.Minute) // the grace
	}
	r.run()
}

// gone takes the file of a segment away by a hand that nobody saw.
func (r *rig) gone(base tier.Offset) {
	r.t.Helper()
	r.do(r.w.Disk.Remove(SegmentPath(orders, base)))
	r.oracle.changed = true
	r.oracle.rest()
}

// TestTheOracleSeesBesideAnException: what a disablement, an expiry, a deletion without tiering or
// a store that loses objects excuses is what went by it, and nothing of what was there after.
func TestTheOracleSeesBesideAnException(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		property Property
		before   func(*rig)
		crime    func(*rig)
	}{
		"the file of a segment whose copy went with its table's tiering": {NoUncopiedDelete,
			func(r *rig) {
				r.copied(2)
				r.turns(false, tier.PolicyDelete)
			}, func(r *rig) { r.gone(0) }},
		"a segment that was written again after it went without tiering": {NoUncopiedDelete,
			func(r *rig) {
				r.copied(2)
				r.turns(false, tier.PolicyDelete)
				r.w.Advance(2 * time.Hour)
				r.run()
				if bases, _ := r.w.Bases(orders); len(bases) != 1 {
					r.t.Fatalf("%v are left, want the active one", bases)
				}
				r.do(r.w.Write(orders, 0, Content(orders, 0, 1)))
			}, func(r *rig) { r.gone(0) }},
		"both tiers of a segment that is copied again after a disablement": {NoUncopiedDelete,
			func(r *rig) {
				r.copied(2)
				r.turns(false, tier.PolicyDelete)
				r.turns(true, tier.PolicyDelete)
			}, func(r *rig) {
				r.w.Objects.Remove(r.object(0))
				r.gone(0)
			}},
		"a segment that expired from the store, and is there when an epoch begins": {NoUncopiedDelete,
			func(r *rig) {
				r.copied(2)
				r.tables(func(t *tier.Table) { t.TTL, t.LocalTTL = time.Hour, 0 })
				r.w.Advance(2 * time.Hour)
				r.run()
				r.w.Advance(11 * time.Minute)
				r.run()
				if s, _ := r.w.Ledger().Log(orders); s.LogStart != 20 {
					r.t.Fatalf("the log begins at %d, want 20", s.LogStart)
				}
				for _, on := range []bool{false, true} {
					r.tables(func(t *tier.Table) {
						t.Tiering, t.DisablePolicy, t.TTL, t.LocalTTL = on, tier.PolicyDelete, 0, 0
					})
					r.run()
					r.w.Advance(11 * time.Minute)
					r.run()
				}
			}, func(r *rig) {
				r.w.Objects.Remove(r.object(0))
				r.gone(0)
			}},
		"another segment than the one that the store lost": {NoUncopiedDelete,
			func(r *rig) {
				r.copied(2)
				r.do(r.w.Append(orders, 1))
				r.w.Lose(r.object(0))
			}, func(r *rig) { r.gone(20) }},
		"a file that was put back, before its time": {Gated,
			func(r *rig) {
				r.copied(2)
				r.turns(false, tier.PolicyDelete)
				r.w.Advance(3 * time.Hour)
				r.do(r.w.Write(orders, 0, Content(orders, 0, 1)))
			}, func(r *rig) {
				r.announce(0)
				r.drops(0)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			c.before(r)
			if v := r.oracle.Violations(); len(v) > 0 {
				t.Fatalf("before the crime: %v", v)
			}
			c.crime(r)
			if !slices.ContainsFunc(r.oracle.Violations(), func(v Violation) bool {
				return v.Property == c.property
			}) {
				t.Errorf("the oracle says %v, want %s", r.oracle.Violations(), c.property)
			}
		})
	}
}

// TestAGapOfANewEpochIsOne: a disablement by delete took offsets away from the middle of what its
// owner has now. In the epoch before they are excused; the next one has to account for them. To
// tierd a plain segment reaches up to the next one, so that a copy of it covers them; one that
// ended where its owner's segment does would leave a gap.
func TestAGapOfANewEpochIsOne(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.copied(3)
	r.do(r.w.Remove(orders, 0))
	r.w.Advance(2 * time.Hour)
	r.run()
	r.turns(false, tier.PolicyDelete)
	r.do(r.w.Write(orders, 0, Content(orders, 0, 1)))
	r.turns(true, tier.PolicyDelete)
	if v := r.oracle.Violations(); len(v) > 0 {
		t.Fatal(v)
	}
	ledger, err := r.w.ledgerNow()
	r.do(err)
	l := ledger.log(orders)
	i := slices.IndexFunc(l.facts, func(f tier.Fact) bool {
		return f.Add != nil && f.Add.Epoch >= l.state.Fresh
	})
	whole := tier.Range{Base: 0, Next: 30}
	if i < 0 || l.state.Start != 0 || l.facts[i].Add.Content.Range != whole {
		t.Fatalf("from %d on, copies %+v; want one of [0, 30)", l.state.Start, l.facts)
	}
	l.facts[i].Add.Content.Range.Next, l.covers = 10, nil
	// What lies in the trash tells nothing of what is missing below it.
	files := slices.Clone(r.w.files(orders))
	for i := range files {
		if files[i].base > 0 {
			files[i].place = dead
		}
	}
	r.oracle.noGap(r.oracle.record(orders), files, l, true)
	if v := r.oracle.Violations(); len(v) > 0 {
		t.Errorf("with nothing above the gap: %v", v)
	}
	for _, due := range []bool{false, true} {
		r.oracle.noGap(r.oracle.record(orders), r.w.files(orders), l, due)
		v := r.oracle.Violations()
		if seen := len(v) > 0 && v[0].Property == NoGap; seen != due {
			t.Errorf("due: %t; the oracle says %v", due, v)
		}
	}
}
