package engine

import (
	"slices"
	"testing"

	"github.com/tierd/tierd/runtime/tier"
)

// led is a scan of a log whose source has leader epochs on record.
func led(lineage []tier.EpochStart, segments ...tier.LocalSegment) tier.Scan {
	s := scan(segments...)
	s.Layout, s.Lineage = tier.LayoutKafka, lineage
	return s
}

// epochs is a lineage of epochs that follow each other, each from an offset on.
func epochs(pairs ...int) (out []tier.EpochStart) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, tier.EpochStart{Epoch: tier.LeaderEpoch(pairs[i]),
			Start: tier.Offset(pairs[i+1])})
	}
	return out
}

func (r *rig) look(s tier.Scan) {
	r.step(Scanned{Scan: s})
	r.step(SourceScanned{Source: "wal", Logs: []tier.LogID{orders}})
}

// copiedOf answers a Copy, whose last batch is of the leader epoch.
func (r *rig) copiedOf(last tier.LeaderEpoch, pos tier.Position, offset tier.Offset) Copy {
	r.t.Helper()
	f := take[Copy](r)
	s := f.Segment
	r.step(Finished{ID: f.ID, Result: Copied{Offset: offset, Next: pos + 1,
		Remote: tier.Remote{Range: s.Range, Position: pos, Epoch: 1, Verified: true, Bytes: s.Bytes,
			Last: last, Log: s.Log, ModTime: s.Log.ModTime, FinishedAt: r.now}}})
	return f
}

// threeCopies is a log with the copies [0, 10) of leader epoch 1, and [10, 20) and [20, 30) of 2.
func threeCopies(t *testing.T) *rig {
	t.Helper()
	r := start(t, settings())
	r.look(led(epochs(1, 0, 2, 10), seg(0), seg(10), seg(20), tail(30)))
	r.opened(0)
	r.copiedOf(1, 0, 10)
	r.copiedOf(2, 1, 20)
	r.copiedOf(2, 2, 30)
	r.none()
	return r
}

// rewritten is a segment that another leader wrote over the one with the base.
func rewritten(base, next tier.Offset) tier.LocalSegment {
	s := seg(base)
	s.Next, s.Log.Inode = next, s.Log.Inode+1000
	return s
}

// diverged answers a Compare: the log ends at the offset, and goes on at the position of the clip.
func (r *rig) diverged(at tier.Offset, pos tier.Position) Compare {
	r.t.Helper()
	f := take[Compare](r)
	st := r.e.logs[orders].state
	st.Copied, st.Next = min(st.Copied, at), pos+1
	st.Clips = slices.DeleteFunc(slices.Clone(st.Clips), func(c tier.Clip) bool {
		return c.Offset >= at
	})
	st.Clips = append(st.Clips, tier.Clip{Position: pos, Offset: at, At: r.now})
	r.step(Finished{ID: f.ID, Result: Diverged{State: st}})
	return f
}

// TestARewrittenTailIsCopiedAnew: the source's record contradicts the copies; the batches are
// looked at before anything else happens; then the copies end there, and the segment that begins
// below the copied offset is copied as a whole.
func TestARewrittenTailIsCopiedAnew(t *testing.T) {
	t.Parallel()
	r := threeCopies(t)
	r.look(led(epochs(1, 0, 2, 10, 5, 14), seg(0), rewritten(10, 24), tail(24)))
	if f := take[Compare](r); f.From != 10 || !slices.Equal(f.Copies, []tier.Position{1, 2}) {
		t.Fatalf("got %+v, want the copies from 10 on", f)
	} else {
		r.open = append(r.open, f)
	}
	r.code(tier.CodeLineage)
	r.after(10 * 3600 * 1e9)
	if len(r.open) != 1 {
		t.Fatalf("while the log is in doubt: %v", r.words())
	}
	r.now = epochStart
	r.diverged(14, 3)
	if v := r.view(); v.Copied != 14 || v.Remote.Next != 14 || v.Remote.Segments != 2 {
		t.Fatalf("copied %d, remote %+v; want it to end at 14", v.Copied, v.Remote)
	}
	if f := r.copiedOf(5, 4, 24); f.Segment.Range != (tier.Range{Base: 10, Next: 24}) || f.HasKnown {
		t.Fatalf("copied %+v, want all of [10, 24)", f)
	}
	r.none()
	if v := r.view(); v.Remote.Next != 24 || v.Remote.Segments != 2 || len(v.Alarms) > 0 {
		t.Fatalf("remote %+v, alarms %v", v.Remote, v.Alarms)
	}
}

