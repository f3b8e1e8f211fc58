package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// in gives the engine a look at the log in the source, whose incarnation it is.
func (r *rig) in(source, incarnation string, segments ...tier.LocalSegment) {
	s := scan(segments...)
	s.Source, s.Incarnation = source, incarnation
	r.step(Scanned{Scan: s})
	r.step(SourceScanned{Source: source, Logs: []tier.LogID{orders}})
}

// openedAs answers the Open of a log of the incarnation.
func (r *rig) openedAs(incarnation string) {
	r.t.Helper()
	f := take[Open](r)
	state := tier.LogState{Log: f.Log, Source: f.Source, Layout: f.Layout, Epoch: 1,
		Incarnation: incarnation}
	r.step(Finished{ID: f.ID, Result: Opened{State: state,
		Table: tier.TableState{Table: "orders", State: tier.Enabled, Epoch: 1}}})
}

// notIn gives the engine a whole look at a source that has not the log.
func (r *rig) notIn(source string) { r.step(SourceScanned{Source: source}) }

// TestALogThatWasInTwoSourcesGoesOnInTheOneThatIsLeft: while it lies in both, both are frozen; it
// does not matter which of the two goes away.
func TestALogThatWasInTwoSourcesGoesOnInTheOneThatIsLeft(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.in("wal", "abc", seg(0), tail(10))
	r.openedAs("abc")
	r.copied(0, 10)
	r.in("disk-2", "abc", seg(0), seg(10), tail(20))
	r.none()
	r.code(tier.CodeDuplicateLog)
	r.notIn("disk-2")
	if v := r.view(); len(v.Alarms) > 0 || v.Source != "wal" {
		t.Fatalf("after the other one went: in %q, alarms %v", v.Source, v.Alarms)
	}
	r.in("disk-2", "abc", seg(0), seg(10), tail(20))
	r.code(tier.CodeDuplicateLog)
	r.none()
	r.notIn("wal")
	f := take[Open](r)
	if f.Source != "disk-2" || f.Incarnation != "abc" {
		t.Fatalf("opens %+v, want it in disk-2", f)
	}
	state := r.e.logs[orders].state
	state.Source = "disk-2"
	r.step(Finished{ID: f.ID, Result: Opened{State: state}})
	if f := r.copied(1, 20); f.Source != "disk-2" || f.Segment.Base != 10 {
		t.Fatalf("copies %+v, want what is new, from disk-2", f)
	}
	r.none()
}

// TestALogThatMovedIsTakenForTheSameOnlyIfItSaysSo: a Kafka partition that is moved to another
// directory has its topic's id; of a plain log nothing tells.
func TestALogThatMovedIsTakenForTheSameOnlyIfItSaysSo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		was, is string
		code    tier.Code // "" where it goes on
	}{
		"of the same topic": {"abc", "abc", ""},
		"of another topic":  {"abc", "xyz", tier.CodeIncarnation},
		"of no topic":       {"", "", tier.CodeMoved},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, settings())
			r.in("wal", c.was, seg(0), tail(10))
			r.openedAs(c.was)
			r.copied(0, 10)
			r.notIn("wal")
			r.code(tier.CodeSourceVanished)
			r.in("disk-2", c.is, seg(0), seg(10), tail(20))
			if c.code == "" {
				take[Open](r)
				return
			}
			r.code(c.code)
			r.after(10 * 3600 * 1e9)
			r.none()
		})
	}
}

// TestAPlainLogThatBecameShorterIsFrozen: it was cut off, or another log has its name now. What it
// has is not taken for what was copied, and nothing of it is copied over that.
func TestAPlainLogThatBecameShorterIsFrozen(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(seg(0), seg(10), tail(20))
	r.opened(0)
	r.copied(0, 10)
	r.copied(1, 20)
	other := seg(0)
	other.Log.Inode = 77
	short := tail(10)
	short.Next = 10
	r.seen(other, short)
	r.after(10 * 3600 * 1e9)
	r.none()
	r.code(tier.CodeIncarnation)
	long := tail(20)
	r.seen(other, seg(10), long) // it is as long as it was, whatever its first segment is by now
	if f := r.copied(2, 20); f.Segment.Base != 0 {
		t.Fatalf("copies %+v, want the first segment anew", f)
	}
}

// TestALogThatTierdEmptiedIsNotMissed, and one that its owner emptied is.
func TestALogThatTierdEmptiedIsNotMissed(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	closed := seg(0)
	r.seen(closed)
	r.opened(0)
	r.copied(0, 10)
	if r.e.Emptied("wal") {
		t.Fatal("emptied before anything was deleted")
	}
	r.after(2 * 3600 * 1e9)
	r.deleted()
	r.notIn("wal")
	r.code(tier.CodeEmptied)
	if v := r.view(); len(v.Alarms) > 0 || !r.e.Emptied("wal") {
		t.Fatalf("alarms %v", v.Alarms)
	}
	r.seen(seg(10))
	r.copied(1, 20)
	r.notIn("wal")
	r.code(tier.CodeSourceVanished)
	if r.e.Emptied("wal") {
		t.Fatal("emptied by its owner")
	}
}

