package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

func TestClosedSegmentsAreCopiedOldestFirst(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(seg(0), seg(10), seg(20), tail(30))
	r.opened(0)
	if got := len(r.open); got != 2 {
		t.Fatalf("%d copies under way, want as many as workers: 2", got)
	}
	for i, want := range []tier.Offset{0, 10, 20} {
		if f := r.copied(tier.Position(i), want+10); f.Segment.Base != want {
			t.Fatalf("copy %d is of base %d, want %d", i, f.Segment.Base, want)
		}
	}
	r.none()
	if v := r.view(); v.Copied != 30 || v.Uncopied.Segments != 0 {
		t.Fatalf("copied offset %d with %d uncopied, want 30 and 0", v.Copied, v.Uncopied.Segments)
	}
}

// Kafka 15272: the last rolled segment was never uploaded.
func TestLastClosedSegmentIsCopiedThoughTheActiveOneIsEmpty(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	empty := tail(10)
	empty.Next = 10
	r.seen(seg(0), empty)
	r.opened(0)
	if f := r.copied(0, 10); f.Segment.Base != 0 {
		t.Fatalf("copied base %d, want 0", f.Segment.Base)
	}
	r.none()
}

func TestNothingIsDeletedBeforeItIsCopiedAndItsTimeHasCome(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.now += 10 * hour
	r.seen(seg(0), seg(10), tail(20))
	r.opened(0)
	first, second := take[Copy](r), take[Copy](r)
	r.none() // long due, and not copied
	r.open = append(r.open, second)
	r.copied(1, 0) // the second finishes first: the oldest is not copied yet
	r.none()
	r.open = append(r.open, first)
	r.copied(0, 20)
	if f := r.deleted(); len(f.Segments) != 2 {
		t.Fatalf("%d candidates, want both segments", len(f.Segments))
	}
	r.none() // the active segment is never proposed
}

// Fluss 3728, 3222: idle tables kept local segments for ever, since clean-up ran only when a copy
// advanced.
func TestRetentionNeedsNoNewCopy(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(seg(0), tail(10))
	r.opened(0)
	r.copied(0, 10)
	r.none()
	due, ok := r.e.NextDue()
	if want := epochStart + hour + 1; !ok || due != want {
		t.Fatalf("next due %v, want %v", due, want)
	}
	r.after(time.Hour)
	r.none() // the limit is strict
	r.after(1)
	r.deleted()
}

func TestTrouble(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		event Event
		code  tier.Code
	}{
		"vanished": {SourceScanned{Source: "wal", Trouble: &tier.Reason{Code: tier.CodeSourceVanished}},
			tier.CodeSourceVanished},
		"the log alone vanished": {SourceScanned{Source: "wal"}, tier.CodeSourceVanished},
		"paused":                 {Paused{&tier.Reason{Code: tier.CodePaused}}, tier.CodePaused},
		"ungoverned": {Reconfigured{settings(func(s *Settings, _ *tier.Table) {
			s.Generation = 2
		}).without("orders")}, tier.CodeFrozen},
		"never": {Reconfigured{settings(func(s *Settings, _ *tier.Table) {
			s.Generation = 2
			s.LocalDelete = func(string) tier.LocalDelete { return tier.LocalDeleteNever }
		})}, tier.CodeLocalDelete},
		"compacted": {Reconfigured{settings(func(s *Settings, tab *tier.Table) {
			s.Generation, tab.Compacted = 2, tier.Yes
		})}, tier.CodeCompacted},
		"compacted, and named": {Reconfigured{settings(func(s *Settings, tab *tier.Table) {
			s.Generation, tab.Compacted, tab.Named = 2, tier.Yes, true
		})}, tier.CodeCompactedTable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, settings())
			r.seen(seg(0), tail(10))
			r.opened(0)
			r.copied(0, 10)
			r.step(c.event)
			r.after(10 * time.Hour)
			r.none()
			r.code(c.code)
		})
	}
}