// TestWhatIsCutOffWhollyIsRemovedAfterTheGrace: the copy of [20, 30) has no offset left.
func TestWhatIsCutOffWhollyIsRemovedAfterTheGrace(t *testing.T) {
	t.Parallel()
	r := threeCopies(t)
	r.step(Reconfigured{Settings: settings(func(s *Settings, tab *tier.Table) {
		s.Generation, s.Removers, s.Grace, tab.LocalTTL, tab.TTL = 2, 1, 600*second, 0, 0
	})})
	r.look(led(epochs(1, 0, 2, 10, 5, 14), seg(0), rewritten(10, 24), tail(24)))
	r.diverged(14, 3)
	r.copiedOf(5, 4, 24)
	r.none()
	r.after(600 * 1e9)
	f := take[Remove](r)
	if len(f.Copies) != 1 || f.Copies[0].Position != 2 || f.Action != tier.DeleteOrphan {
		t.Fatalf("got %+v, want the copy at position 2", f)
	}
	r.step(Finished{ID: f.ID, Result: Removed{Positions: []tier.Position{2}}})
	r.none()
}

// TestAFileThatComesBackAfterItsCopyExpired is copied once more when its time is over, so that it
// is proved and goes; before, and where nothing may be deleted, it only lies there.
func TestAFileThatComesBackAfterItsCopyExpired(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.step(Restored{State: tier.LogState{Log: orders, Source: "wal", Layout: tier.LayoutPlain,
		Epoch: 1, Copied: 20, LogStart: 10, Next: 3, Expired: tier.RangeSet{{Base: 0, Next: 10}}},
		Copies: []tier.Remote{{Range: seg(10).Range, Position: 1, Epoch: 1, Bytes: 100,
			Log: seg(10).Log, ModTime: epochStart, Last: tier.NoLeaderEpoch}}})
	r.step(RestoredTable{State: tier.TableState{Table: "orders", State: tier.Enabled, Epoch: 1}})
	r.seen(seg(0), seg(10), tail(20))
	r.none()
	r.after(3600*1e9 + 1)
	if f := r.copied(3, 20); f.Segment.Base != 0 {
		t.Fatalf("copies %+v, want what came back", f)
	}
	if f := r.deleted(); len(f.Segments) != 2 {
		t.Fatalf("deletes %+v, want both", f.Segments)
	}
}

// TestAClippedCopyProvesNoFile: not even one that looks like the file that was copied.
func TestAClippedCopyProvesNoFile(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.step(Restored{State: tier.LogState{Log: orders, Source: "wal", Layout: tier.LayoutKafka,
		Epoch: 1, Copied: 15, Next: 3, Clips: []tier.Clip{{Position: 2, Offset: 15}}},
		Copies: []tier.Remote{
			{Range: seg(0).Range, Position: 0, Epoch: 1, Bytes: 100, Log: seg(0).Log, Last: 1},
			{Range: seg(10).Range, Position: 1, Epoch: 1, Bytes: 100, Log: seg(10).Log, Last: 1}}})
	r.step(RestoredTable{State: tier.TableState{Table: "orders", State: tier.Enabled, Epoch: 1}})
	r.look(led(nil, seg(0), seg(10), tail(20)))
	if f := take[Copy](r); f.Segment.Base != 10 || f.HasKnown {
		t.Fatalf("copies %+v, want [10, 20) anew", f)
	}
}

// TestACutOffSourceWaitsForItsNextBatch: a source that lost its tail and has written nothing since
// says nothing about what counts. Older segments still go by their TTL.
func TestACutOffSourceWaitsForItsNextBatch(t *testing.T) {
	t.Parallel()
	r := threeCopies(t)
	cut := tail(10)
	cut.Next = 14
	r.look(led(epochs(1, 0, 2, 10, 5, 14), seg(0), cut))
	f := take[Compare](r)
	r.step(Finished{ID: f.ID, Result: Silent{}})
	r.none()
	r.code(tier.CodeLineage)
	r.after(2 * 3600 * 1e9)
	if f := r.deleted(); len(f.Segments) != 1 {
		t.Fatalf("got %+v", f)
	}
	r.none()
	more := cut
	more.Next, more.Log.Size = 16, 99
	r.look(led(epochs(1, 0, 2, 10, 5, 14), more))
	r.diverged(14, 3)
	r.none()
}

