package offsetstest

import (
	"context"

	"github.com/tierd/tierd/runtime/tier"
)

// tierRules are the invariants of tier states and of the end of remote data.
var tierRules = []rule{
	{"a table begins in the state that its first log gives", func(b *box) {
		r := opened(orders0, 0)
		for _, s := range []tier.TierState{tier.Disabling, "PAUSED"} {
			r.State = s
			b.refused(r)
		}
		r.State = tier.Disabled
		b.append(r)
		b.same(tier.Disabled, b.ledger.Table("orders").State)
		b.append(opened(orders1, 0)) // what another log says of the table changes nothing
		b.same(tier.Disabled, b.ledger.Table("orders").State)
		b.same(tier.TierEpoch(1), b.state(orders1).Fresh)
	}},
	{"a table goes through its tier states in order", ruleSteps},
	{"a table is not disabled while a copy is under way", func(b *box) {
		b.appends(opened(orders0, 0), opened(orders1, 0), opened(deep, 0))
		first := b.append(started(orders0, attempt(1, span(0, 10))))
		second := b.append(started(orders1, attempt(2, span(0, 10))))
		b.append(started(deep, attempt(3, span(0, 10)))) // of another table
		b.copies(orders1, 4, span(10, 20))
		b.append(disabling("orders", 2, tier.PolicyRetain))
		b.refused(disabled("orders", 2, tier.PolicyRetain))
		b.append(abandoned(orders0, first))
		b.reopens()
		b.refused(disabled("orders", 2, tier.PolicyRetain))
		b.append(abandoned(orders1, second))
		b.append(disabled("orders", 2, tier.PolicyRetain))
	}},
	{"a copy that ends after its epoch is refused", func(b *box) {
		b.append(opened(orders0, 0))
		a := attempt(1, span(0, 10))
		a.Position = b.append(started(orders0, a))
		b.append(disabling("orders", 2, tier.PolicyRetain))
		b.refused(finished(orders0, a))
		b.refused(started(orders0, attempt(2, span(0, 10))))
		b.refused(hole(orders0, span(0, 10)))
		late := a
		late.Epoch = 2
		b.refused(finished(orders0, late))
		b.appends(abandoned(orders0, a.Position), disabled("orders", 2, tier.PolicyRetain),
			enabled("orders", 3), epochOpened(orders0, 3, false, 0))
		b.refused(finished(orders0, a))
		b.copied(orders0, 0)
	}},
	{"after retain a log goes on as it was", ruleRetain},
	{"after delete a log begins anew", ruleFresh},
	{"a log is opened only in the epoch of an enabled table, once", func(b *box) {
		b.append(opened(orders0, 0))
		b.refused(epochOpened(orders0, 1, false, 0))
		b.append(disabling("orders", 2, tier.PolicyRetain))
		b.refused(epochOpened(orders0, 2, false, 0))
		b.appends(disabled("orders", 2, tier.PolicyRetain), enabled("orders", 3))
		b.refused(epochOpened(orders0, 2, false, 0))
		b.refused(epochOpened(orders0, 4, false, 0))
		b.refused(epochOpened(orders0, 3, true, 0)) // nothing was to be deleted
		late := attempt(1, span(0, 10))
		late.Epoch = 3
		b.refused(started(orders0, late)) // the log is not there yet
		b.refused(hole(orders0, span(0, 10)))
		b.append(epochOpened(orders0, 3, false, 0))
		b.refused(epochOpened(orders0, 3, false, 0))
		b.append(started(orders0, late))
	}},
	{"a log that missed a deletion begins anew, whatever came after", func(b *box) {
		b.append(opened(orders0, 0))
		b.copies(orders0, 1, span(0, 10))
		b.appends(disabling("orders", 2, tier.PolicyDelete), disabled("orders", 2, tier.PolicyDelete),
			enabled("orders", 3), disabling("orders", 4, tier.PolicyRetain),
			disabled("orders", 4, tier.PolicyRetain), enabled("orders", 5))
		b.same(tier.TierEpoch(3), b.ledger.Table("orders").Fresh)
		b.refused(epochOpened(orders0, 5, false, 0))
		b.refused(epochOpened(orders0, 5, true, -1))
		b.append(epochOpened(orders0, 5, true, 10))
		late := opened(orders1, 0)
		late.Epoch = 5
		b.append(late)
		b.same(tier.TierEpoch(0), b.state(orders1).Fresh) // it has nothing to forget
	}},
	{"the log start moves up only, over what was copied", ruleMove},
	{"moves are kept while copies wait below them", ruleMoves},
	{"where all data leave, the first move counts even if the start stays", func(b *box) {
		b.append(opened(orders0, 0))
		pos := b.copies(orders0, 1, span(0, 10))
		b.append(disabling("orders", 2, tier.PolicyDelete))
		early := left(orders0, 0)
		early.At = t0 // before the change, by a clock that went back
		b.same(pos+1, b.append(early))
		b.same([]tier.StartMove{{Start: 0, At: t0 + 50, Cause: tier.MoveDisabled}},
			b.state(orders0).Moves)
		before := b.snapshot()
		b.append(left(orders0, 0))
		b.same(before, b.snapshot())
		b.append(left(orders0, 40, span(0, 10))) // above all that was ever copied
		b.append(removed(orders0, pos))
		b.same(0, len(b.state(orders0).Moves))
	}},
	{"an expired range counts as copied, and what nobody copied does not expire", ruleExpired},
	{"expired segments count in the brake's window", func(b *box) {
		b.append(opened(orders0, 0))
		for i := range 4 {
			b.copies(orders0, i, span(tier.Offset(10*i), tier.Offset(10*i+10)))
		}
		r := expired(orders0, 10, span(0, 10))
		r.Window = tier.BrakeWindow{Since: t0, Segments: 1, Bytes: 6000}
		b.append(r)
		b.same(r.Window, b.ledger.Table("orders").Window)
		b.append(expired(orders0, 20, span(10, 20))) // which the brake does not count
		b.same(r.Window, b.ledger.Table("orders").Window)
		b.append(tier.TableResumed{Table: "orders", At: t0 + 5})
		late := expired(orders0, 40, span(20, 40)) // reckoned in a window that is over
		late.Window = r.Window
		b.append(late)
		b.same(tier.BrakeWindow{Since: t0 + 5, Segments: 2, Bytes: 12000},
			b.ledger.Table("orders").Window)
	}},
	{"a copy is removed only when it is out of the log", ruleRemove},
	{"a cleared tombstone is forgotten", func(b *box) {
		b.append(opened(orders0, 0))
		a := attempt(1, span(0, 10))
		pos := b.append(started(orders0, a))
		clear := tier.TombstoneCleared{Log: orders0, Position: pos, At: t0}
		b.refused(clear)
		b.append(abandoned(orders0, pos))
		b.append(clear)
		b.refused(clear)
		left, _, err := b.ledger.Abandoned(orders0, pos)
		b.attemptVanished(left, err)
		named, err := b.ledger.Named(a.ID)
		b.same(nil, err)
		b.same(false, named)
	}},
	{"a divergence ends what was copied", ruleDiverged},
	{"a log in another source is the same only if it says so", ruleMoved},
	{"that nothing is local by tierd's hand is known until the next copy", ruleEmptied},
	{"what lies wholly beyond a divergence may be removed", ruleClippedRemoved},
	{"a copy wholly beyond an earlier divergence counts for nothing, above a gap too", func(b *box) {
		b.append(opened(orders0, 0))
		b.copies(orders0, 1, span(0, 10))
		over := attempt(2, span(40, 50))
		over.Position = b.append(started(orders0, over))
		b.copies(orders0, 3, span(20, 30))
		b.append(diverged(orders0, 20))
		b.append(finished(orders0, over))
		b.copied(orders0, 10)
		b.copies(orders0, 4, span(10, 25))
		b.copied(orders0, 25)
		b.reopens()
	}},
	{"a copy that began before a divergence counts only below it", func(b *box) {
		b.append(opened(orders0, 0))
		b.copies(orders0, 1, span(0, 20))
		a := attempt(2, span(10, 30))
		a.Position = b.append(started(orders0, a))
		over := attempt(3, span(30, 40))
		over.Position = b.append(started(orders0, over))
		b.append(diverged(orders0, 15))
		b.appends(finished(orders0, a), finished(orders0, over))
		b.copied(orders0, 15)
		b.copies(orders0, 4, span(15, 30))
		b.copied(orders0, 30) // and not 40
	}},
	{"the governing entry is noted", func(b *box) {
		b.refused(tier.TableGoverned{Table: "orders", Entry: "tierd.yaml:3"})
		b.append(opened(orders0, 0))
		b.append(tier.TableGoverned{Table: "orders", Entry: "tierd.yaml:3"})
		b.same("tierd.yaml:3", b.ledger.Table("orders").Entry)
		b.append(tier.TableGoverned{Table: "orders"})
		b.same("", b.ledger.Table("orders").Entry)
	}},
	{"a dropped table lets everything go", ruleDropped},
	{"an accepted time replaces the highest", func(b *box) {
		b.appends(tier.ClockSeen{At: t0 + 9}, tier.ClockAccepted{At: t0 + 3})
		b.same(t0+3, b.ledger.Clock())
		b.append(tier.ClockSeen{At: t0 + 1})
		b.same(t0+3, b.ledger.Clock())
		b.append(tier.ClockAccepted{At: t0 + 50})
		b.same(t0+50, b.ledger.Clock())
	}},
}