// TestACompactedTableIsAnAlarmOnlyWhereItIsNamed: discovered by a pattern it is skipped, and nobody
// has to be told; that somebody asked for it by name is a mistake.
func TestACompactedTableIsAnAlarmOnlyWhereItIsNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		named, tiering bool
		alarms         int
	}{
		"discovered":            {false, true, 0},
		"named":                 {true, true, 1},
		"named, and not tiered": {true, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, settings(func(_ *Settings, tab *tier.Table) {
				tab.Named, tab.Tiering = c.named, c.tiering
			}))
			s := scan(seg(0), tail(10))
			s.Compacted = true
			r.step(Scanned{Scan: s})
			r.step(SourceScanned{Source: "wal", Logs: []tier.LogID{orders}})
			r.none()
			if v := r.view(); len(v.Alarms) != c.alarms || len(v.Waiting) != 1-c.alarms {
				t.Errorf("alarms %v, waiting %v", v.Alarms, v.Waiting)
			}
		})
	}
}

func (s Settings) without(table string) Settings {
	inner := s.Table
	s.Table = func(name string) (tier.Table, bool) {
		t, ok := inner(name)
		return t, ok && name != table
	}
	return s
}

func TestDeletionGoesOnWhenTheSourceIsBack(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(seg(0), tail(10))
	r.opened(0)
	r.copied(0, 10)
	r.step(SourceScanned{Source: "wal", Trouble: &tier.Reason{Code: tier.CodeSourceUnread}})
	r.after(2 * time.Hour)
	r.none()
	r.seen(seg(0), tail(10))
	r.deleted()
}

func TestAKeptSegmentIsAskedAgainOnlyWhenItMayHelp(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(seg(0), seg(10), tail(20))
	r.opened(0)
	r.copied(0, 10)
	r.copied(1, 20)
	r.after(2 * time.Hour)
	f := take[Delete](r)
	r.step(Finished{ID: f.ID, Result: Deleted{Kept: &Kept{
		Segment: f.Segments[0].Segment, Reasons: []tier.Reason{{Code: tier.CodeDenied}}}}})
	r.none()
	r.seen(seg(0), seg(10), tail(20)) // nothing changed
	r.after(299 * time.Second)
	r.none()
	r.code(tier.CodeDenied)
	r.after(time.Second) // the slow period
	take[Delete](r)
}

func TestAChangeOfFactsAsksAgain(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(seg(0), tail(10))
	r.opened(0)
	r.copied(0, 10)
	r.after(2 * time.Hour)
	f := take[Delete](r)
	r.step(Finished{ID: f.ID, Result: Deleted{Kept: &Kept{
		Segment: f.Segments[0].Segment, Reasons: []tier.Reason{{Code: tier.CodeDenied}}}}})
	r.none()
	r.step(Reconfigured{Settings: settings(func(s *Settings, _ *tier.Table) { s.Generation = 2 })})
	r.deleted()
}

func TestAFileThatChangedIsCopiedAgain(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(seg(0), tail(10))
	r.opened(0)
	r.copied(7, 10)
	touched := seg(0)
	touched.Log.Inode = 99
	r.seen(touched, tail(10))
	if f := take[Copy](r); !f.HasKnown || f.Known != 7 || f.Segment != touched {
		t.Fatalf("got %+v, want a copy of the new file with its old copy known", f)
	}
}

// The gate reckons with the mtime that the copy recorded: so the engine must, or it would not ask
// for as long as the file seems young.
func TestAFileThatWasOnlyTouchedIsAsOldAsItsCopy(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(seg(0), tail(10))
	r.opened(0)
	r.copied(7, 10)
	r.now += hour / 2
	touched := seg(0)
	touched.Log.Inode, touched.Log.ModTime = 99, r.now
	r.seen(touched, tail(10))
	f := take[Copy](r)
	r.step(Finished{ID: f.ID, Result: Copied{Offset: 10, Next: 8, Remote: tier.Remote{
		Range: seg(0).Range, Position: 7, Epoch: 1, Verified: true, Bytes: 100, Log: touched.Log,
		ModTime: seg(0).Log.ModTime, FinishedAt: epochStart}}})
	r.none()
	r.after(time.Hour/2 + 1)
	r.deleted()
}

// A program may write a file beside a segment, a checksum say, just after it was copied.
func TestAFileThatCameToASegmentAfterItsCopyIsCopiedToo(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(seg(0), tail(10))
	r.opened(0)
	r.copied(7, 10)
	grown := seg(0)
	grown.Bytes += 20
	r.seen(grown, tail(10))
	if f := r.copied(8, 10); f.Segment != grown {
		t.Fatalf("got %+v, want a copy of the segment with both files", f)
	}
	r.none()
}

