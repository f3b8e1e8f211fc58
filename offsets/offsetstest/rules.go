package offsetstest

import (
	"slices"
	"strings"

	"github.com/tierd/tierd/runtime/tier"
)

// rule is an invariant that the ledger keeps, with the test that shows it.
type rule struct {
	name string
	test func(b *box)
}

// rules are the invariants of logs and copies.
var rules = []rule{
	{"a log begins with copied, log start and start alike, in an enabled table of epoch 1",
		func(b *box) {
			b.append(opened(orders0, 40))
			b.same(tier.LogState{Log: orders0, Source: "broker-1", Layout: tier.LayoutKafka,
				Incarnation: "AAAA", Epoch: 1, Start: 40, Copied: 40, LogStart: 40},
				b.state(orders0))
			b.same(tier.TableState{Table: "orders", State: tier.Enabled, Epoch: 1, Since: t0},
				b.ledger.Table("orders"))
			b.same(tier.TableState{}, b.ledger.Table("other"))
		}},
	{"a log opened again with the same incarnation stays as it is", func(b *box) {
		b.append(opened(orders0, 0))
		b.copies(orders0, 1, span(0, 10))
		before := b.snapshot()
		b.append(opened(orders0, 500))
		b.same(before, b.snapshot())
	}},
	{"a log opened with another incarnation is refused", func(b *box) {
		b.append(opened(orders0, 0))
		r := opened(orders0, 0)
		r.Incarnation = "BBBB"
		b.refused(r)
	}},
	{"a log without a valid id, start or epoch is refused", func(b *box) {
		b.refused(opened(tier.LogID{Table: "orders"}, 0))
		b.refused(opened(tier.LogID{Table: "..", Name: "0"}, 0))
		b.refused(opened(tier.LogID{Table: strings.Repeat("x", 5000), Name: "0"}, 0))
		b.refused(opened(orders0, -1))
		r := opened(orders0, 0)
		r.Epoch = 2
		b.refused(r)
	}},
	{"a record of a log never opened is refused", func(b *box) {
		a := attempt(1, span(0, 10))
		for _, r := range []tier.Record{started(orders0, a), finished(orders0, a),
			tier.CopyAbandoned{Log: orders0}, tier.CopyReidentified{Log: orders0},
			hole(orders0, span(0, 1)), tier.Published{Log: orders0},
			tier.Checkpointed{Log: orders0, Level: 1}, tier.LossAccepted{Log: orders0},
			localDeleted(orders0, span(0, 1), tier.BrakeWindow{}), epochOpened(orders0, 1, true, 0),
			expired(orders0, 0), removed(orders0, 0), diverged(orders0, 0),
			tier.TombstoneCleared{Log: orders0}, &tier.ClockSeen{At: 1}, nil} {
			b.refused(r)
		}
	}},
	{"positions ascend and each is handed out once, over refusals and restarts", rulePositions},
	{"a copy of another epoch is refused", func(b *box) {
		b.append(opened(orders0, 0))
		a := attempt(1, span(0, 10))
		a.Epoch = 2
		b.refused(started(orders0, a))
	}},
	{"a copy of an empty or impossible range is refused", func(b *box) {
		b.append(opened(orders0, 0))
		b.refused(started(orders0, attempt(1, span(10, 10))))
		b.refused(started(orders0, attempt(1, span(10, 5))))
		b.refused(started(orders0, attempt(1, span(-1, 5))))
	}},
	{"an attempt id that is under way, finished or abandoned is refused", func(b *box) {
		b.append(opened(orders0, 0))
		b.append(opened(deep, 0))
		b.append(started(orders0, attempt(1, span(0, 10))))
		b.copies(orders0, 2, span(0, 10))
		pos := b.append(started(orders0, attempt(3, span(0, 10))))
		b.append(tier.CopyAbandoned{Log: orders0, Position: pos, Cause: "timeout", At: t0})
		for n := 1; n <= 3; n++ {
			b.refused(started(orders0, attempt(n, span(20, 30))))
			b.refused(started(deep, attempt(n, span(20, 30))))
		}
	}},
	{"a record that is too large is refused", func(b *box) {
		b.append(opened(orders0, 0))
		a := attempt(1, span(0, 10))
		a.Names = []string{strings.Repeat("n", 2<<20)}
		b.refused(started(orders0, a))
	}},
	{"a finished copy takes its attempt's place", func(b *box) {
		b.append(opened(orders0, 0))
		a := attempt(1, span(0, 10))
		a.Position = b.append(started(orders0, a))
		got, err := b.ledger.Attempt(orders0, a.Position)
		b.same(nil, err)
		b.same(a, got)
		b.vanished(b.ledger.Copy(orders0, a.Position))
		f := finished(orders0, a)
		b.append(f)
		c, err := b.ledger.Copy(orders0, a.Position)
		b.same(nil, err)
		b.same(f.Copy, c)
		b.attemptVanished(b.ledger.Attempt(orders0, a.Position))
		b.refused(f)
	}},
	{"a copy whose attempt is not under way is refused", ruleNotUnderWay},
	{"a copy with a file that its attempt never named is refused", func(b *box) {
		b.append(opened(orders0, 0))
		a := attempt(1, span(0, 10))
		a.Position = b.append(started(orders0, a))
		f := finished(orders0, a)
		f.Copy.Content.Files = append(f.Copy.Content.Files, tier.SourceFile{
			FileDigest: tier.FileDigest{Name: "00000000000000000000.txnindex"}})
		b.refused(f)
		f.Copy.Content.Files = nil
		b.refused(f)
	}},
	{"the copied offset moves over the contiguous prefix of copies and holes", func(b *box) {
		b.append(opened(orders0, 10))
		b.copied(orders0, 10)
		b.copies(orders0, 1, span(30, 40))
		b.copied(orders0, 10)
		b.copies(orders0, 2, span(10, 20))
		b.copied(orders0, 20)
		b.append(hole(orders0, span(20, 25)))
		b.copied(orders0, 25)
		b.copies(orders0, 3, span(25, 30))
		b.copied(orders0, 40)
		b.copies(orders0, 4, span(10, 30)) // what is copied again
		b.copied(orders0, 40)
		b.copies(orders0, 5, span(35, 60)) // and overlaps
		b.copied(orders0, 60)
	}},
	{"the copied offset never goes down", func(b *box) {
		b.append(opened(orders0, 0))
		highest := tier.Offset(0)
		for i, r := range []tier.Range{span(0, 50), span(0, 10), span(5, 20), span(90, 95),
			span(0, 60), span(60, 91), span(0, 1)} {
			b.copies(orders0, i, r)
			if got := b.state(orders0).Copied; got < highest {
				b.Fatalf("copied offset fell from %d to %d", highest, got)
			} else {
				highest = got
			}
			b.reopens()
		}
		b.copied(orders0, 95)
	}},
	{"an abandoned attempt leaves a tombstone", func(b *box) {
		b.append(opened(orders0, 0))
		a := attempt(1, span(0, 10))
		a.Position = b.append(started(orders0, a))
		r := tier.CopyAbandoned{Log: orders0, Position: a.Position, Cause: "timeout", At: t0 + 5}
		b.append(r)
		s := b.snapshot().Logs[0]
		b.same(0, len(s.Attempts)+len(s.Facts))
		b.same(1, len(s.Tombstones))
		b.same(a, s.Tombstones[0].Attempt)
		b.same("timeout", s.Tombstones[0].Cause)
		b.same(t0+5, s.Tombstones[0].At)
		b.refused(r)
		b.refused(finished(orders0, a))
	}},
	{"a copy whose files have another identity keeps everything else", func(b *box) {
		b.append(opened(orders0, 0))
		pos := b.copies(orders0, 1, span(0, 10))
		c, _ := b.ledger.Copy(orders0, pos)
		r := reidentified(orders0, c)
		b.append(r)
		c.Content.Files = r.Files
		got, err := b.ledger.Copy(orders0, pos)
		b.same(nil, err)
		b.same(c, got)
	}},
	{"a copy is not identified with files of other content", func(b *box) {
		b.append(opened(orders0, 0))
		c, _ := b.ledger.Copy(orders0, b.copies(orders0, 1, span(0, 10)))
		for _, change := range []func(*tier.SourceFile){
			func(f *tier.SourceFile) { f.Name = "other" }, func(f *tier.SourceFile) { f.Size++ },
			func(f *tier.SourceFile) { f.SHA256[9]++ }, func(f *tier.SourceFile) { f.CRC32C++ },
		} {
			r := reidentified(orders0, c)
			change(&r.Files[2])
			b.refused(r)
		}
		r := reidentified(orders0, c)
		r.Files = r.Files[:2]
		b.refused(r)
		r = reidentified(orders0, c)
		r.Position++
		b.refused(r)
	}},
	{"a hole lies only where nothing is", ruleHole},
	{"a hole is unpublished until it is published", func(b *box) {
		b.append(opened(orders0, 0))
		first := b.append(hole(orders0, span(0, 5)))
		second := b.append(hole(orders0, span(5, 9)))
		b.same([]tier.Position{first, second}, b.state(orders0).Unpublished)
		b.append(tier.Published{Log: orders0, Position: first})
		b.append(tier.Published{Log: orders0, Position: first}) // once more
		b.same([]tier.Position{second}, b.state(orders0).Unpublished)
		b.append(tier.Published{Log: orders0, Position: second})
		b.same(0, len(b.state(orders0).Unpublished))
		b.append(tier.Published{Log: orders0, Position: b.copies(orders0, 1, span(9, 10))})
		b.refused(tier.Published{Log: orders0, Position: 3})
	}},
	{"every position but an abandoned one has its fact", ruleFacts},
	{"checkpoints of a level come in order, of settled positions", ruleCheckpoints},
	{"local deletions count in the brake's window, which never forgets", ruleWindow},
	{"a table is paused and resumed", func(b *box) {
		b.refused(tier.TablePaused{Table: "orders", Reason: pauseReason})
		b.refused(tier.TableResumed{Table: "orders"})
		b.append(opened(orders0, 0))
		b.copies(orders0, 1, span(0, 10))
		b.append(localDeleted(orders0, span(0, 10), tier.BrakeWindow{Since: t0, Segments: 1}))
		b.append(tier.TablePaused{Table: "orders", Reason: pauseReason, At: t0})
		b.same(&pauseReason, b.ledger.Table("orders").Paused)
		b.reopens()
		b.append(tier.TableResumed{Table: "orders", At: t0 + 99})
		b.same(tier.TableState{Table: "orders", State: tier.Enabled, Epoch: 1, Since: t0,
			Window: tier.BrakeWindow{Since: t0 + 99}}, b.ledger.Table("orders"))
	}},
	{"an accepted loss is noted once", func(b *box) {
		b.append(opened(orders0, 0))
		loss := tier.LossAccepted{Log: orders0, Range: span(0, 10), SHA256: tier.SHA256{1}, At: t0}
		b.append(loss)
		again := loss
		again.At++
		b.append(again)
		b.same([]tier.LossAccepted{loss}, b.state(orders0).Accepted)
		loss.Range = span(3, 3)
		b.refused(loss)
	}},
	{"the clock keeps the highest time seen", func(b *box) {
		b.same(tier.Time(0), b.ledger.Clock())
		for _, at := range []tier.Time{t0, t0 + 5, t0 - 5} {
			b.append(tier.ClockSeen{At: at})
		}
		b.same(t0+5, b.ledger.Clock())
	}},
}

