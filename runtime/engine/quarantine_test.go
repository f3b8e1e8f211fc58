package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// damaged answers the Copy under way: the segment is damaged.
func (r *rig) damaged() {
	r.t.Helper()
	f := take[Copy](r)
	r.step(Finished{ID: f.ID, Result: Failed{Quarantine: true, Segment: f.Segment,
		Reason: tier.Reason{Code: tier.CodeDamaged, Text: "batch at byte 61"}}})
}

// quarantined expects as many damaged segments, in alarms and metrics alike.
func (r *rig) quarantined(want int) {
	r.t.Helper()
	got := 0
	for _, a := range r.view().Alarms {
		if a.Code == tier.CodeQuarantined {
			got++
		}
	}
	if n := r.e.Tallies()[0].Quarantined; got != want || n != int64(want) {
		r.t.Errorf("%d alarms of damaged segments, and %d counted; want %d", got, n, want)
	}
}

// TestQuarantineEnds: a damaged segment is one only as long as its file is there and as it was.
func TestQuarantineEnds(t *testing.T) {
	t.Parallel()
	mended := func(by tier.Time) tier.LocalSegment {
		s := seg(0)
		s.Log.ModTime += by
		return s
	}
	start := func(t *testing.T) *rig {
		r := start(t, settings())
		r.seen(seg(0), tail(10))
		r.opened(0)
		r.damaged()
		r.quarantined(1)
		return r
	}
	t.Run("it was mended", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		r.now += second
		r.seen(mended(second), tail(10))
		r.quarantined(0)
		r.copied(0, 10)
		r.quarantined(0)
	})
	t.Run("it is damaged anew", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		r.now += second
		r.seen(mended(second), tail(10))
		r.damaged()
		r.quarantined(1)
	})
	t.Run("it is gone", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		r.seen(tail(10))
		r.quarantined(0)
	})
	t.Run("the source cannot be read", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		r.step(SourceScanned{Source: "wal", Trouble: &tier.Reason{Code: tier.CodeSourceUnread}})
		r.quarantined(1)
		r.seen(seg(0), tail(10))
		if fs := r.after(time.Hour); slices.ContainsFunc(fs, func(f Effect) bool {
			_, copies := f.(Copy)
			return copies
		}) {
			t.Errorf("copied again: %v", fs)
		}
	})
}

// TestWhatExpiredAndIsDamagedIsNotTriedForEver: it is quarantined like any other, and since nothing
// of its log is missing without it, what lies behind it is copied.
func TestWhatExpiredAndIsDamagedIsNotTriedForEver(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.step(Restored{State: tier.LogState{Log: orders, Source: "wal", Layout: tier.LayoutPlain,
		Epoch: 1, Copied: 10, LogStart: 10, Next: 1, Expired: tier.RangeSet{{Base: 0, Next: 10}}}})
	r.step(RestoredTable{State: tier.TableState{Table: "orders", State: tier.Enabled, Epoch: 1}})
	r.seen(seg(0), tail(10))
	r.after(time.Hour + 1)
	r.damaged()
	r.none()
	r.quarantined(1)
	r.seen(seg(0), seg(10), tail(20))
	if f := r.copied(1, 20); f.Segment.Base != 10 {
		t.Errorf("copies %+v, want what lies behind it", f.Segment)
	}
	r.none()
	r.quarantined(1)
}

// TestWhatIsLostAndDamagedIsNotTriedForEver: a scrub found the copy bad, and the file that it was
// made of is damaged by now, and looks as it did. Where the copy is good after all it is copied.
func TestWhatIsLostAndDamagedIsNotTriedForEver(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(seg(0), tail(10))
	r.opened(0)
	r.copied(0, 10)
	bad := Scrubbed{Log: orders, Position: 0, Reason: &tier.Reason{Code: tier.CodeStoreLost}}
	r.step(bad)
	r.damaged()
	r.none()
	r.quarantined(1)
	r.seen(seg(0), seg(10), tail(20))
	r.after(10 * time.Hour)
	r.none()
	r.quarantined(1)
	r.step(Scrubbed{Log: orders, Position: 0})
	r.quarantined(0)
	r.copied(1, 20)
	if f := r.deleted(); len(f.Segments) == 0 || f.Segments[0].Segment.Base != 0 {
		t.Errorf("deletes %+v, want what was damaged", f.Segments)
	}
}
