package engine

import (
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// holed is an engine that knows of a hole at 0, whose limits let all that lies behind it go.
func holed(t *testing.T, change ...func(*Settings, *tier.Table)) *rig {
	t.Helper()
	rule := func(s *Settings, _ *tier.Table) { s.ExpireRemoteRule = true }
	s := settings(append([]func(*Settings, *tier.Table){rule}, change...)...)
	r := &rig{t: t, e: New(), now: epochStart}
	r.step(Reconfigured{Settings: s})
	r.step(Restored{State: tier.LogState{Log: orders, Source: "wal", Layout: tier.LayoutPlain,
		Epoch: 1, Copied: 20, Next: 2, Holes: []tier.Hole{{Range: tier.Range{Base: 0, Next: 10},
			Cause: tier.HoleSourceGone}}}, Copies: []tier.Remote{remote(10)}})
	r.step(RestoredTable{State: tier.TableState{Table: "orders", State: tier.Enabled, Epoch: 1}})
	r.step(Started{})
	return r
}

// remote is a copy of ten offsets.
func remote(base tier.Offset) tier.Remote {
	return tier.Remote{Range: tier.Range{Base: base, Next: base + 10},
		Position: tier.Position(base / 10), Epoch: 1, Bytes: 100, ModTime: epochStart,
		Last: tier.NoLeaderEpoch}
}

// busy is a source with a log that takes all workers there are.
func (r *rig) busy(segments ...tier.LocalSegment) {
	other := tier.LogID{Table: "orders", Name: "1"}
	s := scan(seg(0), tail(10))
	s.Log = other
	r.step(Scanned{Scan: s})
	f := take[Open](r)
	r.step(Finished{ID: f.ID, Result: Opened{
		State: tier.LogState{Log: other, Source: f.Source, Layout: f.Layout, Epoch: 1},
		Table: tier.TableState{Table: "orders", State: tier.Enabled, Epoch: 1}}})
	r.step(Scanned{Scan: scan(segments...)})
	r.step(SourceScanned{Source: "wal", Logs: []tier.LogID{orders, other}})
}

// TestNothingExpiresAboveWhatIsStillToBeCopied: what came back into a hole waits for its copy to
// begin, for as long as that takes.
func TestNothingExpiresAboveWhatIsStillToBeCopied(t *testing.T) {
	t.Parallel()
	r := holed(t, func(s *Settings, _ *tier.Table) { s.Workers = 1 })
	r.busy(tail(20))
	if f := take[Expire](r); len(f.Segments) != 1 || f.Segments[0].Base != 10 {
		t.Fatalf("with nothing in the hole expires %+v", f)
	}

	r = holed(t, func(s *Settings, _ *tier.Table) { s.Workers = 1 })
	r.busy(seg(0), tail(20))
	c := take[Copy](r)
	if c.Log == orders {
		t.Fatal("the other log has no worker")
	}
	r.none()
	r.after(24 * time.Hour)
	r.none()
	r.step(Finished{ID: c.ID, Result: Failed{Reason: tier.Reason{Code: tier.CodeStoreError}}})
	if f := r.copied(2, 20); f.Log != orders || f.Segment.Base != 0 {
		t.Fatalf("copied %+v", f)
	}
	if f := take[Expire](r); len(f.Segments) != 2 || f.Segments[0].Base != 0 {
		t.Errorf("got %+v, want the one that came back first", f)
	}
}

// TestADamagedSegmentHoldsNoExpiryUp: nobody may ever mend what came back damaged, or give it up,
// and what it blocks is not copied before.
func TestADamagedSegmentHoldsNoExpiryUp(t *testing.T) {
	t.Parallel()
	first, second := seg(0), seg(5)
	first.Next, second.Next = 5, 10
	r := holed(t, func(s *Settings, _ *tier.Table) { s.Workers = 1 })
	r.seen(first, second, tail(20))
	r.damaged()
	r.none()
	r.seen(first, second, tail(20))
	if f := take[Expire](r); len(f.Segments) != 1 || f.Segments[0].Base != 10 {
		t.Errorf("expires %+v", f)
	}
	r.none()
}

// TestNothingExpiresBehindAHoleBeforeTheFirstLook: what came back into the hole while no process
// ran is not known before. A source that cannot be looked at does not hold an expiry up.
func TestNothingExpiresBehindAHoleBeforeTheFirstLook(t *testing.T) {
	t.Parallel()
	r := holed(t)
	r.none()
	r.after(time.Hour)
	r.none()
	r.seen(seg(0), tail(20))
	if f := r.copied(2, 20); f.Segment.Base != 0 {
		t.Fatalf("copied %+v", f)
	}
	if f := take[Expire](r); len(f.Segments) != 2 || f.Segments[0].Base != 0 {
		t.Errorf("got %+v, want the one that came back first", f)
	}

	for _, code := range []tier.Code{tier.CodeSourceVanished, tier.CodeSourceUnread} {
		r = holed(t)
		r.step(SourceScanned{Source: "wal", Trouble: &tier.Reason{Code: code}})
		if f := take[Expire](r); len(f.Segments) != 1 || f.Segments[0].Base != 10 {
			t.Errorf("%s: expires %+v", code, f)
		}
	}
}

// TestADisablementEndsWhereTheSourceCannotBeRead: what became of an attempt the store alone can
// tell then, as where the source has gone.
func TestADisablementEndsWhereTheSourceCannotBeRead(t *testing.T) {
	t.Parallel()
	r := &rig{t: t, e: New(), now: epochStart}
	r.step(Reconfigured{Settings: settings(func(_ *Settings, tab *tier.Table) {
		tab.Tiering, tab.DisablePolicy = false, tier.PolicyRetain
	})})
	r.step(Restored{State: tier.LogState{Log: orders, Source: "wal", Layout: tier.LayoutPlain,
		Epoch: 1, Copied: 10, Next: 2}, Copies: []tier.Remote{remote(0)}, Attempts: []tier.Attempt{{
		ID: tier.AttemptID{7}, Epoch: 1, Range: tier.Range{Base: 10, Next: 20}, Position: 1}}})
	r.step(RestoredTable{State: tier.TableState{Table: "orders", State: tier.Disabling, Epoch: 2,
		Policy: tier.PolicyRetain}})
	r.step(Started{})
	r.none()
	r.step(SourceScanned{Source: "wal", Trouble: &tier.Reason{Code: tier.CodeSourceUnread}})
	if f := take[Resolve](r); f.Source != "" {
		t.Errorf("got %+v, want the store asked alone", f)
	}
}

// TestNothingExpiresOverACopyThatMayHaveEnded: a file was written again, and what became of its
// copy is still to be found out, or it is still under way, when the source is gone and the first
// copy comes of age. A start that moved would take the younger copy with it.
func TestNothingExpiresOverACopyThatMayHaveEnded(t *testing.T) {
	t.Parallel()
	gone := SourceScanned{Source: "wal", Trouble: &tier.Reason{Code: tier.CodeSourceVanished}}
	old := tier.Remote{Range: tier.Range{Base: 0, Next: 10}, Position: 0, Epoch: 1, Bytes: 100,
		ModTime: epochStart, Last: tier.NoLeaderEpoch}
	again := old
	again.Position, again.ModTime = 1, epochStart.Add(6*24*time.Hour)
	state := tier.LogState{Log: orders, Source: "wal", Layout: tier.LayoutPlain, Epoch: 1, Copied: 10,
		Next: 1}
	restored := func(attempts ...tier.Attempt) *rig {
		r := &rig{t: t, e: New(), now: epochStart}
		r.step(Reconfigured{Settings: settings(func(_ *Settings, tab *tier.Table) {
			tab.TTL = 7 * 24 * time.Hour
		})})
		s := state
		s.Next += tier.Position(len(attempts))
		r.step(Restored{State: s, Copies: []tier.Remote{old}, Attempts: attempts})
		r.step(RestoredTable{State: tier.TableState{Table: "orders", State: tier.Enabled, Epoch: 1}})
		r.step(Started{})
		return r
	}
	expiresIn := func(r *rig, d time.Duration) {
		t.Helper()
		if d > 0 {
			r.none()
			r.after(d)
		}
		if f := take[Expire](r); len(f.Segments) == 0 || f.Segments[0].Base != 0 {
			t.Errorf("expires %+v", f)
		}
	}
	const week = 7*24*time.Hour + time.Second

	attempt := tier.Attempt{ID: tier.AttemptID{7}, Epoch: 1, Range: old.Range, Position: 1}
	for name, c := range map[string]struct {
		result Result
		left   time.Duration
	}{
		"it had ended":     {Copied{Remote: again, Offset: 10, Next: 2}, 6 * 24 * time.Hour},
		"it had not ended": {Abandoned{Next: 2}, 0},
	} {
		r := restored(attempt)
		r.after(week)
		r.none() // before the first look
		r.step(gone)
		f := take[Resolve](r)
		if f.Source != "" {
			t.Errorf("%s: the source %q is to be read, and is gone", name, f.Source)
		}
		r.none()
		r.step(Finished{ID: f.ID, Result: Failed{Reason: tier.Reason{Code: tier.CodeStoreError},
			Attempt: &attempt}})
		r.none()
		r.after(time.Minute)
		r.step(Finished{ID: take[Resolve](r).ID, Result: c.result})
		expiresIn(r, c.left)
	}

	r := restored()
	written := seg(0)
	written.Log.ModTime = again.ModTime
	r.seen(written, tail(10))
	f := take[Copy](r)
	r.after(week)
	r.step(gone)
	r.none()
	r.step(Finished{ID: f.ID, Result: Copied{Remote: again, Offset: 10, Next: 2}})
	expiresIn(r, 6*24*time.Hour)
}

// TestAnExpiryAtAHoleIsAskedAboutAfterALook: what came back into the hole since the source was
// looked at last is not known, whether the expiry becomes due by time or is asked about again.
func TestAnExpiryAtAHoleIsAskedAboutAfterALook(t *testing.T) {
	t.Parallel()
	r := holed(t, func(s *Settings, tab *tier.Table) {
		s.ExpireRemoteRule, tab.TTL = false, 2*time.Hour
	})
	r.seen(tail(20))
	r.after(3 * time.Hour)
	r.none()
	r.code(tier.CodePrefixBlocked)
	r.seen(tail(20))
	f := take[Expire](r)
	r.step(Finished{ID: f.ID, Result: StaysAll{Kept: KeptRemote{Range: f.Segments[0].Range,
		Position: f.Segments[0].Position}}})
	r.after(10 * time.Minute)
	r.none()
	r.seen(seg(0), tail(20))
	if f := r.copied(2, 20); f.Segment.Base != 0 {
		t.Fatalf("copied %+v", f)
	}
	if f := take[Expire](r); len(f.Segments) != 2 || f.Segments[0].Base != 0 {
		t.Errorf("got %+v, want the one that came back first", f)
	}
}

// TestAnExpiryEndsAtAHole: so it does where the hole lies within what is due.
func TestAnExpiryEndsAtAHole(t *testing.T) {
	t.Parallel()
	r := &rig{t: t, e: New(), now: epochStart}
	r.step(Reconfigured{Settings: settings(func(s *Settings, _ *tier.Table) {
		s.ExpireRemoteRule = true
	})})
	r.step(Restored{State: tier.LogState{Log: orders, Source: "wal", Layout: tier.LayoutPlain,
		Epoch: 1, Copied: 30, Next: 3, Holes: []tier.Hole{{Range: tier.Range{Base: 10, Next: 20},
			Cause: tier.HoleSourceGone}}}, Copies: []tier.Remote{remote(0), remote(20)}})
	r.step(RestoredTable{State: tier.TableState{Table: "orders", State: tier.Enabled, Epoch: 1}})
	r.step(Started{})
	f := take[Expire](r)
	if len(f.Segments) != 1 || f.Segments[0].Base != 0 {
		t.Fatalf("expires %+v before the first look", f)
	}
	r.step(Finished{ID: f.ID, Result: Moved{Start: 10, At: r.now, Cause: tier.MoveExpired}})
	r.none()
	r.seen(tail(30))
	if f := take[Expire](r); len(f.Segments) != 1 || f.Segments[0].Base != 20 {
		t.Errorf("expires %+v after the first look", f)
	}
}

// TestStatusSaysWhatHoldsAnExpiryUp: a file that came back into a hole and that nobody may read is
// waited for, for as long as it is there.
func TestStatusSaysWhatHoldsAnExpiryUp(t *testing.T) {
	t.Parallel()
	r := holed(t)
	r.seen(seg(0), tail(20))
	f := take[Copy](r)
	r.step(Finished{ID: f.ID, Result: Failed{Reason: tier.Reason{Code: tier.CodeUnreadable,
		Text: "permission denied"}}})
	r.none()
	r.code(tier.CodeUnreadable)
	want := "remote segment [10, 20) stays until the one at 0 is copied"
	if got := r.code(tier.CodePrefixBlocked).Text; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
