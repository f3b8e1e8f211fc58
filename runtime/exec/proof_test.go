package exec

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// store is the rig's store, as whoever meddles with it has it.
func (r *rig) store() *objstore.Store {
	r.t.Helper()
	s, err := objstore.New(r.bucket, r.ledger.ID())
	r.must(err)
	return s
}

// reenter replaces the manifest entry of the copy at the position by another one that is sound.
func (r *rig) reenter(pos tier.Position, change func(*tier.Fact)) {
	r.t.Helper()
	ctx := context.Background()
	cp, err := r.ledger.Copy(orders, pos)
	r.must(err)
	fact, err := r.store().Fact(ctx, orders, pos, cp.Attempt)
	r.must(err)
	change(&fact)
	r.must(r.store().PutFact(ctx, orders, cp.Attempt, fact))
}

// TestTheEntryIsTheCopys: an entry that is sound, and says another thing than the ledger, is not
// what the copy was proved by.
func TestTheEntryIsTheCopys(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*tier.Fact)
		code   tier.Code
	}{
		"other bytes": {func(f *tier.Fact) { f.Add.Content.Files[0].SHA256[0]++ },
			tier.CodeStoreLost},
		"another end":   {func(f *tier.Fact) { f.Add.Content.Range.Next++ }, tier.CodeStoreLost},
		"another epoch": {func(f *tier.Fact) { f.Epoch++; f.Add.Epoch++ }, tier.CodeStoreLost},
		"no copy": {func(f *tier.Fact) {
			f.Add, f.Hole = nil, &tier.Hole{Range: f.Add.Content.Range, Cause: tier.HoleSourceGone}
		}, tier.CodeStoreLost},
		"other leaders": {func(f *tier.Fact) {
			f.Add.Content.Lineage = []tier.EpochStart{{Epoch: 7, Start: 0}}
		}, tier.CodeLineage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, f := ready(t)
			r.reenter(f.Segments[0].Position, c.change)
			r.kept(r.do(f), c.code)
		})
	}
}

// TestTheSegmentIsTheCopys: a segment that reaches further than its copy does, because the file
// behind it is gone, is not what was copied.
func TestTheSegmentIsTheCopys(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(2)
	r.opened()
	pos := r.copied(0)
	r.copied(10)
	r.must(r.disk.Remove("wal/orders/0/" + fileName(10)))
	f := r.deleteEffect(pos)
	if f.Segments[0].Segment.Next != 20 {
		t.Fatalf("the segment is %s, want it to end at 20", f.Segments[0].Segment.Range)
	}
	r.kept(r.do(f), tier.CodeNotCopied)
}

// TestEachFileIsTheCopys: one that lies beside the records was written anew, of the same size, and
// the last one was not.
func TestEachFileIsTheCopys(t *testing.T) {
	t.Parallel()
	beside := func(ext string) string { return strings.Replace(fileName(0), ".log", ext, 1) }
	r := newRig(t)
	r.roll(2)
	r.write(beside(".crc"), "one")
	r.write(beside(".sum"), "two")
	r.opened()
	pos := r.copied(0)
	r.now++
	r.write(beside(".crc"), "ONE")
	r.kept(r.do(r.deleteEffect(pos)), tier.CodeChanged)
}

// TestOtherBytesAreSeenBeforeTheLedgerIsAsked: it would refuse them as well.
func TestOtherBytesAreSeenBeforeTheLedgerIsAsked(t *testing.T) {
	t.Parallel()
	r, f := ready(t)
	r.now++
	r.write(fileName(0), "Segment 0\n")
	d := want[engine.Deleted](r, r.do(f))
	if d.Kept == nil || !strings.Contains(d.Kept.Reasons[0].Text, "the SHA-256 of the files") {
		t.Errorf("%+v, want it kept for its SHA-256", d)
	}
}

// TestADroppedTableKeepsWhatIsLocal, whatever is copied.
func TestADroppedTableKeepsWhatIsLocal(t *testing.T) {
	t.Parallel()
	r, f := ready(t)
	_, err := r.ledger.Append(context.Background(), tier.TableDropped{Table: "orders", At: r.now})
	r.must(err)
	r.kept(r.do(f), tier.CodeFrozen)
}

