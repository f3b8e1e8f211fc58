package sim

import (
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/tier"
)

// TestALogThatTierdEmptiedIsNotMissed: its last segment was closed by age, copied and deleted. That
// its source has nothing of it any more is no alarm, also after a restart; a source that is not
// there at all is.
func TestALogThatTierdEmptiedIsNotMissed(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Next, c.ClosedAfter = logdir.NextBasePlus1, 10*time.Minute
	w, err := NewWorld(c, scenarioStart)
	must(err)
	must(w.Start())
	for base := range tier.Offset(3) {
		must(w.Write(orders, base, Content(orders, base, 1)))
	}
	must(w.Run())
	w.Advance(11 * time.Minute)
	must(w.Run())
	w.Advance(2 * time.Hour)
	must(w.Run())
	emptied := func(when string) {
		t.Helper()
		v, _ := w.Engine().Log(orders)
		if bases, _ := w.Bases(orders); len(bases) > 0 || v.Copied != 3 {
			t.Fatalf("%s: %v are left, copied up to %d; want nothing, and 3", when, bases, v.Copied)
		}
		if len(v.Alarms) > 0 || !hasCode(v.Waiting, tier.CodeEmptied) {
			t.Errorf("%s: alarms %v, waiting %v; want no alarm", when, v.Alarms, v.Waiting)
		}
	}
	emptied("at once")
	w.Kill()
	must(w.Start())
	must(w.Run())
	emptied("after a restart")
	must(w.Vanish())
	must(w.Run())
	if v, _ := w.Engine().Log(orders); !hasCode(v.Alarms, tier.CodeSourceVanished) {
		t.Errorf("without its source: alarms %v", v.Alarms)
	}
	must(w.Return())
	must(w.Write(orders, 3, Content(orders, 3, 1)))
	must(w.Run())
	w.Advance(11 * time.Minute)
	must(w.Run())
	if v, _ := w.Engine().Log(orders); v.Copied != 4 || len(v.Alarms) > 0 {
		t.Errorf("copied up to %d, alarms %v; want the next segment copied", v.Copied, v.Alarms)
	}
	must(w.Remove(orders, 3)) // by its owner
	must(w.Run())
	if v, _ := w.Engine().Log(orders); !hasCode(v.Alarms, tier.CodeSourceVanished) {
		t.Errorf("removed by its owner: alarms %v", v.Alarms)
	}
}
