package sim

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// TestALossIsAccepted: copying goes on behind a damaged segment once an operator gave it up. The
// file stays, and what replaces it is copied, also where the clock went back meanwhile.
func TestALossIsAccepted(t *testing.T) {
	t.Parallel()
	for _, how := range rotNames {
		out := scripted(t, kafkaProject(t), "process: runs", "owner: rolls; segments: 2",
			"disk: lets a segment rot; what rots: "+how, "process: runs", // 4
			"operator: accepts a loss", "process: runs", // 6
			"stop: cleanly", "time: passes, and the process runs; time: a day", // 8
			"clock: goes back; seconds: 4999", "owner: repairs what rotted", "process: runs") // 11
		if out.Violation != nil {
			t.Fatalf("%s: %s", how, out.Violation)
		}
		if l := after(t, out, 4); l.Copied != 0 || len(l.Remote) > 0 {
			t.Errorf("%s: damaged it stands at %+v, want nothing copied", how, l)
		}
		for _, step := range []int{6, 8} {
			if l := after(t, out, step); l.Copied == 0 || len(l.Remote) == 0 || l.Local[0].Base != 0 {
				t.Errorf("%s: given up it stands at %+v after step %d, want it copied behind", how, l, step)
			}
		}
		if l := after(t, out, 11); len(l.Remote) == 0 || l.Remote[len(l.Remote)-1].Base != 0 {
			t.Errorf("%s: repaired it stands at %+v, want a copy of it", how, l)
		}
	}
}

// TestALossIsRefused where nothing is lost, and where nothing waits for the segment: of a table
// that does not tier no hole could be recorded, and its log would never be copied past it.
func TestALossIsRefused(t *testing.T) {
	t.Parallel()
	rots := "disk: lets a segment rot; what rots: one bit"
	for why, steps := range map[string][]string{
		"the ledger does not have it yet": {"owner: rolls", rots, "process: scans"},
		"nothing waits for this segment": {"settings: turn tiering off", "owner: rolls",
			"process: runs", rots, "process: runs"},
		"no closed segment that is not copied": {"process: runs", "owner: rolls", "process: runs",
			rots},
	} {
		steps = append(steps, "operator: accepts a loss")
		out := scripted(t, kafkaProject(t), steps...)
		told := false
		for _, l := range out.Trace {
			told = told || l.Step == len(steps) && strings.Contains(l.Text, why)
		}
		if !told || out.Met[LossAccepted] > 0 || out.Violation != nil {
			t.Errorf("%s: it was not said, or accepted: %v", why, out.Violation)
		}
	}
	r := newRig(t)
	r.copied(1)
	r.do(r.w.Append(orders, 1))
	_, err := r.w.Scan()
	r.do(err)
	if refused, err := r.w.AcceptLoss(orders, 10); err != nil || refused == nil ||
		!strings.Contains(refused.Error(), "is not damaged") {
		t.Errorf("of a segment that is whole: %v, %v", refused, err)
	}
}

// TestALossCountsIfItIsDurable: a record of it fails, and the process ends. Whether a hole is
// excused later shows in the ledger alone; of the two records the hole is the first.
func TestALossCountsIfItIsDurable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		commit int
		fate   Fate
		counts bool
	}{
		"neither is":                         {0, Fail, false},
		"the hole is, and a failure is told": {0, FailAfter, true},
		"the hole is, and the loss is not":   {1, Fail, true},
		"both are, and a failure is told":    {1, FailAfter, true},
		"both are":                           {-1, Fail, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, o := newRotten(t)
			commits := 0
			w.Watch = func(p Point) Fate {
				if p.Place != InLedger {
					return Proceed
				}
				if commits++; commits-1 == c.commit {
					return c.fate
				}
				return Proceed
			}
			refused, err := w.AcceptLoss(orders, 0)
			if refused != nil || (err != nil) != (c.commit >= 0) || commits == 0 {
				t.Fatalf("after %d commits: %v, %v", commits, refused, err)
			}
			if got := len(o.losses) == 1; got != c.counts {
				t.Errorf("it counts: %t, want %t", got, c.counts)
			}
			sound(t, o)
		})
	}
}