func ruleSteps(b *box) {
	b.refused(disabling("orders", 2, tier.PolicyRetain)) // of an unknown table
	b.append(opened(orders0, 0))
	// Of all steps that could be asked for, only those in want are taken.
	try := func(want ...tier.TierChanged) {
		epoch := b.ledger.Table("orders").Epoch
		for _, s := range []tier.TierState{tier.Enabled, tier.Disabling, tier.Disabled, "OFF"} {
			for _, p := range []tier.DisablePolicy{"", tier.PolicyRetain, tier.PolicyDelete, "keep"} {
				for e := epoch - 1; e <= epoch+2; e++ {
					r := tier.TierChanged{Table: "orders", State: s, Epoch: e, Policy: p}
					allowed := false
					for _, w := range want {
						w.At = 0
						allowed = allowed || r == w
					}
					if t := b.ledger.Table("orders"); t.State == s && t.Epoch == e && t.Policy == p {
						before := b.snapshot()
						b.append(r) // as it is
						b.same(before, b.snapshot())
					} else if !allowed {
						b.refused(r)
					}
				}
			}
		}
	}
	is := func(want tier.TableState) {
		b.Helper()
		want.Table = "orders"
		b.same(want, b.ledger.Table("orders"))
		b.reopens()
	}
	retain, del := tier.PolicyRetain, tier.PolicyDelete
	try(disabling("orders", 2, retain), disabling("orders", 2, del))
	b.append(disabling("orders", 2, retain))
	is(tier.TableState{State: tier.Disabling, Epoch: 2, Policy: retain, Since: t0 + 50})
	try(disabled("orders", 2, retain))
	b.append(disabled("orders", 2, retain))
	is(tier.TableState{State: tier.Disabled, Epoch: 2, Policy: retain, Since: t0 + 80})
	try(enabled("orders", 3), disabling("orders", 3, del))
	b.append(enabled("orders", 3))
	is(tier.TableState{State: tier.Enabled, Epoch: 3, Since: t0 + 90})
	b.appends(disabling("orders", 4, retain), disabled("orders", 4, retain),
		disabling("orders", 5, del))
	is(tier.TableState{State: tier.Disabling, Epoch: 5, Policy: del, Since: t0 + 50})
	try(disabled("orders", 5, del))
	b.append(disabled("orders", 5, del))
	try(enabled("orders", 6))
	b.append(enabled("orders", 6))
	is(tier.TableState{State: tier.Enabled, Epoch: 6, Fresh: 6, Since: t0 + 90})
}