// TestASourceThatAgreesIsNotAskedAgain: what only looked like another lineage, such as a gap that
// compaction left, is compared once.
func TestASourceThatAgreesIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	r := threeCopies(t)
	odd := epochs(1, 0, 2, 10, 3, 18, 4, 30)
	r.look(led(odd, seg(0), seg(10), seg(20), tail(30)))
	f := take[Compare](r)
	r.step(Finished{ID: f.ID, Result: Agreed{}})
	r.look(led(odd, seg(0), seg(10), seg(20), seg(30), tail(40)))
	r.copiedOf(4, 3, 40)
	r.none()
	// A restart asks once more.
	l := r.e.logs[orders]
	r2 := start(t, settings())
	r2.step(Restored{State: l.state, Copies: l.remote})
	r2.step(RestoredTable{State: tier.TableState{Table: "orders", State: tier.Enabled, Epoch: 1}})
	r2.look(led(odd, seg(0), seg(10), seg(20), seg(30), tail(40)))
	take[Compare](r2)
	r2.none()
}

// TestALogThatGrowsIsComparedInTheEnd: that batches were added behind what is compared, and that
// its oldest segment went, is no reason to begin anew, or a log that always grows would never be
// done. What was written anew is, and so is another record of the epochs.
func TestALogThatGrowsIsComparedInTheEnd(t *testing.T) {
	t.Parallel()
	odd := epochs(1, 0, 2, 10, 3, 18, 4, 30)
	more := tail(30)
	more.Next, more.Log.Size, more.Log.ModTime = 35, more.Log.Size+9, more.Log.ModTime+1
	shorter := tail(30)
	shorter.Log.Size--
	newer := append(slices.Clone(odd), epochs(5, 32)...)
	for name, c := range map[string]struct {
		since tier.Scan
		again bool
	}{
		"grown":            {led(odd, seg(0), seg(10), seg(20), more), false},
		"rolled":           {led(odd, seg(0), seg(10), seg(20), seg(30), tail(40)), false},
		"the oldest went":  {led(odd, seg(10), seg(20), more), false},
		"all but one went": {led(odd, more), false},
		"all others went":  {led(odd, tail(40)), true},
		"written anew":     {led(odd, seg(0), rewritten(10, 20), seg(20), more), true},
		"one is missing":   {led(odd, seg(0), seg(20), more), true},
		"the end is anew":  {led(odd, seg(0), seg(10), seg(20), rewritten(30, 40)), true},
		"cut off":          {led(odd, seg(0), seg(10), tail(20)), true},
		"shorter":          {led(odd, seg(0), seg(10), seg(20), shorter), true},
		"one epoch more":   {led(newer, seg(0), seg(10), seg(20), more), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := threeCopies(t)
			r.look(led(odd, seg(0), seg(10), seg(20), tail(30)))
			f := take[Compare](r)
			r.look(c.since)
			r.step(Finished{ID: f.ID, Result: Agreed{}})
			if l := r.e.logs[orders]; l.inDoubt() != c.again {
				t.Errorf("in doubt: %v, disputed %+v", l.inDoubt(), l.disputed)
			}
		})
	}
}

// TestBatchesThatWereReadRaiseADispute: also where the source's record says nothing of them. A
// segment whose batches were compared and agree is copied without asking again.
func TestBatchesThatWereReadRaiseADispute(t *testing.T) {
	t.Parallel()
	r := threeCopies(t)
	other := rewritten(10, 24)
	r.look(led(epochs(2, 30), seg(0), other, tail(24)))
	f := take[Copy](r)
	if !slices.Equal(f.Over, []tier.Position{1, 2}) {
		t.Fatalf("to be compared with %v, want the copies that it overlaps", f.Over)
	}
	r.step(Finished{ID: f.ID, Result: Disputed{At: 14, Segment: other.Log}})
	c := take[Compare](r)
	if c.From != 14 {
		t.Fatalf("compared from %d on, want 14", c.From)
	}
	r.step(Finished{ID: c.ID, Result: Agreed{}})
	if f := r.copiedOf(2, 3, 30); f.Over != nil {
		t.Fatalf("compared again with %v", f.Over)
	}
	r.none()
}

