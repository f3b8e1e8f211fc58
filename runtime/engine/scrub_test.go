package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// TestABadCopyIsCopiedAgain: what a look at the store found blocks the deletion, also of a copy
// that the gate would let pass, until a new copy is there.
func TestABadCopyIsCopiedAgain(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(seg(0), seg(10), tail(20))
	r.opened(0)
	r.copied(0, 10)
	r.copied(1, 20)
	bad := Scrubbed{Log: orders, Position: 0, Reason: &tier.Reason{Code: tier.CodeStoreLost,
		Text: "another hash"}}
	r.step(bad)
	again := take[Copy](r)
	if again.Segment.Base != 0 || again.HasKnown {
		t.Fatalf("%+v", again)
	}
	r.after(2 * time.Hour)
	r.none()
	v, _ := r.e.Log(orders)
	if len(v.Alarms) != 1 || !strings.Contains(v.Alarms[0].Text, "is copied again") {
		t.Errorf("alarms: %+v", v.Alarms)
	}
	r.step(Finished{ID: again.ID, Result: Copied{Offset: 20, Next: 3, Remote: tier.Remote{
		Range: seg(0).Range, Position: 2, Epoch: 1, Verified: true, Bytes: 100, Log: seg(0).Log,
		ModTime: epochStart, FinishedAt: epochStart}}})
	if v, _ = r.e.Log(orders); len(v.Alarms) > 0 {
		t.Errorf("after the new copy: %+v", v.Alarms)
	}
	if f := take[Delete](r); f.Segments[0].Position != 2 {
		t.Errorf("%+v", f.Segments)
	}
}

// TestALossIsTold: where only the store had it, nothing can be done but to say so, until a look
// finds it again.
func TestALossIsTold(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(seg(0), tail(10))
	r.opened(0)
	r.copied(0, 10)
	r.after(2 * time.Hour)
	r.deleted()
	bad := Scrubbed{Log: orders, Position: 0, Reason: &tier.Reason{Code: tier.CodeStoreLost,
		Text: "not there"}}
	for range 2 {
		r.step(bad)
		v, _ := r.e.Log(orders)
		if len(v.Alarms) != 1 || v.Alarms[0].Code != tier.CodeStoreLost ||
			!strings.Contains(v.Alarms[0].Text, "is lost") || r.e.Tallies()[0].Lost != 1 {
			t.Errorf("%+v, %+v", v.Alarms, r.e.Tallies())
		}
	}
	r.none()
	list, _ := r.e.Segments(orders)
	if len(list[0].Reasons) != 1 || list[0].Reasons[0].Code != tier.CodeStoreLost {
		t.Errorf("the segment: %+v", list[0])
	}
	r.step(Scrubbed{Log: orders, Position: 0})
	if v, _ := r.e.Log(orders); len(v.Alarms) > 0 {
		t.Errorf("found again: %+v", v.Alarms)
	}
	r.step(Scrubbed{Log: tier.LogID{Table: "none", Name: "0"}, Reason: bad.Reason})
}