func rulePositions(b *box) {
	b.append(opened(orders0, 0))
	b.append(opened(orders1, 0))
	var got []tier.Position
	for n := range 9 {
		switch n % 3 {
		case 0:
			b.refused(started(orders0, attempt(n, span(5, 5))))
			got = append(got, b.append(started(orders0, attempt(n, span(0, 5)))))
		case 1:
			got = append(got, b.append(hole(orders0, span(tier.Offset(n*10), tier.Offset(n*10+5)))))
			b.refused(hole(orders0, span(tier.Offset(n*10), tier.Offset(n*10+5))))
		case 2:
			pos := b.append(started(orders0, attempt(n, span(0, 5))))
			b.append(tier.CopyAbandoned{Log: orders0, Position: pos, At: t0})
			got = append(got, pos)
		}
		b.reopens()
	}
	b.same([]tier.Position{0, 1, 2, 3, 4, 5, 6, 7, 8}, got)
	b.same(tier.Position(0), b.append(started(orders1, attempt(99, span(0, 5)))))
}

func ruleNotUnderWay(b *box) {
	b.append(opened(orders0, 0))
	b.append(opened(orders1, 0))
	a := attempt(1, span(0, 10))
	b.refused(finished(orders0, a)) // never started
	a.Position = b.append(started(orders0, a))
	b.refused(finished(orders1, a)) // in another log
	other := a
	other.ID = attemptID(2)
	b.refused(finished(orders0, other))
	other = a
	other.Position++
	b.refused(finished(orders0, other))
	other = a
	other.Epoch = 2
	b.refused(finished(orders0, other))
	for _, r := range []tier.Range{span(0, 9), span(1, 10), span(0, 11)} {
		other = a
		other.Range = r
		b.refused(finished(orders0, other))
	}
	f := finished(orders0, a)
	f.Copy.Verified = "hope"
	b.refused(f)
	b.append(tier.CopyAbandoned{Log: orders0, Position: a.Position, At: t0})
	b.refused(finished(orders0, a))
}