// disabled is a rig whose table does not tier any more, and retains what it copied.
func disabled(t *testing.T, copied ...tier.Offset) (*rig, []tier.Position) {
	t.Helper()
	r := newRig(t)
	r.roll(3)
	r.opened()
	var all []tier.Position
	for _, base := range copied {
		all = append(all, r.copied(base))
	}
	r.tiering = false
	r.changes(tier.TierChanged{State: tier.Disabling, Epoch: 2, Policy: tier.PolicyRetain},
		tier.TierChanged{State: tier.Disabled, Epoch: 2, Policy: tier.PolicyRetain})
	return r, all
}

// TestARewrittenFileIsNotRecordedAsItsCopy: with tiering off it may go, and the audit record is of
// the bytes that went.
func TestARewrittenFileIsNotRecordedAsItsCopy(t *testing.T) {
	t.Parallel()
	r, all := disabled(t, 0)
	cp, err := r.ledger.Copy(orders, all[0])
	r.must(err)
	r.now++
	r.write(fileName(0), "Segment 0\n")
	f := r.deleteEffect(all...)
	f.Remote = engine.Extent{Range: tier.Range{Base: 0, Next: 10}, Segments: 1}
	if d := want[engine.Deleted](r, r.do(f)); len(d.Gone) != 1 {
		t.Fatalf("%+v, want it gone", d)
	}
	a := r.audit.announced[0]
	if a.Attempt != (tier.AttemptID{}) || a.Object != "" || a.SHA256 == (tier.SHA256{}) ||
		a.SHA256 == cp.Content.Files[0].SHA256 {
		t.Errorf("announced %+v, want the bytes that went, and no copy", a)
	}
}

// TestTheStartMovesOnlyOverWhatHasNoCopy: with tiering off the start moves before a local segment
// goes, but not while something older, or it, is in the store; and it has to stand in the manifest.
func TestTheStartMovesOnlyOverWhatHasNoCopy(t *testing.T) {
	t.Parallel()
	local := func(r *rig, all []tier.Position, e engine.Extent) engine.Delete {
		f := r.deleteEffect(all...)
		f.Remote = e
		return f
	}
	t.Run("a copy", func(t *testing.T) {
		t.Parallel()
		r, all := disabled(t, 0)
		f := local(r, all, engine.Extent{Range: tier.Range{Base: 0, Next: 10}, Segments: 1})
		d := want[engine.Deleted](r, r.do(f))
		if len(d.Gone) != 1 || d.LogStart != 0 {
			t.Errorf("%+v, want it gone, and the log to begin at 0", d)
		}
	})
	t.Run("none, and what is copied lies behind", func(t *testing.T) {
		t.Parallel()
		r, _ := disabled(t, 10)
		f := local(r, []tier.Position{0}, engine.Extent{Range: tier.Range{Base: 10, Next: 20},
			Segments: 1})
		f.Segments[0].Copied = false
		d := want[engine.Deleted](r, r.do(f))
		if len(d.Gone) != 1 || d.LogStart != 10 {
			t.Errorf("%+v, want it gone, and the log to begin at 10", d)
		}
	})
	t.Run("a start that is not published", func(t *testing.T) {
		t.Parallel()
		r, _ := disabled(t)
		_, err := r.ledger.Append(context.Background(), tier.StartMoved{Log: orders, Start: 10,
			Cause: tier.MoveExpired, At: r.now})
		r.must(err)
		f := local(r, []tier.Position{0}, engine.Extent{})
		f.Segments[0].Copied = false
		r.kept(r.do(f), tier.CodeRetry)
		if !r.there(fileName(0)) {
			t.Error("it is gone")
		}
	})
	t.Run("a copy that ended after the deletion was decided on", func(t *testing.T) {
		t.Parallel()
		r, all := disabled(t, 0)
		f := local(r, all, engine.Extent{})
		f.Segments[0].Copied = false
		r.kept(r.do(f), tier.CodeRetry)
		if state, _ := r.ledger.Log(orders); state.LogStart != 0 || !r.there(fileName(0)) {
			t.Errorf("the log begins at %d, want both tiers as they were", state.LogStart)
		}
	})
	t.Run("a copy that left its log", func(t *testing.T) {
		t.Parallel()
		r, all := disabled(t, 0)
		want[engine.Moved](r, r.do(engine.MoveStart{ID: 9, Log: orders, Source: "wal", Start: 10,
			Cause: tier.MoveExpired}))
		f := local(r, all, engine.Extent{})
		f.Segments = append(f.Segments, engine.DeleteCandidate{Segment: r.segment(10)})
		if d := want[engine.Deleted](r, r.do(f)); len(d.Gone) != 2 || d.LogStart != 20 {
			t.Errorf("%+v, want both gone, and the log to begin at 20", d)
		}
	})
	t.Run("with tiering on", func(t *testing.T) {
		t.Parallel()
		r, f := ready(t)
		d := want[engine.Deleted](r, r.do(f)) // the effect says nothing of remote data
		if len(d.Gone) != 1 || d.LogStart != 0 {
			t.Errorf("%+v, want it gone, and the log to begin at 0", d)
		}
	})
}