func ruleRetain(b *box) {
	b.append(opened(orders0, 0))
	for i := range 3 {
		b.copies(orders0, i, span(tier.Offset(10*i), tier.Offset(10*i+10)))
	}
	b.append(hole(orders0, span(30, 35)))
	b.append(expired(orders0, 10, span(0, 10)))
	b.appends(disabling("orders", 2, tier.PolicyRetain), disabled("orders", 2, tier.PolicyRetain))
	b.append(expired(orders0, 20, span(10, 20))) // remote data expires on
	b.appends(removed(orders0, 0), enabled("orders", 3))
	want := b.state(orders0)
	want.Epoch = 3
	// The manifest goes on, so that the epoch has no fact in it.
	b.same(tier.Position(0), b.append(epochOpened(orders0, 3, false, 99)))
	b.same(want, b.state(orders0))
	b.same(span(0, 20), want.Expired[0])
	b.same(tier.Offset(35), want.Copied)
	a := attempt(9, span(35, 40))
	a.Epoch = 3
	a.Position = b.append(started(orders0, a))
	b.append(finished(orders0, a))
	b.copied(orders0, 40)
}

func ruleFresh(b *box) {
	b.append(opened(orders0, 0))
	first := b.copies(orders0, 1, span(0, 10))
	gap := b.append(hole(orders0, span(10, 20)))
	b.append(diverged(orders0, 15))
	b.copies(orders0, 2, span(30, 40)) // beyond a gap
	b.append(expired(orders0, 10, span(0, 10)))
	b.append(tier.LossAccepted{Log: orders0, Range: span(20, 30), At: t0})
	b.appends(disabling("orders", 2, tier.PolicyDelete), disabled("orders", 2, tier.PolicyDelete),
		enabled("orders", 3))
	b.refused(epochOpened(orders0, 3, false, 5))
	b.append(tier.Published{Log: orders0, Position: gap})
	old := b.state(orders0)
	pos := b.append(epochOpened(orders0, 3, true, 5)) // below the old log start
	b.same(tier.LogState{Log: orders0, Source: old.Source, Layout: old.Layout,
		Incarnation: old.Incarnation, Epoch: 3, Fresh: 3, Start: 5, Copied: 5, LogStart: 5,
		Next: pos + 1, Unpublished: append(old.Unpublished, pos)}, b.state(orders0))
	facts, err := b.ledger.Facts(orders0, pos, pos+1)
	b.same(nil, err)
	begin := tier.Offset(5)
	b.same([]tier.Fact{{Position: pos, Epoch: 3, At: t0 + 95, Copied: 5, Open: &begin,
		Incarnation: "AAAA"}}, facts)
	b.append(tier.Published{Log: orders0, Position: pos})
	b.reopens()
	// What the old epoch copied is there, to be removed, and proves nothing.
	if _, err := b.ledger.Copy(orders0, first); err != nil {
		b.Fatal(err)
	}
	b.append(removed(orders0, first))
	a := attempt(9, span(5, 10))
	a.Epoch = 3
	a.Position = b.append(started(orders0, a))
	b.append(finished(orders0, a))
	b.copied(orders0, 10)
	b.refused(removed(orders0, a.Position))
	late := hole(orders0, span(10, 30)) // where there was a hole and, beyond, a copy
	b.append(late)
	b.copied(orders0, 30)
	b.same([]tier.Hole{late.Hole}, b.state(orders0).Holes)
	again := attempt(10, span(30, 35))
	again.Epoch = 3
	again.Position = b.append(started(orders0, again))
	b.append(finished(orders0, again))
	b.append(hole(orders0, span(35, 40)))
	b.refused(expired(orders0, 40, span(30, 40))) // the old copy of it expires nothing
	_, err = b.ledger.Append(context.Background(),
		localDeleted(orders0, span(0, 5), tier.BrakeWindow{}))
	if err == nil {
		b.Error("a copy of an old epoch stood in for one of the new")
	}
	b.reopen()
}

