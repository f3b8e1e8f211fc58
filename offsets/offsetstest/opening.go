package offsetstest

import (
	"context"
	"errors"
	"testing"

	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/tier"
)

// History is a sequence of records that takes every rule, for a new ledger. It must never change:
// the golden bytes of each format version come from it. Positions are known beforehand: they begin
// at 0 in each log.
func History() []tier.Record {
	at := func(n int, pos tier.Position, r tier.Range) tier.Attempt {
		a := attempt(n, r)
		a.Position = pos
		return a
	}
	first, second := at(1, 0, span(5, 10)), at(2, 1, span(20, 30))
	third, other := at(3, 3, span(30, 40)), at(4, 0, span(0, 7))
	return append([]tier.Record{
		opened(orders0, 5),
		started(orders0, first),
		finished(orders0, first),
		opened(deep, 0),
		started(orders0, second),
		finished(orders0, second),
		hole(orders0, span(10, 20)),
		started(deep, other),
		tier.ClockSeen{At: t0},
		started(orders0, third),
		tier.Published{Log: orders0, Position: 2},
		tier.CopyAbandoned{Log: orders0, Position: 3, Cause: "timeout", At: t0},
		reidentified(orders0, finished(orders0, first).Copy),
		localDeleted(orders0, span(5, 10), tier.BrakeWindow{Since: t0, Segments: 1, Bytes: 6000}),
		tier.TablePaused{Table: "orders", Reason: pauseReason, At: t0},
		tier.TableResumed{Table: "orders", At: t0},
		tier.LossAccepted{Log: deep, Range: span(7, 9), SHA256: tier.SHA256{7}, At: t0},
		hole(deep, span(7, 9)),
		finished(deep, other),
		tier.ClockSeen{At: t0 + 1},
		tier.TablePaused{Table: deep.Table, Reason: pauseReason, At: t0},
	}, pastHistory()...)
}

// pastHistory is the part of the history about a table that was disabled and enabled again. One of
// its logs begins anew; the other was not brought into the new epoch.
func pastHistory() []tier.Record {
	at := func(n int, pos tier.Position, r tier.Range) tier.Attempt {
		a := attempt(n, r)
		a.Position = pos
		return a
	}
	first, second, lost := at(11, 0, span(0, 10)), at(12, 1, span(10, 20)), at(13, 2, span(20, 30))
	other, last := at(14, 0, span(0, 10)), at(15, 1, span(10, 20))
	third := at(16, 7, span(40, 50))
	third.Epoch = 4
	braked := expired(past0, 10, span(0, 10))
	braked.Window = tier.BrakeWindow{Since: t0, Segments: 1, Bytes: 6000}
	return []tier.Record{
		opened(past0, 0), opened(past1, 0),
		tier.TableGoverned{Table: "past", Entry: "tierd.yaml:12", At: t0},
		started(past0, first), finished(past0, first),
		started(past0, second), finished(past0, second),
		started(past0, lost), abandoned(past0, 2),
		started(past1, other), finished(past1, other),
		started(past1, last), finished(past1, last),
		braked,
		removed(past0, 0),
		diverged(past0, 18),
		expired(past1, 10, span(0, 10)), diverged(past1, 18),
		disabling("past", 2, tier.PolicyRetain), disabled("past", 2, tier.PolicyRetain),
		disabling("past", 3, tier.PolicyDelete),
		left(past0, 35, span(10, 18)),
		tier.TombstoneCleared{Log: past0, Position: 2, At: t0},
		disabled("past", 3, tier.PolicyDelete), enabled("past", 4),
		epochOpened(past0, 4, true, 40),
		started(past0, third), finished(past0, third),
		tier.ClockAccepted{At: t0 - 1},
		opened(gone0, 0),
		tier.TableDropped{Table: "gone", At: t0 + 9},
	}
}