// TestNothingIsComparedWhileSomethingIsUnderWay: a copy that began before the source was cut off
// has its manifest position below the clip.
func TestNothingIsComparedWhileSomethingIsUnderWay(t *testing.T) {
	t.Parallel()
	r := threeCopies(t)
	r.look(led(epochs(1, 0, 2, 10), seg(0), seg(10), seg(20), seg(30), tail(40)))
	under := take[Copy](r)
	r.look(led(epochs(1, 0, 2, 10, 5, 14), seg(0), rewritten(10, 24), tail(24)))
	r.none()
	r.step(Finished{ID: under.ID, Result: Failed{Reason: tier.Reason{Code: tier.CodeStoreError},
		Attempt: &tier.Attempt{ID: tier.AttemptID{7}, Position: 3, Epoch: 1,
			Range: under.Segment.Range}}})
	r.after(60 * 1e9)
	res := take[Resolve](r)
	r.none()
	r.step(Finished{ID: res.ID, Result: Abandoned{Next: 4}})
	r.diverged(14, 4)
	r.copiedOf(5, 5, 24)
	r.none()
}

// TestALogThatGrowsWhereItWasCopiedIsCompared: a source without a record of its epochs was cut off,
// or another replica rolled elsewhere. It is compared whenever its file or the copies have changed.
func TestALogThatGrowsWhereItWasCopiedIsCompared(t *testing.T) {
	t.Parallel()
	r := threeCopies(t)
	grown := func(next tier.Offset) tier.Scan {
		s := tail(15)
		s.Next, s.Log.Size = next, int64(next)
		return led(nil, seg(0), rewritten(10, 15), s)
	}
	r.look(grown(40))
	f := take[Compare](r)
	if f.From != 15 || !slices.Equal(f.Copies, []tier.Position{1, 2}) {
		t.Fatalf("got %+v", f)
	}
	r.step(Finished{ID: f.ID, Result: Agreed{}})
	c := take[Copy](r)
	r.look(grown(40))
	r.none() // the file is as it was
	r.open = append(r.open, c)
	r.copiedOf(2, 3, 30)
	r.step(Finished{ID: take[Compare](r).ID, Result: Agreed{}}) // with one copy more
	r.look(grown(28))
	r.step(Finished{ID: take[Compare](r).ID, Result: Silent{}})
	r.look(grown(29))
	r.diverged(17, 4)
	r.none()
}

// TestWhatNobodyCopiesIsComparedToo: while tiering is off nobody reads what is rolled over the
// copies, and the source may have no record of its leader epochs.
func TestWhatNobodyCopiesIsComparedToo(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before tiering is off", "after"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			r := threeCopies(t)
			rolled := func() {
				r.look(led(nil, seg(0), rewritten(10, 24), tail(24)))
			}
			off := func() {
				r.step(Reconfigured{Settings: settings(func(s *Settings, tab *tier.Table) {
					s.Generation, tab.Tiering, tab.DisablePolicy = 2, false, tier.PolicyRetain
				})})
			}
			if when == "after" {
				off()
				r.step(Finished{ID: take[ChangeTier](r).ID, Result: Done{}})
				r.step(Finished{ID: take[ChangeTier](r).ID, Result: Done{}})
				rolled()
			} else {
				rolled()
				f := take[Compare](r) // of what still grows
				off()
				r.step(Finished{ID: f.ID, Result: Agreed{}})
				r.step(Finished{ID: take[ChangeTier](r).ID, Result: Done{}})
			}
			f := r.diverged(10, 3)
			if f.From != 10 || !slices.Equal(f.Copies, []tier.Position{1, 2}) {
				t.Errorf("got %+v", f)
			}
		})
	}
}