func ruleMove(b *box) {
	b.append(opened(orders0, 5))
	b.copies(orders0, 1, span(5, 10))
	b.copies(orders0, 2, span(10, 20))
	b.refused(expired(orders0, 4))
	b.refused(expired(orders0, 21))
	r := expired(orders0, 10, span(5, 10))
	r.Cause = "whim"
	b.refused(r)
	pos := b.append(expired(orders0, 10, span(5, 10)))
	b.same(tier.Position(2), pos)
	s := b.state(orders0)
	b.same(tier.Offset(10), s.LogStart)
	b.same([]tier.Position{pos}, s.Unpublished)
	b.same([]tier.StartMove{{Start: 10, At: t0 + 30, Cause: tier.MoveExpired}}, s.Moves)
	start := tier.Offset(10)
	facts, err := b.ledger.Facts(orders0, pos, pos+1)
	b.same(nil, err)
	b.same([]tier.Fact{{Position: pos, Epoch: 1, At: t0 + 30, Copied: 20, Start: &start,
		Incarnation: "AAAA"}}, facts)
	b.append(tier.Published{Log: orders0, Position: pos})
	before := b.snapshot()
	b.same(tier.Position(0), b.append(expired(orders0, 10))) // once more
	b.same(before, b.snapshot())
	b.refused(expired(orders0, 9))
	// All may expire, and the copied offset stays.
	b.appends(expired(orders0, 20, span(10, 20)), removed(orders0, 0), removed(orders0, 1))
	b.copied(orders0, 20)
	b.same(0, len(b.state(orders0).Moves))
	b.append(disabling("orders", 2, tier.PolicyRetain))
	b.append(left(orders0, 50)) // nothing is copied any more; the source may be ahead
	b.same(tier.Offset(50), b.state(orders0).LogStart)
}