func testNew(t *testing.T, disk Disk) {
	b := open(t, disk)
	s := b.snapshot()
	if len(s.ID) != 32 {
		t.Fatalf("id %q: want 32 hexadecimal digits", s.ID)
	}
	b.same(Snapshot{ID: s.ID}, s)
	b.reopens()
	if _, ok := b.ledger.Log(orders0); ok {
		t.Fatal("a log that was never opened is known")
	}
	b.vanished(b.ledger.Copy(orders0, 0))
	b.attemptVanished(b.ledger.Attempt(orders0, 0))
	if _, err := b.ledger.Facts(orders0, 0, 9); !errors.Is(err, tier.ErrVanished) {
		t.Fatalf("facts of an unknown log: got error %v, want ErrVanished", err)
	}
	if _, err := b.ledger.Tombstones(orders0); !errors.Is(err, tier.ErrVanished) {
		t.Fatalf("tombstones of an unknown log: got error %v, want ErrVanished", err)
	}
}

func testReadBack(t *testing.T, disk Disk) {
	b := open(t, disk)
	for _, r := range History() {
		b.append(r)
	}
	s := b.snapshot()
	b.same([]int{5, 4}, []int{len(s.Logs), len(s.Tables)})
	b.same(tier.Offset(30), b.state(orders0).Copied)
	b.same(tier.Offset(9), b.state(deep).Copied)
	b.reopens()
}

// testOwn changes whatever the ledger returns; the ledger must not notice.
func testOwn(t *testing.T, disk Disk) {
	b := open(t, disk)
	for _, r := range History()[:15] {
		b.append(r)
	}
	b.append(tier.LossAccepted{Log: orders0, Range: span(1, 2), At: t0})
	b.append(hole(orders0, span(100, 110)))
	s := b.snapshot()
	st := b.state(orders0)
	st.Holes[0].Base, st.Accepted[0].At, st.Unpublished[0] = 77, 77, 77
	b.ledger.Table("orders").Paused.Text = "changed"
	for i := range s.Logs {
		for _, f := range s.Logs[i].Facts {
			if f.Add != nil {
				f.Add.Content.Files[0].Name = "changed"
			}
		}
	}
	b.reopens()
	a := attempt(50, span(40, 50))
	a.Position = b.append(started(orders0, a))
	f := finished(orders0, a)
	b.append(f)
	before := b.snapshot()
	f.Copy.Content.Files[0].Name, f.Copy.Content.Lineage[0].Start = "changed", 9
	b.same(before, b.snapshot())
}

func testReopen(t *testing.T, disk Disk) {
	b := open(t, disk)
	for _, r := range History() {
		b.append(r)
		b.reopens()
	}
}

func testBroken(t *testing.T, disk Disk) {
	b := open(t, disk)
	b.append(opened(orders0, 0))
	pos := b.copies(orders0, 1, span(0, 10))
	b.ledger.Close()
	b.open(func(m offsets.Medium) offsets.Medium { return &failing{Medium: m} })
	_, err := b.ledger.Append(context.Background(), tier.ClockSeen{At: t0})
	if !errors.Is(err, errInjected) || errors.Is(err, tier.ErrRefused) {
		t.Fatalf("a failed commit: got error %v", err)
	}
	b.brokenWith(err, pos)
}