// What followed a segment may go while it is copied. A scan then lets it reach up to the next file;
// but it ends where its copy does, and the rest is a hole.
func TestASegmentEndsWhereItsCopyDoes(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	reaching := seg(0)
	reaching.Next = 20
	r.seen(reaching, tail(20))
	r.opened(0)
	f := take[Copy](r)
	r.step(Finished{ID: f.ID, Result: Copied{Offset: 10, Next: 1, Remote: tier.Remote{
		Range: seg(0).Range, Epoch: 1, Verified: true, Bytes: 100, Log: seg(0).Log,
		ModTime: epochStart, FinishedAt: epochStart}}})
	if h := take[RecordHole](r); h.Range != (tier.Range{Base: 10, Next: 20}) {
		t.Errorf("got the hole %s, want [10, 20)", h.Range)
	}
}

func TestALostObjectIsCopiedAgain(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(seg(0), tail(10))
	r.opened(0)
	r.copied(0, 10)
	r.after(2 * time.Hour)
	f := take[Delete](r)
	r.step(Finished{ID: f.ID, Result: Deleted{Kept: &Kept{
		Segment: f.Segments[0].Segment, Reasons: []tier.Reason{{Code: tier.CodeStoreLost}}}}})
	if f := r.copied(1, 10); f.HasKnown {
		t.Fatal("a lost copy must not be taken for known")
	}
	r.deleted()
}

func TestDamageBlocksItsLogUntilTheFileChanges(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(seg(0), seg(10), tail(20))
	r.opened(0)
	f := take[Copy](r)
	r.step(Finished{ID: f.ID, Result: Failed{Reason: tier.Reason{Code: tier.CodeDamaged},
		Quarantine: true, Segment: f.Segment}})
	take[Copy](r) // of the second, which was under way
	r.after(10 * time.Hour)
	r.none()
	r.code(tier.CodeQuarantined)
	mended := seg(0)
	mended.Log.ModTime += second
	r.seen(mended, seg(10), tail(20))
	if f := take[Copy](r); f.Segment != mended {
		t.Fatalf("got %+v, want a copy of the mended file", f)
	}
}

func TestOffsetsThatTheSourceDroppedBecomeAHole(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(tail(0))
	r.opened(0)
	r.seen(seg(30), tail(40))
	c := take[Copy](r)
	if f := take[RecordHole](r); f.Range != (tier.Range{Base: 0, Next: 30}) {
		t.Fatalf("hole %s, want [0, 30)", f.Range)
	}
	r.open = append(r.open, c)
}

// A hole whose recording did not come back is asked for again, also where the copied offset has
// passed it since: it may be on record, and not in the manifest.
func TestAHoleOfUnknownOutcomeIsAskedForAgain(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(tail(0))
	r.opened(0)
	r.seen(seg(30), tail(40))
	c := take[Copy](r)
	f := take[RecordHole](r)
	r.step(Finished{ID: f.ID, Result: Failed{Reason: tier.Reason{Code: tier.CodeUnknownOutcome}}})
	r.step(Finished{ID: c.ID, Result: Copied{Offset: 40, Next: 2, Remote: tier.Remote{
		Range: seg(30).Range, Position: 1, Epoch: 1, Verified: true, Bytes: 100, Log: seg(30).Log,
		ModTime: epochStart, FinishedAt: epochStart}}})
	r.after(time.Minute)
	again := take[RecordHole](r)
	if again.Range != f.Range || again.ID == f.ID {
		t.Fatalf("got %+v, want %+v again", again, f)
	}
	r.step(Finished{ID: again.ID, Result: HoleDone{Hole: tier.Hole{Range: f.Range}, Offset: 40,
		Next: 2}})
	if p := take[Publish](r); p.Position != 0 {
		t.Errorf("published %d", p.Position)
	}
	r.none()
}

func TestNoHoleWhereTheLogWasNotReadWhole(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(tail(0))
	r.opened(0)
	part := scan(tail(30))
	part.Whole = false
	r.step(Scanned{Scan: part})
	r.none()
}

func TestUnknownOutcomeIsResolvedBeforeAnythingElse(t *testing.T) {
	t.Parallel()
	r := start(t, settings(func(s *Settings, _ *tier.Table) { s.Workers = 1 }))
	r.seen(seg(0), seg(10), tail(20))
	r.opened(0)
	f := take[Copy](r)
	a := tier.Attempt{ID: tier.AttemptID{1}, Range: f.Segment.Range}
	r.step(Finished{ID: f.ID, Result: Failed{Reason: tier.Reason{Code: tier.CodeStoreError},
		Attempt: &a}})
	r.none() // backing off
	r.code(tier.CodeStoreError)
	r.after(time.Minute)
	res := take[Resolve](r)
	r.none()
	r.step(Finished{ID: res.ID, Result: Abandoned{Next: 1}})
	if f := take[Copy](r); f.Segment.Base != 0 {
		t.Fatalf("copies base %d, want the abandoned one again", f.Segment.Base)
	}
}