// TestADeletionThatEndsLateIsHeard: it was given up, and removed the last local segment all the
// same, before or after the source was looked at again. Its log is not missed, and its start is
// said in the manifest.
func TestADeletionThatEndsLateIsHeard(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"the scan", "the end"} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			r := start(t, settings())
			r.seen(seg(0))
			r.opened(0)
			r.copied(0, 10)
			r.after(2 * 3600 * 1e9)
			f := take[Delete](r)
			r.step(Finished{ID: f.ID, Result: Failed{
				Reason: tier.Reason{Code: tier.CodeUnknownOutcome, Text: "given up"}}})
			late := Late{Effect: f, Result: Deleted{Gone: []tier.LocalSegment{f.Segments[0].Segment},
				LogStart: 10, Next: 2, Unpublished: []tier.Position{1},
				Window: tier.BrakeWindow{Since: r.now, Segments: 1, Bytes: 100}}}
			if first == "the end" {
				r.step(late)
			}
			r.notIn("wal")
			if first == "the scan" {
				r.code(tier.CodeSourceVanished)
				r.step(late)
			}
			r.code(tier.CodeEmptied)
			if v := r.view(); len(v.Alarms) > 0 || !r.e.Emptied("wal") || v.LogStart != 10 {
				t.Errorf("alarms %v, log start %d", v.Alarms, v.LogStart)
			}
			if w := r.e.Table("orders").State.Window; w.Segments != 1 || w.Bytes != 100 {
				t.Errorf("the brake counts %+v", w)
			}
			if p := take[Publish](r); p.Position != 1 {
				t.Errorf("published %d", p.Position)
			}
			r.none()
		})
	}
}

// TestADropEndsThoughAnAttemptIsUnknown: nothing local of a dropped table is touched, nor is a log
// whose source is gone; but what became of a copy of it has to be found out, or the disablement
// would never end.
func TestADropEndsThoughAnAttemptIsUnknown(t *testing.T) {
	t.Parallel()
	for name, becomes := range map[string]func(*rig) tier.TableState{
		"it is dropped": func(r *rig) tier.TableState {
			s := tier.TableState{Table: "orders", State: tier.Disabling, Epoch: 2,
				Policy: tier.PolicyDelete, Since: r.now, Dropped: r.now}
			r.step(TableDropped{State: s})
			return s
		},
		"its source is gone": func(r *rig) tier.TableState {
			r.step(SourceScanned{Source: "wal"})
			r.step(Reconfigured{Settings: settings(func(s *Settings, tab *tier.Table) {
				s.Generation, tab.Tiering, tab.DisablePolicy = 2, false, tier.PolicyRetain
			})})
			r.step(Finished{ID: take[ChangeTier](r).ID, Result: Done{}})
			return tier.TableState{Epoch: 2, Policy: tier.PolicyRetain}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, settings())
			r.seen(seg(0), tail(10))
			r.opened(0)
			f := take[Copy](r)
			r.step(Finished{ID: f.ID, Result: Failed{Reason: tier.Reason{Code: tier.CodeStoreError},
				Attempt: &tier.Attempt{ID: tier.AttemptID{7}, Epoch: 1, Range: seg(0).Range}}})
			state := becomes(r)
			r.after(time.Minute)
			r.step(Finished{ID: take[Resolve](r).ID, Result: Abandoned{Next: 1}})
			c := take[ChangeTier](r)
			if c.State != tier.Disabled || c.Epoch != state.Epoch || c.Policy != state.Policy {
				t.Fatalf("got %+v, want the disablement over", c)
			}
		})
	}
}

// TestWhatIsNotClosedIsSaidOnce: a segment above the recovery point is active, wherever it stands,
// and the log says once what it waits for, also where it is the oldest one.
func TestWhatIsNotClosedIsSaidOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		oldest int // of those that are not closed, before the last
		states string
	}{
		{0, "active active active"},
		{1, "copied active active"},
	} {
		r := start(t, settings())
		list := []tier.LocalSegment{seg(0), seg(10), tail(20)}
		for i := c.oldest; i < 2; i++ {
			list[i].Waits = tier.WaitsForRecoveryPoint
		}
		r.seen(list...)
		r.opened(0)
		if c.oldest > 0 {
			r.copied(0, 10)
		}
		segments, _ := r.e.Segments(orders)
		var states []string
		for _, s := range segments {
			states = append(states, s.State)
		}
		if got := strings.Join(states, " "); got != c.states {
			t.Errorf("the states are %q, want %q", got, c.states)
		}
		v, _ := r.e.Log(orders)
		said := 0
		for _, why := range v.Waiting {
			if why.Code == tier.CodeRecoveryPoint {
				said++
			}
		}
		if said != 1 {
			t.Errorf("the recovery point is said %d times: %+v", said, v.Waiting)
		}
	}
}

// TestATableTiersAgainWhenItsDeletionsAreOver: what goes of a table that does not tier goes without
// a proof. It does not tier again before that has come to its end, and nothing more of the kind
// begins; where it is not to tier any more, deletions go on.
func TestATableTiersAgainWhenItsDeletionsAreOver(t *testing.T) {
	t.Parallel()
	r := start(t, settings(func(_ *Settings, tab *tier.Table) { tab.Tiering = false }))
	tiers := func(generation uint64, is bool) {
		r.step(Reconfigured{Settings: settings(func(s *Settings, tab *tier.Table) {
			s.Generation, tab.Tiering = generation, is
		})})
	}
	r.seen(seg(0), seg(10), tail(20))
	r.opened(0)
	r.after(49 * time.Hour)
	f := take[Delete](r)
	tiers(2, true)
	r.none()
	r.step(Finished{ID: f.ID, Result: Failed{Reason: tier.Reason{Code: tier.CodeRetry}}})
	change := take[ChangeTier](r)
	if change.State != tier.Enabled || change.Epoch != 2 {
		t.Fatalf("got %+v, want it ENABLED", change)
	}
	r.step(Finished{ID: change.ID, Result: Failed{Reason: tier.Reason{Code: tier.CodeRetry}}})
	r.none()
	tiers(3, false)
	r.after(time.Hour)
	r.deleted()
}