func ruleMoves(b *box) {
	b.append(opened(orders0, 0))
	for i := range 5 {
		b.copies(orders0, i, span(tier.Offset(10*i), tier.Offset(10*i+10)))
	}
	starts := func(want ...tier.Offset) {
		b.Helper()
		var got []tier.Offset
		for _, m := range b.state(orders0).Moves {
			got = append(got, m.Start)
		}
		b.same(want, got)
		b.reopens()
	}
	b.append(expired(orders0, 5)) // below it lies no whole copy
	starts()
	b.appends(expired(orders0, 10, span(0, 10)), expired(orders0, 20, span(10, 20)))
	starts(10, 20)
	b.append(removed(orders0, 0))
	b.append(expired(orders0, 30, span(20, 30))) // the first waits for nothing by now
	starts(20, 30)
	b.append(removed(orders0, 2))
	starts(20, 30)
	b.append(removed(orders0, 1))
	starts()
	// A copy that comes too late is out of the log at once, and holds up later moves until it goes.
	late := b.copies(orders0, 9, span(20, 30))
	b.append(expired(orders0, 40, span(30, 40)))
	b.append(removed(orders0, 3))
	starts(40)
	b.append(removed(orders0, late))
	starts()
}

func ruleExpired(b *box) {
	b.append(opened(orders0, 0))
	b.copies(orders0, 1, span(0, 10))
	b.append(hole(orders0, span(10, 20)))
	b.copies(orders0, 2, span(20, 30))
	b.copies(orders0, 3, span(30, 40))
	b.append(diverged(orders0, 35))
	b.copies(orders0, 4, span(38, 50))
	b.refused(expired(orders0, 20, span(0, 20)))               // a hole proves nothing
	b.refused(expired(orders0, 20, span(0, 10), span(20, 30))) // which stays in the log
	b.refused(expired(orders0, 20, span(5, 5)))
	b.append(expired(orders0, 20, span(0, 10)))
	b.append(removed(orders0, 0))
	b.append(hole(orders0, span(35, 38)))
	b.refused(expired(orders0, 38, span(30, 36))) // clipped at 35
	b.append(expired(orders0, 50, span(5, 10), span(20, 35), span(38, 50)))
	b.same(tier.RangeSet{span(0, 10), span(20, 35), span(38, 50)}, b.state(orders0).Expired)
	for _, pos := range []tier.Position{2, 3, 5} {
		b.append(removed(orders0, pos))
	}
	b.append(localDeleted(orders0, span(0, 10), tier.BrakeWindow{}))
	b.append(localDeleted(orders0, span(38, 50), tier.BrakeWindow{}))
}