// A look at an attempt that does not come back says nothing of the attempt: it stays to be
// resolved, and is resolved once.
func TestALookThatFailedLeavesTheAttempt(t *testing.T) {
	t.Parallel()
	for name, attempt := range map[string]*tier.Attempt{
		"the answer names it": {ID: tier.AttemptID{7}, Epoch: 1, Range: seg(0).Range},
		"the answer does not": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, settings())
			r.seen(seg(0), tail(10))
			r.opened(0)
			f := take[Copy](r)
			r.step(Finished{ID: f.ID, Result: Failed{Reason: tier.Reason{Code: tier.CodeStoreError},
				Attempt: &tier.Attempt{ID: tier.AttemptID{7}, Epoch: 1, Range: seg(0).Range}}})
			r.after(time.Minute)
			r.step(Finished{ID: take[Resolve](r).ID, Result: Failed{Attempt: attempt,
				Reason: tier.Reason{Code: tier.CodeUnknownOutcome}}})
			r.after(time.Minute)
			r.step(Finished{ID: take[Resolve](r).ID, Result: Abandoned{Next: 1}})
			r.copied(1, 10)
			r.none()
		})
	}
}

// A clock that goes back while a table is being disabled does not let its start be moved for ever.
func TestTheStartMovesOnceThoughTheClockGoesBack(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(seg(0), tail(10))
	r.opened(0)
	r.copied(0, 10)
	r.step(Reconfigured{Settings: settings(func(s *Settings, tab *tier.Table) {
		s.Generation, tab.Tiering, tab.DisablePolicy = 2, false, tier.PolicyDelete
	})})
	r.step(Finished{ID: take[ChangeTier](r).ID, Result: Done{}})
	r.now -= hour
	r.seen(seg(0), tail(10))
	f := take[MoveStart](r)
	r.step(Finished{ID: f.ID, Result: Moved{Start: f.Start, Cause: f.Cause, At: r.now, Next: 2}})
	r.none()
}

// A copy that finishes before the one below it is not where the log begins, so it does not expire.
func TestNothingExpiresAboveTheCopiedOffset(t *testing.T) {
	t.Parallel()
	s := settings()
	s.ExpireRemoteRule = true
	r := start(t, s)
	r.seen(seg(0), seg(10), tail(20))
	r.opened(0)
	lower := take[Copy](r)
	r.copied(1, 0)
	r.none()
	r.open = append(r.open, lower)
	r.copied(0, 20)
	f := take[Expire](r)
	if len(f.Segments) != 2 || f.Segments[0].Base != 0 {
		t.Fatalf("%d segments expire from %+v on, want 2 from 0 on", len(f.Segments), f.Segments)
	}
	r.none()
}

// Objects of what left the log are removed while newer segments are being copied: none of those is
// copied twice.
func TestARemovalDoesNotDisturbACopyUnderWay(t *testing.T) {
	t.Parallel()
	s := settings()
	s.Removers, s.Workers = 1, 3
	r := start(t, s)
	r.seen(seg(10), tail(20))
	f := take[Open](r)
	r.step(Finished{ID: f.ID, Result: Opened{State: tier.LogState{Log: orders, Source: "wal",
		Layout: tier.LayoutPlain, Epoch: 1, Copied: 10, LogStart: 10, Next: 1},
		Table: tier.TableState{Table: "orders", State: tier.Enabled, Epoch: 1}}})
	r.e.log(orders).addRemote(tier.Remote{Range: seg(0).Range, Epoch: 1})
	under := take[Copy](r)
	r.step(Tick{})
	r.seen(seg(10), seg(20), tail(30))
	r.step(Finished{ID: take[Remove](r).ID, Result: Removed{Positions: []tier.Position{0}}})
	if f := take[Copy](r); f.Segment.Base != 20 {
		t.Errorf("the segment %s is copied while [10, 20) is; want [20, 30)", f.Segment.Range)
	}
	r.none()
	r.open = append(r.open, under)
	r.copied(1, 20)
}

