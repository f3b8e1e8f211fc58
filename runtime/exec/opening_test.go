package exec

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// TestALogIsOpenedWhereItBeginsNow: when it was scanned its first segment was away, and its owner
// has brought it back since. What lies below the start of a log is neither copied nor missed.
func TestALogIsOpenedWhereItBeginsNow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(3)
	f := engine.Open{ID: 1, Log: orders, Source: "wal", Layout: tier.LayoutPlain, Start: 10}
	if o := want[engine.Opened](r, r.do(f)); o.State.Start != 0 || o.State.LogStart != 0 {
		t.Errorf("opened at %d, the log begins at %d; want 0", o.State.Start, o.State.LogStart)
	}
}

// TestANewLogDoesNotGovernItsTable: what governs a table is noted with its first log. Another
// entry, and one for a table that was dropped, are for the engine to decide about.
func TestANewLogDoesNotGovernItsTable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before tier.Record // nil where the table has no entry
		entry  string      // that governs it then
	}{
		"the first one":       {nil, "new"},
		"of another entry":    {tier.TableGoverned{Table: "orders", Entry: "old", At: t0}, "old"},
		"of what was dropped": {tier.TableDropped{Table: "orders", At: t0}, ""},
	} {
		r := newRig(t)
		r.roll(2)
		r.opened()
		if c.before != nil {
			_, err := r.ledger.Append(context.Background(), c.before)
			r.must(err)
		}
		r.governor = "new"
		r.must(r.x.governNew(context.Background(), "orders"))
		if got := r.ledger.Table("orders"); got.Entry != c.entry {
			t.Errorf("%s: governed by %q, want %q", name, got.Entry, c.entry)
		}
	}
}

// TestALogThatCannotBeReadIsNotOpened: where it begins is not known.
func TestALogThatCannotBeReadIsNotOpened(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(3)
	r.source.look = func() error { return errors.New("input/output error") }
	failed := want[engine.Failed](r, r.do(r.openEffect()))
	if _, known := r.ledger.Log(orders); known || failed.Reason.Code != tier.CodeSourceUnread {
		t.Errorf("failed for %+v, known: %t; want it not opened", failed.Reason, known)
	}
}

// TestALogOfWhichHalfCanBeReadIsNotOpened: where it begins is not known either. One whose first
// segments went since it was scanned is opened where it began then.
func TestALogOfWhichHalfCanBeReadIsNotOpened(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(3)
	r.must(r.disk.Symlink("nowhere", "wal/orders/0/"+fileName(5)))
	failed := want[engine.Failed](r, r.do(r.openEffect()))
	if _, known := r.ledger.Log(orders); known || failed.Reason.Code != tier.CodeSourceUnread {
		t.Errorf("failed for %+v, known: %t; want it not opened", failed.Reason, known)
	}
	r.must(r.disk.Remove("wal/orders/0/" + fileName(5)))
	r.must(r.disk.Remove("wal/orders/0/" + fileName(0)))
	if o := want[engine.Opened](r, r.do(r.openEffect())); o.State.Start != 0 {
		t.Errorf("opened at %d, want 0", o.State.Start)
	}
}

// TestAnEpochBeginsWhereTheLogDoes: after a disablement by delete nothing older counts, and a
// segment that came back after the scan is part of what the new epoch has to copy.
func TestAnEpochBeginsWhereTheLogDoes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(3)
	r.opened()
	r.changes(tier.TierChanged{State: tier.Disabling, Epoch: 2, Policy: tier.PolicyDelete},
		tier.TierChanged{State: tier.Disabled, Epoch: 2, Policy: tier.PolicyDelete},
		tier.TierChanged{State: tier.Enabled, Epoch: 3})
	f := engine.OpenEpoch{ID: 2, Log: orders, Source: "wal", Epoch: 3, Fresh: true, Start: 20}
	if o := want[engine.Opened](r, r.do(f)); o.State.Start != 0 || o.State.LogStart != 0 {
		t.Errorf("opened at %d, the log begins at %d; want 0", o.State.Start, o.State.LogStart)
	}
	// So it is where a call that was given up did it after all, and the engine asks again.
	f.ID++
	if o := want[engine.Opened](r, r.do(f)); o.State.Epoch != 3 || o.State.Start != 0 {
		t.Errorf("asked again: in epoch %d from %d on; want 3 and 0", o.State.Epoch, o.State.Start)
	}
}

// TestAnEpochIsOpenedOnce: a call that was given up has opened it, and nobody heard. The next one
// says so, and is not refused for ever.
func TestAnEpochIsOpenedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(3)
	r.opened()
	steps := []engine.ChangeTier{
		{ID: 2, Table: "orders", State: tier.Disabling, Epoch: 2, Policy: tier.PolicyDelete},
		{ID: 3, Table: "orders", State: tier.Disabled, Epoch: 2, Policy: tier.PolicyDelete},
		{ID: 4, Table: "orders", State: tier.Enabled, Epoch: 3}}
	for _, f := range steps {
		for range 2 {
			want[engine.Done](r, r.do(f))
		}
	}
	want[engine.Failed](r, r.do(steps[0])) // that is over
	f := engine.OpenEpoch{ID: 5, Log: orders, Source: "wal", Epoch: 3, Fresh: true, Start: 0}
	first := want[engine.Opened](r, r.do(f))
	if again := want[engine.Opened](r, r.do(f)); !reflect.DeepEqual(again, first) {
		t.Errorf("the second call says %+v, the first %+v", again, first)
	}
	f.Epoch = 2
	want[engine.Failed](r, r.do(f))
}

// TestAStartIsNotMovedOverWhatCameBack: with a disablement by delete the log begins where its
// source does. What came back below since it was scanned would be in no tier.
func TestAStartIsNotMovedOverWhatCameBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(3)
	r.opened()
	r.copied(0)
	r.changes(tier.TierChanged{State: tier.Disabling, Epoch: 2, Policy: tier.PolicyDelete})
	f := engine.MoveStart{ID: 3, Log: orders, Source: "wal", Start: 10, Cause: tier.MoveDisabled,
		Expired: tier.RangeSet{{Base: 0, Next: 10}}}
	failed := want[engine.Failed](r, r.do(f))
	if s, _ := r.ledger.Log(orders); s.LogStart != 0 || failed.Reason.Code != tier.CodeChanged {
		t.Errorf("the log begins at %d (%+v), want it to wait for another scan", s.LogStart, failed)
	}
	r.must(r.disk.Remove("wal/orders/0/" + fileName(0)))
	if m := want[engine.Moved](r, r.do(f)); m.Start != 10 {
		t.Errorf("then moved to %d, want 10", m.Start)
	}
	r.write(fileName(0), "segment 0\n") // of a start that was moved already nothing is asked
	want[engine.Moved](r, r.do(f))
	f.Start, r.unconfigured = 20, true
	f.Expired = nil
	if m := want[engine.Moved](r, r.do(f)); m.Start != 20 {
		t.Errorf("without a source moved to %d, want 20", m.Start)
	}
}

// changes takes the table orders through steps of its tiering.
func (r *rig) changes(steps ...tier.TierChanged) {
	r.t.Helper()
	for _, s := range steps {
		s.Table, s.At = "orders", r.now
		_, err := r.ledger.Append(context.Background(), s)
		r.must(err)
	}
}