// newRotten is a world beside a broker whose first segment rotted before it was copied.
func newRotten(t *testing.T) (*World, *Oracle) {
	t.Helper()
	w, o, b := newBrokers(t, false)
	b.append(b.logs[0], 1)
	b.roll(b.logs[0])
	must(w.Rots(orders, segmentName(0), rotTail, 0))
	must(w.Run())
	return w, o
}

// TestALossOfOtherBytesIsAnother: a file that was given up rots on. What was accepted before says
// nothing of it, neither its hole nor its record.
func TestALossOfOtherBytesIsAnother(t *testing.T) {
	t.Parallel()
	w, o := newRotten(t)
	refused, err := w.AcceptLoss(orders, 0)
	must(errors.Join(refused, err))
	must(w.Rots(orders, segmentName(0), rotTouched, 0))
	must(w.Run())
	x := liveRecords(w.files(orders))[0]
	before := o.losses
	o.losses = append(slices.Clone(before), loss{orders, before[0].Range, x.data}) // of an old epoch
	if o.passes(&x) {
		t.Error("copying is to pass over what is not on record")
	}
	o.losses = before
	w.Watch = func(p Point) Fate {
		if p.Place == InLedger {
			return Fail
		}
		return Proceed
	}
	if refused, err := w.AcceptLoss(orders, 0); refused != nil || err == nil {
		t.Fatalf("with a ledger that fails: %v, %v", refused, err)
	}
	if len(o.losses) != 1 {
		t.Errorf("%d losses count, want the one that is on record", len(o.losses))
	}
}

// TestWhatBlocksItsLogIsNotRead: a file that was given up in a tier epoch that is over, or of which
// all copies have left since, is damaged to readers, and the oracle says nothing. It does where the
// log has a copy, or nobody gave it up.
func TestWhatBlocksItsLogIsNotRead(t *testing.T) {
	t.Parallel()
	change := func(w *World, s tier.TierState, e tier.TierEpoch, p tier.DisablePolicy) tier.Record {
		return tier.TierChanged{Table: orders.Table, State: s, Epoch: e, Policy: p, At: w.Now}
	}
	appends := func(w *World, records ...tier.Record) {
		for _, r := range records {
			_, err := w.process.ledger.Append(context.Background(), r)
			must(err)
		}
	}
	off := func(p tier.DisablePolicy) func(w *World, _ *Oracle) {
		return func(w *World, _ *Oracle) {
			appends(w, change(w, tier.Disabling, 2, p))
			if p == tier.PolicyDelete {
				appends(w, tier.StartMoved{Log: orders, Cause: tier.MoveDisabled, At: w.Now})
			}
			appends(w, change(w, tier.Disabled, 2, p))
		}
	}
	over := func(w *World, o *Oracle) {
		off(tier.PolicyDelete)(w, o)
		appends(w, change(w, tier.Enabled, 3, ""),
			tier.EpochOpened{Log: orders, Epoch: 3, Fresh: true, At: w.Now})
	}
	unread := func(w *World, _ *Oracle) {
		w.Objects.Remove(w.storeNow(w.process.ledger.ID()).objects[0].key)
	}
	for name, c := range map[string]struct {
		does func(w *World, o *Oracle)
		want int
	}{
		"given up in an epoch that is over":        {over, 0},
		"given up, and its copy left its log then": {off(tier.PolicyDelete), 0},
		"with a copy, which is not read":           {unread, 1},
		"with a copy that is retained, and not read": {func(w *World, o *Oracle) {
			off(tier.PolicyRetain)(w, o)
			unread(w, o)
		}, 1},
		"given up by nobody": {func(w *World, o *Oracle) {
			over(w, o)
			o.losses = nil
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, o, b := newBrokers(t, false)
			b.append(b.logs[0], 1)
			b.roll(b.logs[0])
			b.append(b.logs[0], 1)
			must(w.Run())
			w.Advance(time.Millisecond)
			must(w.Rots(orders, segmentName(0), rotTouched, 0))
			_, err := w.Scan()
			must(err)
			refused, err := w.AcceptLoss(orders, 0)
			must(errors.Join(refused, err))
			o.blind = true
			c.does(w, o)
			o.readable(o.record(orders))
			if got := o.Violations(); len(got) != c.want {
				t.Errorf("%v, want %d", got, c.want)
			}
		})
	}
}