func ruleRemove(b *box) {
	b.append(opened(orders0, 0))
	a := attempt(1, span(0, 10))
	a.Position = b.append(started(orders0, a))
	b.refused(removed(orders0, a.Position)) // under way
	b.append(finished(orders0, a))
	second := b.copies(orders0, 2, span(10, 20))
	third := b.copies(orders0, 3, span(20, 30))
	fourth := b.copies(orders0, 4, span(30, 40))
	b.refused(removed(orders0, a.Position))
	b.append(expired(orders0, 15, span(0, 10)))
	b.refused(removed(orders0, second)) // half of it is in the log
	b.append(removed(orders0, a.Position))
	b.refused(removed(orders0, a.Position))
	b.refused(removed(orders1, second))
	b.vanished(b.ledger.Copy(orders0, a.Position))
	named, err := b.ledger.Named(a.ID)
	b.same(nil, err)
	b.same(false, named)
	facts, err := b.ledger.Facts(orders0, 0, a.Position+1)
	b.same(nil, err)
	b.same(0, len(facts))
	b.append(disabling("orders", 2, tier.PolicyRetain))
	b.refused(removed(orders0, second))
	b.append(disabled("orders", 2, tier.PolicyRetain))
	b.refused(removed(orders0, second))
	b.append(disabling("orders", 3, tier.PolicyDelete))
	b.append(removed(orders0, second))
	b.append(disabled("orders", 3, tier.PolicyDelete))
	b.append(enabled("orders", 4))
	b.append(removed(orders0, third)) // the log is not in the new epoch yet
	b.reopens()
	b.append(epochOpened(orders0, 4, true, 15))
	b.append(removed(orders0, fourth))
	b.copied(orders0, 15)
	own := attempt(5, span(15, 25))
	own.Epoch = 4
	own.Position = b.append(started(orders0, own))
	b.append(finished(orders0, own))
	b.refused(removed(orders0, own.Position))
}

func clipAt(pos tier.Position, o tier.Offset) tier.Clip {
	return tier.Clip{Position: pos, Offset: o, At: diverged(orders0, o).At}
}

func ruleDiverged(b *box) {
	b.append(opened(orders0, 5))
	b.refused(diverged(orders0, 5)) // nothing was copied
	b.copies(orders0, 1, span(5, 20))
	b.append(hole(orders0, span(20, 30)))
	b.copies(orders0, 2, span(30, 40))
	b.copies(orders0, 3, span(50, 60)) // beyond a gap
	b.refused(diverged(orders0, 4))
	b.refused(diverged(orders0, 60))
	b.append(expired(orders0, 20, span(5, 20)))
	below := tier.LossAccepted{Log: orders0, Range: span(20, 25), At: t0}
	b.appends(below, tier.LossAccepted{Log: orders0, Range: span(20, 30), At: t0})
	pos := b.append(diverged(orders0, 55)) // of what lies beyond, too
	b.copied(orders0, 40)
	second := b.append(diverged(orders0, 25))
	b.copied(orders0, 25)
	s := b.state(orders0)
	cutHole := hole(orders0, span(20, 25)).Hole
	b.same([]tier.Hole{cutHole}, s.Holes)
	b.same([]tier.LossAccepted{below}, s.Accepted) // of the other one a part is no hole any more
	// A clip that is no higher than a later one says nothing any more.
	b.same([]tier.Clip{clipAt(second, 25)}, s.Clips)
	b.same(true, pos < second)
	b.same([]tier.Position{1, 4, pos, second}, s.Unpublished)
	clip := tier.Offset(25)
	facts, err := b.ledger.Facts(orders0, second, second+1)
	b.same(nil, err)
	b.same([]tier.Fact{{Position: second, Epoch: 1, At: t0 + 40, Copied: 25, Clip: &clip,
		Incarnation: "AAAA"}}, facts)
	b.reopens()
	b.copies(orders0, 4, span(25, 45))
	b.copied(orders0, 45)
	second = b.append(diverged(orders0, 25)) // once more at the same place
	b.same([]tier.Clip{clipAt(second, 25)}, b.state(orders0).Clips)
	b.copies(orders0, 5, span(25, 52))
	b.copied(orders0, 52) // and not 60, as before the source diverged
	third := b.append(diverged(orders0, 30))
	b.same([]tier.Clip{clipAt(second, 25), clipAt(third, 30)},
		b.state(orders0).Clips)
	b.append(diverged(orders0, 10)) // below the log start, in what has expired
	b.same(tier.RangeSet{span(5, 10)}, b.state(orders0).Expired)
	b.same(0, len(b.state(orders0).Holes))
	b.copied(orders0, 10)
	b.copies(orders0, 6, span(20, 40)) // beyond a gap
	b.append(diverged(orders0, 30))
	b.copied(orders0, 10)
	b.copies(orders0, 7, span(10, 20))
	b.copied(orders0, 30)
}