func TestTheBrakePausesTheTableUntilItIsResumed(t *testing.T) {
	t.Parallel()
	r := start(t, settings(func(s *Settings, _ *tier.Table) { s.Brake.MaxSegments = 1 }))
	r.seen(seg(0), seg(10), tail(20))
	r.opened(0)
	r.copied(0, 10)
	r.copied(1, 20)
	r.after(2 * time.Hour)
	if f := r.deleted(); len(f.Segments) != 1 {
		t.Fatalf("%d candidates, want the one that the brake allows", len(f.Segments))
	}
	p := take[Pause](r)
	r.step(Finished{ID: p.ID, Result: Done{}})
	r.after(40 * time.Hour)
	r.none() // time alone does not release it
	r.code(tier.CodeBrake)
	r.step(Resumed{Table: "orders"})
	r.deleted()
}

// Redpanda 10739: retention ran before the configuration was loaded.
func TestNothingHappensBeforeStarted(t *testing.T) {
	t.Parallel()
	r := &rig{t: t, e: New(), now: epochStart}
	r.step(Restored{State: tier.LogState{Log: orders, Source: "wal", Epoch: 1, Copied: 10, Next: 1},
		Copies: []tier.Remote{{Range: seg(0).Range, Bytes: seg(0).Bytes, Log: seg(0).Log,
			ModTime: epochStart}}})
	r.now += 10 * hour
	r.seen(seg(0), tail(10))
	r.step(Reconfigured{Settings: settings()})
	r.step(Tick{})
	r.none()
	r.step(Started{})
	r.deleted()
}

func TestOneLogInTwoSourcesIsFrozen(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(seg(0), tail(10))
	r.opened(0)
	r.copied(0, 10)
	other := scan(seg(0), tail(10))
	other.Source = "wal-2"
	r.step(Scanned{Scan: other})
	r.after(10 * time.Hour)
	r.none()
	r.code(tier.CodeDuplicateLog)
}

func TestARecreatedLogIsNotTakenForTheOldOne(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(seg(0), tail(10))
	r.opened(0)
	r.copied(0, 10)
	again := scan(seg(0), tail(10))
	again.Incarnation = "other"
	r.step(Scanned{Scan: again})
	r.after(10 * time.Hour)
	r.none()
	r.code(tier.CodeIncarnation)
}

// Kafka 20609, Redpanda 9820: a timestamp in the future kept data for ever.
func TestATimestampInTheFutureFallsBackToTheMtime(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	s := seg(0)
	r.seen(s, tail(10))
	r.opened(0)
	f := take[Copy](r)
	r.step(Finished{ID: f.ID, Result: Copied{Offset: 10, Next: 1, Remote: tier.Remote{Range: s.Range,
		Bytes: s.Bytes, Log: s.Log, MaxTime: epochStart + 1000*hour, ModTime: epochStart}}})
	r.after(time.Hour + 1)
	r.deleted()
}

func TestCheckpointsAreWrittenWhenABlockIsComplete(t *testing.T) {
	t.Parallel()
	l := &logIndex{}
	for _, c := range []struct {
		next   tier.Position
		done   []uint64
		level  uint8
		block  uint64
		wanted bool
	}{
		{63, nil, 0, 0, false},
		{64, nil, 1, 0, true},
		{130, []uint64{1}, 1, 1, true},
		{130, []uint64{2}, 0, 0, false},
		{64 * 64, []uint64{63}, 1, 63, true},
		{64 * 64, []uint64{64}, 2, 0, true},
		{64 * 64, []uint64{64, 1}, 0, 0, false},
		{64 * 64 * 64, []uint64{64 * 64, 64}, 0, 0, false}, // there is no third level
	} {
		l.state = tier.LogState{Next: c.next, Checkpoints: c.done}
		level, block, ok := l.checkpointDue()
		if ok != c.wanted || ok && (level != c.level || block != c.block) {
			t.Errorf("next %d, done %v: got L%d block %d %v, want L%d block %d %v",
				c.next, c.done, level, block, ok, c.level, c.block, c.wanted)
		}
	}
	l.state = tier.LogState{Next: 70}
	l.underWay = []underWay{{id: 1, floor: 60}}
	if _, _, ok := l.checkpointDue(); ok {
		t.Error("a copy under way may still take a position of the block")
	}
}

