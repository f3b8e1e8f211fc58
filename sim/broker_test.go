package sim

import (
	"slices"
	"testing"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// newBrokers is a world whose source is a broker's, with the log orders/0.
func newBrokers(t testing.TB, silent bool) (*World, *Oracle, *broker) {
	t.Helper()
	c := testConfig()
	c.Layout = tier.LayoutKafka
	w, err := NewWorld(c, scenarioStart)
	must(err)
	o := w.Observe()
	b := newBroker(w, silent, orders)
	must(w.Start())
	return w, o, b
}

func sound(t *testing.T, o *Oracle) {
	t.Helper()
	for _, v := range o.Violations() {
		t.Error(v)
	}
}

// TestALeaderChangeCutsOffWhatWasCopied: the new leader's log differs from offset 15 on, in the
// middle of a segment that was copied. What is left of the old lineage is never served again, the
// rest is copied anew, and what is cut off wholly goes after the grace.
func TestALeaderChangeCutsOffWhatWasCopied(t *testing.T) {
	t.Parallel()
	for name, silent := range map[string]bool{"with a record of epochs": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, o, b := newBrokers(t, silent)
			l := b.logs[0]
			for range 4 {
				b.append(l, 1)
				b.roll(l)
			}
			must(w.Run())
			if v, _ := w.Engine().Log(orders); v.Copied != l.active() {
				t.Fatalf("copied up to %d, want %d", v.Copied, l.active())
			}
			b.elect(l, 3, 1)
			w.Advance(1e9)
			must(w.Run())
			b.append(l, 4)
			b.roll(l)
			must(w.Run())
			for range settleRounds {
				must(w.Run())
				w.Advance(200e9)
			}
			v, _ := w.Engine().Log(orders)
			if v.Copied != l.active() || len(v.Alarms) > 0 {
				t.Errorf("copied up to %d, want %d; alarms %v", v.Copied, l.active(), v.Alarms)
			}
			ledger, _ := w.Ledger().Log(orders)
			if len(ledger.Clips) != 1 || ledger.Clips[0].Offset != 15 {
				t.Errorf("clips %v, want one at 15", ledger.Clips)
			}
			o.Quiet()
			sound(t, o)
		})
	}
}

// TestARecordThatDisagreesWithTheCopyKeepsTheSegment: the batches on disk are those that were
// copied, and the source's own record names another leader for them. Something is wrong with one of
// them, so the guard refuses the proof.
func TestARecordThatDisagreesWithTheCopyKeepsTheSegment(t *testing.T) {
	t.Parallel()
	w, o, b := newBrokers(t, false)
	b.roll(b.logs[0])
	b.roll(b.logs[0])
	must(w.Run())
	b.put("orders-0/leader-epoch-checkpoint", "0\n2\n0 0\n1 5\n")
	w.Advance(2 * 3600e9)
	must(w.Run())
	v, _ := w.Engine().Log(orders)
	if v.Local.Base != 0 || !hasCode(v.Alarms, tier.CodeLineage) {
		t.Errorf("local %v, alarms %v; want everything there, and an alarm", v.Local, v.Alarms)
	}
	b.put("orders-0/leader-epoch-checkpoint", "0\n1\n1 0\n")
	w.Advance(600e9)
	must(w.Run())
	if v, _ := w.Engine().Log(orders); v.Local.Base != b.logs[0].active() || len(v.Alarms) > 0 {
		t.Errorf("local %v, alarms %v; want all gone that was copied", v.Local, v.Alarms)
	}
	sound(t, o)
}

// TestABatchThatTheRecordContradictsDecidesNothing: the checksum of a batch does not cover its
// leader epoch, so one bit on disk could cut off an archive. Nothing is cut off while the source's
// own record speaks against it, and nothing else is done with the log.
func TestABatchThatTheRecordContradictsDecidesNothing(t *testing.T) {
	t.Parallel()
	w, o, b := newBrokers(t, false)
	l := b.logs[0]
	b.roll(l)
	b.roll(l)
	must(w.Run())
	l.batches[1].epoch = 3
	l.written[5] = -1
	w.Advance(1e9)
	o.cuts(orders, 5)
	b.flush(l)
	b.put("orders-0/leader-epoch-checkpoint", "0\n1\n1 0\n")
	w.Advance(2 * 3600e9)
	for range settleRounds {
		must(w.Run())
		w.Advance(60e9)
	}
	state, _ := w.Ledger().Log(orders)
	v, _ := w.Engine().Log(orders)
	if len(state.Clips) > 0 || state.Copied != 10 || v.Local.Base != 5 ||
		!hasCode(v.Alarms, tier.CodeLineage) {
		t.Errorf("local %v, clips %v, alarms %v; want it left alone from 5 on", v.Local, state.Clips,
			v.Alarms)
	}
	b.flush(l) // the record says so, too: another leader it was
	for range settleRounds {
		must(w.Run())
		w.Advance(60e9)
	}
	if state, _ = w.Ledger().Log(orders); len(state.Clips) != 1 || state.Clips[0].Offset != 5 {
		t.Errorf("clips %v, want one at 5", state.Clips)
	}
}

func hasCode(reasons []tier.Reason, c tier.Code) bool {
	return slices.ContainsFunc(reasons, func(r tier.Reason) bool { return r.Code == c })
}

// TestASecondCutBelowTheFirstIsSeen: a leader cut the log off at 15, and before the comparison that
// this raised has looked at anything another one cut it off at 0. What is left of the copies below
// 15 is of a lineage that the log has left, too: no reader may be given it.
func TestASecondCutBelowTheFirstIsSeen(t *testing.T) {
	t.Parallel()
	w, o, b := newBrokers(t, false)
	l := b.logs[0]
	for range 5 {
		b.roll(l)
	}
	must(w.Run())
	scan := func() {
		w.Advance(1e9)
		if _, err := w.Scan(); err != nil {
			t.Fatal(err)
		}
		w.step(engine.Tick{})
	}
	b.elect(l, 3, 0)
	b.append(l, 1)
	scan()
	if n := len(w.Queued()); n != 1 {
		t.Fatalf("%d effects are queued, want one comparison", n)
	}
	b.elect(l, 0, 0)
	b.append(l, 5)
	scan()
	for range settleRounds {
		must(w.Run())
		w.Advance(60e9)
	}
	state, _ := w.Ledger().Log(orders)
	if n := len(state.Clips); n != 1 || state.Clips[0].Offset != 0 {
		t.Errorf("clips %v, want one at 0", state.Clips)
	}
	o.Quiet()
	sound(t, o)
}
