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