// TestWhatNobodyCopiesIsComparedOnce: that the last segment grows, or an old one goes, is no reason
// to read all batches again; of what is rolled since, only these.
func TestWhatNobodyCopiesIsComparedOnce(t *testing.T) {
	t.Parallel()
	r := threeCopies(t)
	r.step(Reconfigured{Settings: settings(func(s *Settings, tab *tier.Table) {
		s.Generation, tab.Tiering, tab.DisablePolicy = 2, false, tier.PolicyRetain
	})})
	r.step(Finished{ID: take[ChangeTier](r).ID, Result: Done{}})
	r.step(Finished{ID: take[ChangeTier](r).ID, Result: Done{}})
	agree := func(from tier.Offset) {
		t.Helper()
		f := take[Compare](r)
		if f.From != from {
			t.Errorf("compared from %d on, want %d", f.From, from)
		}
		r.step(Finished{ID: f.ID, Result: Agreed{}})
		r.none()
	}
	last := tail(30)
	r.look(led(nil, rewritten(0, 10), rewritten(10, 20), seg(20), last))
	agree(0)
	last.Next, last.Log.Size = 35, 120
	r.look(led(nil, rewritten(0, 10), rewritten(10, 20), seg(20), last))
	r.none()
	r.look(led(nil, rewritten(10, 20), seg(20), last))
	r.none()
	r.look(led(nil, rewritten(10, 20), rewritten(20, 30), last))
	agree(20)
}

// Kafka 15130, 15479: sizes were counted more than once. Of copies that overlap, as after replicas
// rolled elsewhere, each offset counts once; of one that was cut off, what is left.
func TestOverlappingCopiesCountOnce(t *testing.T) {
	t.Parallel()
	at := func(pos tier.Position, base, next tier.Offset) tier.Remote {
		return tier.Remote{Range: tier.Range{Base: base, Next: next}, Position: pos, Epoch: 1,
			Bytes: int64(next-base) * 10, Last: tier.NoLeaderEpoch}
	}
	for name, c := range map[string]struct {
		copies []tier.Remote
		clips  []tier.Clip
		want   int64
	}{
		"side by side":     {[]tier.Remote{at(0, 0, 10), at(1, 10, 20)}, nil, 200},
		"rolled elsewhere": {[]tier.Remote{at(0, 0, 10), at(1, 10, 20), at(2, 5, 25)}, nil, 250},
		"the same again":   {[]tier.Remote{at(0, 0, 10), at(1, 0, 10), at(2, 10, 20)}, nil, 200},
		"inside another":   {[]tier.Remote{at(0, 0, 40), at(1, 10, 20), at(2, 40, 50)}, nil, 500},
		"cut off": {[]tier.Remote{at(0, 0, 10), at(1, 10, 20)},
			[]tier.Clip{{Position: 2, Offset: 15}}, 150},
		"cut off, and rewritten": {[]tier.Remote{at(0, 0, 10), at(1, 10, 20), at(3, 10, 30)},
			[]tier.Clip{{Position: 2, Offset: 15}}, 300},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, settings())
			state := tier.LogState{Log: orders, Source: "wal", Epoch: 1, Copied: 50, Next: 9,
				Clips: c.clips}
			r.step(Restored{State: state, Copies: c.copies})
			if got := r.view().Remote.Bytes; got != c.want {
				t.Errorf("%d bytes, want %d", got, c.want)
			}
			// One by one they come to the same.
			l := &logIndex{id: orders, opened: true, state: state}
			for _, copy := range c.copies {
				l.addRemote(copy)
			}
			if got := l.remoteExtent().Bytes; got != c.want {
				t.Errorf("one by one: %d bytes, want %d", got, c.want)
			}
		})
	}
}

// TestACutBelowAComparisonIsSeen: while the batches from 10 on are compared, another leader cuts
// the log off at 4. The comparison that is under way looks no deeper than where it began; what the
// new record says against the copies below must not be forgotten when it ends.
func TestACutBelowAComparisonIsSeen(t *testing.T) {
	t.Parallel()
	r := threeCopies(t)
	r.look(led(epochs(1, 0, 2, 10, 5, 14), seg(0), rewritten(10, 24), tail(24)))
	r.look(led(epochs(1, 0, 6, 4), rewritten(0, 8), tail(8)))
	if f := r.diverged(10, 3); f.From != 10 {
		t.Fatalf("compared from %d, want 10", f.From)
	}
	if f := r.diverged(4, 4); f.From != 0 || !slices.Equal(f.Copies, []tier.Position{0}) {
		t.Fatalf("then got %+v, want the copy that is left compared", f)
	}
	if f := r.copiedOf(6, 5, 8); f.Segment.Base != 0 {
		t.Fatalf("copied %+v, want what was written anew", f)
	}
	r.none()
	if v := r.view(); v.Remote.Next != 8 || len(v.Alarms) > 0 {
		t.Fatalf("remote %+v, alarms %v", v.Remote, v.Alarms)
	}
}