func ruleHole(b *box) {
	b.append(opened(orders0, 100))
	b.copies(orders0, 1, span(100, 110))
	b.copies(orders0, 2, span(120, 130))
	for _, r := range []tier.Range{span(90, 95), span(95, 105), span(100, 110), span(105, 120),
		span(110, 121), span(110, 140), span(121, 122), span(129, 140), span(115, 115)} {
		b.refused(hole(orders0, r))
	}
	b.append(hole(orders0, span(135, 140)))
	b.refused(hole(orders0, span(139, 141)))
	b.copied(orders0, 110)
	b.append(hole(orders0, span(110, 120)))
	b.copied(orders0, 130)
	b.refused(hole(orders0, span(110, 120)))
	b.same([]tier.Hole{hole(orders0, span(110, 120)).Hole, hole(orders0, span(135, 140)).Hole},
		b.state(orders0).Holes)
	// What was given up may come back: a copy proves, whatever a hole says.
	b.copies(orders0, 3, span(110, 120))
}

func ruleFacts(b *box) {
	b.append(opened(orders0, 0))
	first := b.copies(orders0, 1, span(0, 10))
	abandoned := b.append(started(orders0, attempt(2, span(10, 20))))
	b.append(tier.CopyAbandoned{Log: orders0, Position: abandoned, At: t0})
	gap := b.append(hole(orders0, span(20, 25)))
	underWay := b.append(started(orders0, attempt(3, span(30, 40))))
	last := b.copies(orders0, 4, span(10, 20))
	c1, _ := b.ledger.Copy(orders0, first)
	c4, _ := b.ledger.Copy(orders0, last)
	h := hole(orders0, span(20, 25)).Hole
	want := []tier.Fact{
		{Position: first, Epoch: 1, At: c1.FinishedAt, Copied: 10, Add: &c1},
		{Position: gap, Epoch: 1, At: h.At, Copied: 10, Hole: &h},
		{Position: last, Epoch: 1, At: c4.FinishedAt, Copied: 25, Add: &c4},
	}
	for i := range want {
		want[i].Incarnation = "AAAA" // that of the log
	}
	for from := first; from <= last+2; from++ {
		for to := from; to <= last+2; to++ {
			in := slices.DeleteFunc(slices.Clone(want), func(f tier.Fact) bool {
				return f.Position < from || f.Position >= to
			})
			got, err := b.ledger.Facts(orders0, from, to)
			b.same(nil, err)
			b.same(in, got)
		}
	}
	// A fact is the same whenever it is asked for.
	a := attempt(3, span(30, 40))
	a.Position = underWay
	b.append(finished(orders0, a))
	got, err := b.ledger.Facts(orders0, first, underWay)
	b.same(nil, err)
	b.same(want[:2], got)
}

