package engine

import (
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// TestAcceptedLossUnblocksTheLog: copying goes on behind the damaged file, which stays. Another one
// in its place is read.
func TestAcceptedLossUnblocksTheLog(t *testing.T) {
	t.Parallel()
	r := start(t, settings(func(s *Settings, _ *tier.Table) { s.Workers = 1 }))
	r.seen(seg(0), seg(10), tail(20))
	r.opened(0)
	f := take[Copy](r)
	r.step(Finished{ID: f.ID, Result: Failed{Reason: tier.Reason{Code: tier.CodeDamaged},
		Quarantine: true, Segment: f.Segment}})
	r.none()
	r.step(LossAccepted{
		Accepted: tier.LossAccepted{Log: orders, Range: seg(0).Range}, Segment: seg(0),
		Hole: &HoleDone{Hole: tier.Hole{Range: seg(0).Range}, Offset: 10, Next: 1, Published: true},
	})
	r.copied(1, 20)
	r.after(10 * time.Hour)
	r.none() // the damaged file stays, and nothing behind it goes
	r.code(tier.CodeQuarantined)
	blocking := func() int64 { return r.e.Tallies()[0].Quarantined }
	if n := blocking(); n != 0 {
		t.Errorf("%d segments block their log, want 0", n)
	}
	// Another file is read, whatever its times are: it may be sound, the same once more, or damaged
	// otherwise.
	for i, other := range []func(*tier.Stat){
		func(s *tier.Stat) { s.ModTime++ }, func(s *tier.Stat) { s.ModTime-- },
		func(s *tier.Stat) { s.Inode += 100 },
	} {
		file := seg(0)
		other(&file.Log)
		r.seen(file, seg(10), tail(20))
		c := take[Copy](r)
		if c.Segment != file {
			t.Errorf("got %+v, want a copy of the file that replaced it", c)
		}
		if i%2 == 0 {
			r.step(Finished{ID: c.ID, Result: LossKnown{Segment: file}})
		} else {
			r.step(Finished{ID: c.ID, Result: Failed{Reason: tier.Reason{Code: tier.CodeDamaged},
				Quarantine: true, Segment: file}})
		}
		r.after(time.Hour)
		r.none()
		if n := blocking(); n != int64(i%2) {
			t.Errorf("%d segments block their log, want %d", n, i%2)
		}
	}
}

// TestWhatIsNeverCopiedIsNoLag: what was given up, and what lies below the log's start where
// nothing local is ever deleted, is not copied, and is neither planned nor counted as what is
// behind.
func TestWhatIsNeverCopiedIsNoLag(t *testing.T) {
	t.Parallel()
	r := start(t, settings(func(s *Settings, _ *tier.Table) {
		s.LocalDelete = func(string) tier.LocalDelete { return tier.LocalDeleteNever }
	}))
	r.seen(seg(0), seg(10), tail(20))
	r.opened(0)
	behind := func(want int64) {
		t.Helper()
		plan, view := r.e.PlanCopies(9), r.view()
		if plan.Total.Segments != want || view.Uncopied.Segments != want {
			t.Errorf("planned %+v, behind %+v, want %d", plan, view.Uncopied, want)
		}
	}
	behind(2)
	f := take[Copy](r)
	r.step(Finished{ID: f.ID, Result: LossKnown{Segment: f.Segment}})
	behind(1)
	r.copied(1, 20)
	behind(0)
	r.e.logs[orders].state.LogStart = 10
	r.seen(rewritten(0, 10), seg(10), tail(20))
	r.none()
	behind(0)
	r.seen(rewritten(0, 10), rewritten(10, 20), tail(20))
	if f := take[Copy](r); f.Segment.Base != 10 {
		t.Errorf("copies %s", f.Segment.Range)
	}
	behind(1)
}

// TestAHoleThatIsFilledIsNoAlarm: what was given up, and was copied from another file since, is in
// the store, whatever is on record of it.
func TestAHoleThatIsFilledIsNoAlarm(t *testing.T) {
	t.Parallel()
	r := start(t, settings(func(s *Settings, _ *tier.Table) { s.Workers = 1 }))
	r.seen(seg(0), seg(10), tail(20))
	r.opened(0)
	r.copied(0, 10)
	f := take[Copy](r)
	r.step(Finished{ID: f.ID, Result: Failed{Reason: tier.Reason{Code: tier.CodeDamaged},
		Quarantine: true, Segment: f.Segment}})
	r.step(LossAccepted{
		Accepted: tier.LossAccepted{Log: orders, Range: seg(10).Range}, Segment: seg(10),
		Hole: &HoleDone{Hole: tier.Hole{Range: seg(10).Range}, Offset: 20, Next: 2, Published: true},
	})
	holes := func(want int) {
		t.Helper()
		list, _ := r.e.Segments(orders)
		listed := 0
		for _, s := range list {
			if s.State == "hole" {
				listed++
			}
		}
		v, counted := r.view(), r.e.Tallies()[0].Holes
		if listed != want || len(v.Alarms) != want || len(v.Holes) != want || counted != int64(want) {
			t.Errorf("%d listed, %d counted, in the view %v, alarms %v, want %d", listed, counted,
				v.Holes, v.Alarms, want)
		}
	}
	holes(1)
	r.seen(seg(0), rewritten(10, 20), tail(20))
	r.copied(2, 20)
	holes(0)
}

// TestALostCopyOfWhatIsGivenUpIsNotMadeAgain: a file rots back to the bytes whose loss was
// accepted, with the time that it had when it was copied, and the store loses the copy.
func TestALostCopyOfWhatIsGivenUpIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	r := start(t, settings(func(s *Settings, _ *tier.Table) { s.Workers = 1 }))
	r.seen(seg(0), tail(10))
	r.opened(0)
	r.copied(0, 10)
	r.step(Scrubbed{Log: orders, Position: 0, Reason: &tier.Reason{Code: tier.CodeStoreLost}})
	c := take[Copy](r)
	r.step(Finished{ID: c.ID, Result: LossKnown{Segment: c.Segment}})
	r.none()
	r.seen(seg(0), tail(10))
	r.none()
	// A process that finds the file sound again, with another time, copies it.
	mended := seg(0)
	mended.Log.ModTime++
	r.seen(mended, tail(10))
	take[Copy](r)
}