// TestWhatIsDoubtedWhileAComparisonLooksIsLookedAt: while the batches from 8 on are compared,
// tiering goes off, and what was rolled below them is doubted, too, which no record says again.
func TestWhatIsDoubtedWhileAComparisonLooksIsLookedAt(t *testing.T) {
	t.Parallel()
	r := threeCopies(t)
	r.look(led(nil, rewritten(0, 8), tail(8)))
	r.step(Reconfigured{Settings: settings(func(s *Settings, tab *tier.Table) {
		s.Generation, tab.Tiering, tab.DisablePolicy = 2, false, tier.PolicyRetain
	})})
	r.step(Finished{ID: take[ChangeTier](r).ID, Result: Done{}})
	if f := r.diverged(8, 3); f.From != 8 {
		t.Fatalf("compared from %d, want 8", f.From)
	}
	if f := take[Compare](r); f.From != 0 {
		t.Fatalf("compared from %d, want from what was doubted meanwhile", f.From)
	}
	r.none()
}

// TestADoubtOfACopyDoesNotHideADeeperOne: a segment that is being copied disputes offset 14, and
// since it was read the source's record contradicts all from 4 on.
func TestADoubtOfACopyDoesNotHideADeeperOne(t *testing.T) {
	t.Parallel()
	r := threeCopies(t)
	r.look(led(nil, seg(0), rewritten(10, 30), tail(30)))
	f := take[Copy](r)
	r.look(led(epochs(1, 0, 6, 4), rewritten(0, 8), tail(8)))
	r.step(Finished{ID: f.ID, Result: Disputed{At: 14, Segment: f.Segment.Log}})
	if c := take[Compare](r); c.From > 4 {
		t.Fatalf("compares from %d on, want from where the record speaks against a copy", c.From)
	}
}

// TestTheGrowingSegmentIsKept: which segment is not closed is remembered, whatever goes before it,
// and also where it goes itself.
func TestTheGrowingSegmentIsKept(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string][]int{
		"nothing":              nil,
		"the oldest":           {0},
		"two in the middle":    {1, 2},
		"the growing one":      {3},
		"that, and its second": {3, 4},
	} {
		l := &logIndex{}
		list := []tier.LocalSegment{seg(0), seg(10), seg(20), seg(30), seg(40), tail(50)}
		list[3].Waits = tier.WaitsForHighWatermark
		l.reindex(slices.Clone(list))
		for _, i := range gone {
			l.drop(list[i : i+1])
		}
		want := slices.IndexFunc(l.local, func(s tier.LocalSegment) bool { return !s.Closed() })
		if len(l.local) != len(list)-len(gone) || l.growing != want {
			t.Errorf("%s gone: %d of %d segments, want %d", name, l.growing, len(l.local), want)
		}
	}
	closed := &logIndex{}
	if closed.reindex([]tier.LocalSegment{seg(0), seg(10)}); closed.growing != 2 {
		t.Errorf("all are closed: %d, want 2", closed.growing)
	}
}

// TestAHoleEndsWhereTheNextOneBegins: a rebuild found a hole above offsets whose copy it did not
// take over, since its object is damaged. Nothing is a hole twice.
func TestAHoleEndsWhereTheNextOneBegins(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.step(Restored{State: tier.LogState{Log: orders, Source: "wal", Layout: tier.LayoutPlain,
		Epoch: 1, Copied: 10, Next: 3, Holes: []tier.Hole{{Range: tier.Range{Base: 20, Next: 30}}}}})
	r.step(RestoredTable{State: tier.TableState{Table: "orders", State: tier.Enabled, Epoch: 1}})
	r.seen(tail(30))
	f := take[RecordHole](r)
	if f.Range != (tier.Range{Base: 10, Next: 20}) {
		t.Fatalf("hole %s, want [10, 20)", f.Range)
	}
	r.step(Finished{ID: f.ID, Result: HoleDone{Hole: tier.Hole{Range: f.Range}, Offset: 30, Next: 4,
		Published: true}})
	r.none()
}