func ruleDropped(b *box) {
	drop := tier.TableDropped{Table: "orders", At: t0 + 50}
	b.refused(drop) // nobody knows it
	b.append(opened(orders0, 0))
	b.append(tier.TableGoverned{Table: "orders", Entry: "tables/orders"})
	b.copies(orders0, 1, span(0, 20))
	a := attempt(2, span(20, 30))
	a.Position = b.append(started(orders0, a))
	b.refused(tier.TableDropped{Table: "orders"})
	b.append(drop)
	want := tier.TableState{Table: "orders", State: tier.Disabling, Epoch: 2,
		Policy: tier.PolicyDelete, Since: t0 + 50, Dropped: t0 + 50}
	b.same(want, b.ledger.Table("orders"))
	b.append(drop) // once more changes nothing
	b.same(want, b.ledger.Table("orders"))
	b.refused(finished(orders0, a)) // of an epoch that is over
	b.append(abandoned(orders0, a.Position))
	b.append(tier.StartMoved{Log: orders0, Start: 20, Expired: tier.RangeSet{span(0, 20)},
		Cause: tier.MoveDropped, At: t0 + 51})
	b.append(removed(orders0, 0))
	b.append(disabled("orders", 2, tier.PolicyDelete))
	b.same(t0+50, b.ledger.Table("orders").Dropped)
	b.append(tier.TableGoverned{Table: "orders", Entry: "tables/orders"})
	b.same(tier.Time(0), b.ledger.Table("orders").Dropped)
	b.append(enabled("orders", 3))
	b.append(tier.TableDropped{Table: "orders", At: t0 + 60})
	b.same(tier.TierEpoch(4), b.ledger.Table("orders").Epoch)
	b.append(disabled("orders", 4, tier.PolicyDelete))
	b.append(tier.TableDropped{Table: "orders", At: t0 + 70}) // what was denied is asked again
	b.same(tier.TierEpoch(5), b.ledger.Table("orders").Epoch)
	b.append(disabled("orders", 5, tier.PolicyDelete))
	b.append(enabled("orders", 6))
	b.same(tier.Time(0), b.ledger.Table("orders").Dropped)
}

// What a clip cuts off wholly is no part of the log any more. What it cuts in two still is.
func ruleClippedRemoved(b *box) {
	b.append(opened(orders0, 0))
	cut := b.copies(orders0, 1, span(0, 10))
	beyond := b.copies(orders0, 2, span(10, 20))
	b.append(diverged(orders0, 5))
	b.reopens()
	b.refused(removed(orders0, cut))
	b.append(removed(orders0, beyond))
	b.copies(orders0, 3, span(0, 15))
	b.copied(orders0, 15)
	b.append(expired(orders0, 5, span(0, 5)))
	b.append(removed(orders0, cut)) // what was left of it has expired
	b.reopens()
}

func ruleMoved(b *box) {
	there := opened(orders0, 0)
	b.append(there)
	there.Source, there.Start = "broker-2", 70
	if there.Incarnation == "" {
		b.Fatal("the log has no incarnation")
	}
	b.append(there)
	b.reopens()
	b.same("broker-2", b.state(orders0).Source)
	b.copied(orders0, 0) // nothing else of it is taken over
	plain := opened(orders1, 0)
	plain.Incarnation = ""
	b.append(plain)
	b.append(plain)
	plain.Source = "broker-2"
	b.refused(plain)
	b.same("broker-1", b.state(orders1).Source)
}

func ruleEmptied(b *box) {
	b.append(opened(orders0, 0))
	b.copies(orders0, 1, span(0, 10))
	gone := localDeleted(orders0, span(0, 10), tier.BrakeWindow{Since: t0, Segments: 1, Bytes: 6000})
	gone.Emptied = true
	b.same(false, b.state(orders0).Emptied)
	b.append(gone)
	b.reopens()
	b.same(true, b.state(orders0).Emptied)
	b.append(started(orders0, attempt(2, span(10, 20))))
	b.reopens()
	b.same(false, b.state(orders0).Emptied)
}