// TestTheOracleSeesALossThatNobodyAccepted in the records, and what stays undone behind one that is
// on record for another file.
func TestTheOracleSeesALossThatNobodyAccepted(t *testing.T) {
	t.Parallel()
	lost := func(r *rig) {
		r.appends(tier.HoleRecorded{Log: orders, Hole: tier.Hole{Range: tier.Range{Base: 20, Next: 30},
			Cause: tier.HoleLossAccepted, At: r.w.Now}})
	}
	seen(t, map[string]crime{
		"a loss that nobody accepted": {NoGap, lost},
		"the loss of what is not damaged": {NoGap, func(r *rig) {
			r.oracle.gaveUp(orders, tier.Range{Base: 20, Next: 30})
			lost(r)
		}},
		"a loss of what is not damaged, without a hole": {NoGap, func(r *rig) {
			r.oracle.gaveUp(orders, tier.Range{Base: 0, Next: 10})
			r.appends(tier.LossAccepted{Log: orders, Range: tier.Range{Base: 0, Next: 10}})
		}},
		"a loss of another file than the one that was given up": {NoGap, func(r *rig) {
			r.do(r.w.Rots(orders, segmentName(20), rotTouched, 0))
			r.oracle.gaveUp(orders, tier.Range{Base: 20, Next: 30})
			lost(r)
			r.appends(tier.LossAccepted{Log: orders, Range: tier.Range{Base: 20, Next: 30}})
		}},
		"a loss without its hole": {NoGap, func(r *rig) {
			r.do(r.w.Rots(orders, segmentName(20), rotTouched, 0))
			r.oracle.gaveUp(orders, tier.Range{Base: 20, Next: 30})
			r.appends(tier.LossAccepted{Log: orders, Range: tier.Range{Base: 20, Next: 30},
				SHA256: sha256.Sum256(r.oracle.losses[0].data)})
		}},
		"a loss that no audit record announced": {PersistBeforeAct, func(r *rig) {
			r.do(r.w.Rots(orders, segmentName(20), rotTouched, 0))
			r.oracle.gaveUp(orders, tier.Range{Base: 20, Next: 30})
			lost(r)
		}},
		"a loss of which the audit log does not say how it ended": {PersistBeforeAct, func(r *rig) {
			r.do(r.w.Rots(orders, segmentName(20), rotTouched, 0))
			r.oracle.gaveUp(orders, tier.Range{Base: 20, Next: 30})
			r.does(func() error {
				_, err := r.w.process.audit.Intend(context.Background(), tier.Deletion{
					Action: tier.AcceptLoss, Log: orders, Range: tier.Range{Base: 20, Next: 30}})
				return err
			})
			lost(r)
		}},
		"what replaced a segment that was given up is not copied": {EligibleCopied, func(r *rig) {
			r.do(r.w.Rots(orders, segmentName(20), rotTouched, 0))
			r.oracle.gaveUp(orders, tier.Range{Base: 20, Next: 30})
			lost(r)
			r.appends(tier.LossAccepted{Log: orders, Range: tier.Range{Base: 20, Next: 30}})
			r.w.Advance(time.Minute)
			r.do(r.w.Write(orders, 20, Content(orders, 20, 2)))
			r.oracle.Quiet()
		}},
	})
}

// TestALossOutlivesItsLedger: its hole stands in the manifest, and a ledger that is made anew has
// it again, though nothing tells it of the acceptance.
func TestALossOutlivesItsLedger(t *testing.T) {
	t.Parallel()
	w, o := newRotten(t)
	refused, err := w.AcceptLoss(orders, 0)
	must(errors.Join(refused, err))
	must(w.Run())
	lost := o.losses[0].Range
	w.Kill()
	_, err = w.Rebuild()
	must(err)
	ledger, err := w.ledgerNow()
	must(err)
	if l := ledger.log(orders); l == nil || !l.hole(lost) || len(l.state.Accepted) > 0 {
		t.Fatalf("the rebuilt ledger has %+v, want the hole alone", l)
	}
	must(w.Start())
	must(w.Run())
	sound(t, o)
}