func TestADeletionThatFailedBacksOff(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(seg(0), tail(10))
	r.opened(0)
	r.copied(0, 10)
	r.after(2 * time.Hour)
	f := take[Delete](r)
	r.step(Finished{ID: f.ID, Result: Failed{Reason: tier.Reason{Code: tier.CodeSourceUnread}}})
	r.none()
	r.after(time.Minute)
	r.deleted()
}

// The size of what is local follows each scan and each deletion: a limit of 250 bytes lets exactly
// those of 100 bytes go that it can do without.
func TestTheSizeLimitCountsWhatIsLocalNow(t *testing.T) {
	t.Parallel()
	r := start(t, settings(func(s *Settings, tab *tier.Table) {
		tab.LocalTTL, tab.LocalBytes = 0, tier.Limit{Set: true, Value: 250}
	}))
	copyClosed := func(bases ...tier.Offset) {
		t.Helper()
		for _, base := range bases {
			r.copied(tier.Position(base/10), base+10)
		}
	}
	bases := func(d Delete) (out []tier.Offset) {
		for _, c := range d.Segments {
			out = append(out, c.Segment.Base)
		}
		return out
	}
	r.seen(seg(0), seg(10), seg(20), seg(30), tail(40))
	r.opened(0)
	copyClosed(0, 10, 20, 30)
	if got := bases(r.deleted()); !slices.Equal(got, []tier.Offset{0}) {
		t.Fatalf("of 500 bytes %v go first; want 0, the first that was copied", got)
	}
	if got := bases(r.deleted()); !slices.Equal(got, []tier.Offset{10}) {
		t.Fatalf("of 400 bytes %v go, want 10", got)
	}
	r.none()
	r.seen(seg(20), seg(30), seg(40), tail(50))
	copyClosed(40)
	if got := bases(r.deleted()); !slices.Equal(got, []tier.Offset{20}) {
		t.Fatalf("of 400 bytes after a scan %v go, want 20", got)
	}
	r.none()
}

// Pulsar 13219: a source segment vanished during its upload. It is a normal race.
func TestAVanishedSegmentIsForgotten(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(seg(0), seg(10), tail(20))
	r.opened(0)
	first, second := take[Copy](r), take[Copy](r)
	r.step(Finished{ID: first.ID, Result: Failed{Reason: tier.Reason{Code: tier.CodeVanished}}})
	r.open = append(r.open, second)
	r.copied(1, 0)
	r.code(tier.CodeVanished)
	r.seen(seg(10), tail(20))
	r.after(time.Minute)
	if f := take[RecordHole](r); f.Range != seg(0).Range {
		t.Fatalf("hole %s, want %s", f.Range, seg(0).Range)
	}
}

// TestABackoffDoesNotGrowByTheClock: a clock that goes back by a day leaves the time of the next
// try a day away. What failed waits for no longer than it ever does.
func TestABackoffDoesNotGrowByTheClock(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(seg(0), tail(10))
	r.opened(0)
	f := take[Copy](r)
	r.step(Finished{ID: f.ID, Result: Failed{Reason: tier.Reason{Code: tier.CodeStoreError}}})
	r.now -= 24 * hour
	r.step(Tick{})
	r.none()
	r.now += settings().Backoff.Max
	r.step(Tick{})
	r.copied(0, 10)
	r.none()
}

// overlapping is a log with copies of [0, 30) and, when that was shorter again, of [20, 30), an
// hour younger.
func overlapping(t *testing.T) *rig {
	t.Helper()
	r := start(t, settings(func(s *Settings, tab *tier.Table) {
		tab.TTL, tab.LocalTTL = 2*time.Hour, 0
	}))
	copies := []tier.Remote{
		{Range: tier.Range{Base: 0, Next: 30}, Position: 0, Epoch: 1, Bytes: 100, ModTime: epochStart},
		{Range: tier.Range{Base: 20, Next: 30}, Position: 1, Epoch: 1, Bytes: 100,
			ModTime: epochStart + hour},
	}
	for i := range copies {
		copies[i].Last = tier.NoLeaderEpoch
	}
	r.step(Restored{State: tier.LogState{Log: orders, Source: "wal", Layout: tier.LayoutPlain,
		Epoch: 1, Copied: 30, Next: 2}, Copies: copies})
	r.step(RestoredTable{State: tier.TableState{Table: "orders", State: tier.Enabled, Epoch: 1}})
	r.seen(tail(30))
	return r
}