// TestALossIsAcceptedAsLongAsItsHoleCounts: the source wrote anew what lies there, and with the
// copies the hole was cut off. What an operator gave up as the end of another lineage is asked
// about once more, and not passed over in silence.
func TestALossIsAcceptedAsLongAsItsHoleCounts(t *testing.T) {
	t.Parallel()
	accepted := func() (*rig, tier.LossAccepted) {
		r := start(t, settings(func(s *Settings, _ *tier.Table) { s.Workers = 1 }))
		r.look(led(epochs(1, 0), seg(0), seg(10), seg(20), tail(30)))
		r.opened(0)
		r.copiedOf(1, 0, 10)
		r.damaged()
		loss := tier.LossAccepted{Log: orders, Range: seg(10).Range}
		r.step(LossAccepted{Accepted: loss, Segment: seg(10),
			Hole: &HoleDone{Hole: tier.Hole{Range: loss.Range}, Position: 1, Offset: 20, Next: 2,
				Published: true}})
		r.copiedOf(1, 2, 30)
		r.look(led(epochs(1, 0, 2, 20), seg(0), seg(10), rewritten(20, 30), tail(30)))
		return r, loss
	}
	r, loss := accepted()
	r.e.logs[orders].state.Accepted = []tier.LossAccepted{loss}
	r.diverged(20, 3)
	r.quarantined(0)
	if f := take[Copy](r); f.Segment.Base != 20 {
		t.Errorf("copies %+v, want what was written anew", f.Segment)
	}

	r, _ = accepted()
	r.diverged(15, 3)
	if f := take[Copy](r); f.Segment != seg(10) {
		t.Fatalf("reads %+v, want what was given up", f.Segment)
	} else {
		r.open = append(r.open, f)
	}
	r.damaged()
	r.quarantined(1)
	r.none()
}