func ruleCheckpoints(b *box) {
	b.append(opened(orders0, 0))
	check := func(level uint8, block uint64) tier.Checkpointed {
		return tier.Checkpointed{Log: orders0, Level: level, Block: block}
	}
	n := 0
	next := func() {
		pos := b.append(started(orders0, attempt(n, span(0, 10))))
		b.append(tier.CopyAbandoned{Log: orders0, Position: pos, At: t0})
		n++
	}
	for range 62 {
		next()
	}
	a := attempt(1000, span(0, 10))
	a.Position = b.append(started(orders0, a))
	b.refused(check(1, 0)) // 63 positions
	gap := b.append(hole(orders0, span(10, 20)))
	b.refused(check(1, 0)) // one is under way, and one unpublished
	b.append(tier.Published{Log: orders0, Position: gap})
	b.refused(check(1, 0)) // one is under way
	b.append(finished(orders0, a))
	gap = b.append(hole(orders0, span(20, 30)))
	for range 63 {
		next()
	}
	b.refused(check(1, 2)) // its positions are not handed out
	b.refused(check(1, 1)) // comes before its turn
	b.refused(check(0, 0))
	b.refused(check(2, 0))
	b.refused(check(200, 0))
	b.append(check(1, 0))
	b.append(check(1, 0)) // once more
	b.same([]uint64{1}, b.state(orders0).Checkpoints)
	underWay := b.append(started(orders0, attempt(1001, span(0, 10))))
	b.refused(check(1, 1)) // one is unpublished
	b.append(tier.Published{Log: orders0, Position: gap})
	b.append(check(1, 1)) // nothing in it is under way
	b.same(tier.Position(128), underWay)
	b.same([]uint64{2}, b.state(orders0).Checkpoints)
}

func ruleWindow(b *box) {
	b.append(opened(orders0, 0))
	b.copies(orders0, 1, span(0, 100))
	w := func(since tier.Time, segments, bytes int64) tier.BrakeWindow {
		return tier.BrakeWindow{Since: since, Segments: segments, Bytes: bytes}
	}
	steps := []struct{ in, want tier.BrakeWindow }{
		{w(t0, 1, 6000), w(t0, 1, 6000)},
		{w(t0, 2, 12000), w(t0, 2, 12000)},
		{w(t0, 1, 6000), w(t0, 2, 12000)}, // reckoned from an older past
		{w(t0+9, 1, 6000), w(t0+9, 1, 6000)},
		{w(t0, 3, 18000), w(t0+9, 2, 12000)}, // reckoned in a window that is over
		{w(t0+90, 1, 6000), w(t0+90, 1, 6000)},
		{w(t0+20, 1, 6000), w(t0+20, 1, 6000)}, // the clock went back
	}
	// Each is recorded at t0+20.
	for i, s := range steps {
		base := tier.Offset(10 * i)
		b.append(localDeleted(orders0, span(base, base+10), s.in))
		b.same(s.want, b.ledger.Table("orders").Window)
	}
}