// TestNothingExpiresAboveACopyUnderWay: what was a hole came back, and is copied while the copy
// above it comes of age. A start that moved over both would pass one over that nobody was asked
// about.
func TestNothingExpiresAboveACopyUnderWay(t *testing.T) {
	t.Parallel()
	r := holed(t)
	r.seen(seg(0), tail(20))
	if f := r.copied(2, 20); f.Segment.Base != 0 {
		t.Fatalf("copied %+v", f)
	}
	if f := take[Expire](r); len(f.Segments) != 2 || f.Segments[0].Base != 0 {
		t.Errorf("got %+v, want the one that came back first", f)
	}
}

// TestOverlappingCopiesExpireTogether: a start that moves over the older one would take the younger
// one, which lies beneath it, out of the log before its time.
func TestOverlappingCopiesExpireTogether(t *testing.T) {
	t.Parallel()
	r := overlapping(t)
	r.none()
	r.after(2*time.Hour + 1)
	r.none()
	r.after(time.Hour)
	if f := take[Expire](r); len(f.Segments) != 2 {
		t.Fatalf("expires %+v, want both", f.Segments)
	}
	l := overlapping(t).e.logs[orders]
	first := []RemoteCandidate{{Remote: l.remote[0]}}
	if got := l.together(first); len(got) != 0 {
		t.Errorf("%+v would leave alone", got)
	}
	if got := l.together(append(first, RemoteCandidate{Remote: l.remote[1]})); len(got) != 2 {
		t.Errorf("of both only %+v would leave", got)
	}
}

// TestAnEndedDisablementIsNoLookAtTheSource: what was denied is still to leave the log when its
// table is DISABLED; without a look since the start it is not known where the log begins.
func TestAnEndedDisablementIsNoLookAtTheSource(t *testing.T) {
	t.Parallel()
	r := start(t, settings(func(s *Settings, tab *tier.Table) {
		tab.Tiering, tab.DisablePolicy, s.Removers = false, tier.PolicyDelete, 1
	}))
	r.step(Restored{State: tier.LogState{Log: orders, Source: "wal", Layout: tier.LayoutPlain,
		Epoch: 1, Copied: 10, Next: 2,
		Moves: []tier.StartMove{{At: epochStart, Cause: tier.MoveDisabled}}},
		Copies: []tier.Remote{{Range: seg(0).Range, Epoch: 1, Bytes: 100, Log: seg(0).Log,
			ModTime: epochStart, Last: tier.NoLeaderEpoch}}})
	r.step(RestoredTable{State: tier.TableState{Table: "orders", State: tier.Disabling, Epoch: 2,
		Policy: tier.PolicyDelete, Since: epochStart}})
	r.step(SourceScanned{Source: "wal", Trouble: &tier.Reason{Code: tier.CodeSourceVanished}})
	r.after(time.Hour)
	f := take[Remove](r)
	r.step(Finished{ID: f.ID, Result: Removed{Kept: []KeptRemote{{Position: 0, Range: seg(0).Range,
		Denied: true}}}})
	c := take[ChangeTier](r)
	r.now += second
	r.step(Finished{ID: c.ID, Result: Done{}})
	r.none()
	r.seen(seg(0), tail(10))
	if m := take[MoveStart](r); m.Start != 0 {
		t.Errorf("moves to %d, want where the source begins", m.Start)
	}
}

// TestASegmentThatWasCopiedTwiceHoldsUpNothing: what overlaps leaves the log together, or not at
// all. Where table.log.bytes lets only the first of two copies go, nothing leaves, and the local
// segment, whose time is over, is asked about all the same.
func TestASegmentThatWasCopiedTwiceHoldsUpNothing(t *testing.T) {
	t.Parallel()
	r := start(t, settings(func(_ *Settings, tab *tier.Table) {
		tab.TTL, tab.Bytes = 0, tier.Limit{Set: true, Value: 150}
	}))
	r.seen(seg(0), tail(10))
	r.opened(0)
	r.copied(0, 10)
	again := seg(0)
	again.Log.Inode, again.Log.ModTime = 99, epochStart+second
	r.seen(again, seg(10), seg(20), tail(30))
	r.copied(1, 10)
	r.copied(2, 20)
	r.copied(3, 30)
	r.none()
	r.after(2 * time.Hour)
	if got := take[Delete](r); got.Segments[0].Segment.Base != 0 {
		t.Errorf("asked about %v", got.Segments)
	}
	r.none()
}