// TestACopyOfAnEpochThatIsOverIsMadeAnew: a file that was only touched is known again, but not by a
// copy that counts no more.
func TestACopyOfAnEpochThatIsOverIsMadeAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(2)
	r.opened()
	pos := r.copied(0)
	again := func(epoch tier.TierEpoch) tier.Position {
		t.Helper()
		r.now++
		r.write(fileName(0), "segment 0\n")
		f := r.copyEffect(0)
		f.Known, f.HasKnown, f.Epoch = pos, true, epoch
		return want[engine.Copied](r, r.do(f)).Remote.Position
	}
	if got := again(1); got != pos {
		t.Errorf("touched: copied anew at %d, want it known at %d", got, pos)
	}
	r.changes(tier.TierChanged{State: tier.Disabling, Epoch: 2, Policy: tier.PolicyDelete},
		tier.TierChanged{State: tier.Disabled, Epoch: 2, Policy: tier.PolicyDelete},
		tier.TierChanged{State: tier.Enabled, Epoch: 3})
	want[engine.Opened](r, r.do(engine.OpenEpoch{ID: 8, Log: orders, Source: "wal", Epoch: 3,
		Fresh: true}))
	if got := again(3); got == pos {
		t.Error("a copy of the epoch before was taken for one of this")
	}
	r.now += tier.Time(time.Hour)
	r.kept(r.do(r.deleteEffect(pos)), tier.CodeTierEpoch)
}

// TestALogThatIsInNoEpochYet: its table begins a new epoch, and the log was not brought into it.
func TestALogThatIsInNoEpochYet(t *testing.T) {
	t.Parallel()
	for _, policy := range []tier.DisablePolicy{tier.PolicyRetain, tier.PolicyDelete} {
		r, f := ready(t)
		r.changes(tier.TierChanged{State: tier.Disabling, Epoch: 2, Policy: policy},
			tier.TierChanged{State: tier.Disabled, Epoch: 2, Policy: policy},
			tier.TierChanged{State: tier.Enabled, Epoch: 3})
		r.kept(r.do(f), tier.CodeTierEpoch)
	}
}

// TestCopiedWith: a manifest never claims more than the ledger holds once the copy is committed.
func TestCopiedWith(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(3)
	r.opened()
	r.copied(0)
	for _, c := range []struct {
		r    tier.Range
		want tier.Offset
	}{
		{tier.Range{Base: 10, Next: 20}, 20}, // the next one
		{tier.Range{Base: 20, Next: 30}, 10}, // one is missing before it
		{tier.Range{Base: 0, Next: 5}, 10},   // once more
	} {
		if got := r.x.copiedWith(orders, c.r); got != c.want {
			t.Errorf("with %s: %d, want %d", c.r, got, c.want)
		}
	}
}