// brokenWith checks that every way into the ledger ends in the error.
func (b *box) brokenWith(want error, pos tier.Position) {
	b.Helper()
	ways := map[string]func() error{
		"Append": func() error {
			_, err := b.ledger.Append(context.Background(), opened(orders1, 0))
			return err
		},
		"Append of what would be refused": func() error {
			_, err := b.ledger.Append(context.Background(), tier.TableResumed{Table: "none"})
			return err
		},
		"Copy":    func() error { _, err := b.ledger.Copy(orders0, pos); return err },
		"Attempt": func() error { _, err := b.ledger.Attempt(orders0, pos); return err },
		"Facts":   func() error { _, err := b.ledger.Facts(orders0, 0, 9); return err },
		"Restore": func() error {
			return b.ledger.Restore(func(tier.LogState, []tier.Remote, []tier.Attempt) error {
				return nil
			})
		},
		"RestoreTables": func() error {
			return b.ledger.RestoreTables(func(tier.TableState) error { return nil })
		},
		"Tombstones": func() error { _, err := b.ledger.Tombstones(orders0); return err },
		"Abandoned":  func() error { _, _, err := b.ledger.Abandoned(orders0, pos); return err },
		"Named":      func() error { _, err := b.ledger.Named(attemptID(1)); return err },
		"Err":        b.ledger.Err,
	}
	for name, way := range ways {
		if err := way(); err != want {
			b.Errorf("%s: got error %v, want %v", name, err, want)
		}
	}
	if s, ok := b.ledger.Log(orders0); ok {
		b.Errorf("Log still gives %+v", s)
	}
	if s := b.ledger.Table("orders"); s.State != "" {
		b.Errorf("Table still gives %+v", s)
	}
	if logs := b.ledger.Logs(); len(logs) > 0 {
		b.Errorf("Logs still gives %v", logs)
	}
}

func testClosed(t *testing.T, disk Disk) {
	b := open(t, disk)
	b.append(opened(orders0, 0))
	for range 2 {
		if err := b.ledger.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
	err := b.ledger.Err()
	if err == nil || errors.Is(err, tier.ErrRefused) {
		t.Fatalf("a closed ledger says %v", err)
	}
	b.brokenWith(err, 0)
}

func testUnchanged(t *testing.T, disk Disk) {
	b := open(t, disk)
	b.ledger.Close()
	var c *counting
	b.open(func(m offsets.Medium) offsets.Medium {
		c = &counting{Medium: m}
		return c
	})
	b.append(opened(orders0, 0))
	b.append(opened(orders0, 0))
	b.append(tier.ClockSeen{At: t0})
	b.append(tier.ClockSeen{At: t0 - 1})
	b.refused(tier.TableResumed{Table: "none"})
	b.same(2, c.commits)
}

func testAlarm(t *testing.T, disk Disk) {
	b := open(t, disk)
	b.append(opened(orders0, 0))
	pos := b.copies(orders0, 1, span(0, 10))
	w := tier.BrakeWindow{Since: t0, Segments: 1, Bytes: 6000}
	_, err := b.ledger.Append(context.Background(), localDeleted(orders0, span(0, 20), w))
	if err == nil || errors.Is(err, tier.ErrRefused) {
		t.Fatalf("a deletion of what was never copied: got error %v", err)
	}
	b.brokenWith(err, pos)
	b.same(w, b.reopen().Tables[0].Window)
}

// testSweep fails each commit of a history once, before or after it took effect. After the restart
// the ledger holds what it held before the record or after it, and the history goes on.
func testSweep(t *testing.T, newDisk func(t *testing.T) Disk) {
	records := History()
	clean := open(t, newDisk(t))
	states := []Snapshot{clean.snapshot()}
	for _, r := range records {
		clean.append(r)
		states = append(states, clean.snapshot())
	}
	for _, after := range []bool{false, true} {
		b := open(t, newDisk(t))
		for n, r := range records {
			b.ledger.Close()
			b.open(func(m offsets.Medium) offsets.Medium { return &failing{Medium: m, after: after} })
			_, err := b.ledger.Append(context.Background(), r)
			if !errors.Is(err, errInjected) || errors.Is(err, tier.ErrRefused) {
				t.Fatalf("commit %d fails: got error %v", n, err)
			}
			next := n
			if after {
				next++
			}
			got := b.reopen()
			got.ID = states[next].ID // each disk has its own
			b.same(states[next], got)
			if !after {
				b.append(r)
			}
		}
		got := b.snapshot()
		got.ID = states[len(records)].ID
		b.same(states[len(records)], got)
	}
}
