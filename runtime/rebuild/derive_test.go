package rebuild

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/runtime/tier"
)

var orders = tier.LogID{Table: "orders", Name: "0"}

func span(base, next tier.Offset) tier.Range { return tier.Range{Base: base, Next: next} }

// add is the fact of a copy by attempt n.
func add(pos tier.Position, n byte, r tier.Range, copied tier.Offset) tier.Fact {
	return tier.Fact{Position: pos, Epoch: 1, Copied: copied, Add: &tier.Copy{
		Attempt: tier.AttemptID{n}, Position: pos, Epoch: 1, Content: tier.Content{Range: r}}}
}

func hole(pos tier.Position, r tier.Range, copied tier.Offset) tier.Fact {
	return tier.Fact{Position: pos, Epoch: 1, Copied: copied,
		Hole: &tier.Hole{Range: r, Cause: tier.HoleSourceGone}}
}

func start(pos tier.Position, o, copied tier.Offset) tier.Fact {
	return tier.Fact{Position: pos, Epoch: 1, Copied: copied, Start: &o}
}

func clip(pos tier.Position, o tier.Offset) tier.Fact {
	return tier.Fact{Position: pos, Epoch: 1, Copied: o, Clip: &o}
}

func open(pos tier.Position, e tier.TierEpoch, o tier.Offset) tier.Fact {
	return tier.Fact{Position: pos, Epoch: e, Copied: o, Open: &o}
}

// bad says of attempts that their objects are gone.
func bad(attempts ...byte) map[tier.AttemptID]error {
	out := map[tier.AttemptID]error{}
	for _, a := range attempts {
		out[tier.AttemptID{a}] = errors.New("gone")
	}
	return out
}

// local is a log on disk that begins there.
func local(base tier.Offset) *tier.Scan {
	return &tier.Scan{Log: orders, Source: "wal", Layout: tier.LayoutPlain,
		Segments: []tier.LocalSegment{{Range: span(base, base+10)}}}
}

// in is what is compared of a derived log.
type in struct {
	Start, LogStart tier.Offset
	Fresh           tier.TierEpoch
	Expired         tier.RangeSet
	Positions       []tier.Position // of the facts
	Moved           int             // of these
	Clips           int
	Leaves          bool // something has left the log
}

func TestDerive(t *testing.T) {
	t.Parallel()
	twice := add(2, 9, span(20, 30), 30)
	for name, c := range map[string]struct {
		facts, hidden []tier.Fact
		bad           map[tier.AttemptID]error
		local         *tier.Scan
		want          in
	}{
		"nothing at all":           {want: in{}},
		"a log that is only local": {local: local(70), want: in{Start: 70, LogStart: 70}},
		"copies": {facts: []tier.Fact{add(0, 1, span(0, 10), 10), add(1, 2, span(10, 20), 20)},
			want: in{Positions: []tier.Position{0, 1}}},
		"one whose object is gone": {
			facts: []tier.Fact{add(0, 1, span(0, 10), 10), add(1, 2, span(10, 20), 20)}, bad: bad(2),
			want: in{Positions: []tier.Position{0}}},
		"the first one, and the segment is local": {
			facts: []tier.Fact{add(0, 1, span(0, 10), 10), add(1, 2, span(10, 20), 20)}, bad: bad(1),
			local: local(0), want: in{Positions: []tier.Position{1}}},
		"the first one, and nothing is local": {
			facts: []tier.Fact{add(0, 1, span(0, 10), 10), add(1, 2, span(10, 20), 20)}, bad: bad(1),
			want: in{Start: 10, LogStart: 10, Positions: []tier.Position{1}}},
		"expired, and removed": {
			facts: []tier.Fact{add(0, 1, span(0, 10), 10), add(1, 2, span(10, 20), 20), start(2, 10, 20)},
			bad:   bad(1), local: local(10),
			want: in{LogStart: 10, Expired: tier.RangeSet{span(0, 10)}, Positions: []tier.Position{1, 2}}},
		"expired, and not removed yet": {
			facts: []tier.Fact{add(0, 1, span(0, 10), 10), add(1, 2, span(10, 20), 20), start(2, 10, 20)},
			want: in{LogStart: 10, Expired: tier.RangeSet{span(0, 10)},
				Positions: []tier.Position{0, 1, 2}, Leaves: true}},
		"copied out of order, and expired": {
			facts: []tier.Fact{add(0, 1, span(0, 10), 10), add(1, 2, span(20, 30), 10), start(2, 30, 10)},
			want: in{LogStart: 30, Expired: tier.RangeSet{span(0, 10), span(20, 30)},
				Positions: []tier.Position{0, 1, 2}, Leaves: true}},
		"a start beyond what was copied": {
			facts: []tier.Fact{add(0, 1, span(0, 10), 10), start(1, 50, 10)},
			want: in{LogStart: 50, Expired: tier.RangeSet{span(0, 10)},
				Positions: []tier.Position{0, 1}, Leaves: true}},
		"a hole is no expired range": {
			facts: []tier.Fact{hole(0, span(0, 10), 10), add(1, 1, span(10, 20), 20), start(2, 20, 20)},
			bad:   bad(1),
			want: in{LogStart: 20, Expired: tier.RangeSet{span(10, 20)},
				Positions: []tier.Position{0, 2}}},
		"an epoch in which nothing older counts": {
			facts: []tier.Fact{add(0, 1, span(0, 10), 10), start(1, 10, 10), open(2, 3, 5)},
			want:  in{Start: 5, LogStart: 5, Fresh: 3, Positions: []tier.Position{0, 1, 2}}},
		"clips": {
			facts: []tier.Fact{add(0, 1, span(0, 30), 30), clip(1, 25), clip(2, 20), clip(3, 28)},
			want:  in{Positions: []tier.Position{0, 1, 2, 3}, Clips: 2}},
		"a hole of what a copy has is none": {
			facts: []tier.Fact{add(0, 1, span(0, 10), 10), hole(1, span(10, 20), 20),
				add(1, 2, span(10, 20), 20)},
			want: in{Positions: []tier.Position{0, 1}}},
		"of a hole the rest stays": {
			facts: []tier.Fact{hole(0, span(0, 30), 30), add(1, 1, span(10, 20), 30)},
			want:  in{Positions: []tier.Position{0, 1, 66}, Moved: 1}},
		"two copies at one position": {
			facts: []tier.Fact{add(2, 1, span(10, 20), 20), twice},
			want:  in{Start: 10, LogStart: 10, Positions: []tier.Position{2, 67}, Moved: 1}},
		"two copies of the same at one position": {
			facts: []tier.Fact{add(2, 1, span(20, 30), 20), twice},
			want:  in{Start: 20, LogStart: 20, Positions: []tier.Position{2}}},
		"a copy inside the range of one that begins lower": {
			facts: []tier.Fact{add(2, 1, span(20, 30), 20), add(2, 2, span(30, 40), 40),
				add(3, 3, span(20, 40), 40)},
			want: in{Start: 20, LogStart: 20, Positions: []tier.Position{2, 3, 68}, Moved: 1}},
		"one in the place of several that others have": {
			facts: []tier.Fact{add(2, 1, span(10, 20), 20), add(2, 2, span(20, 40), 40),
				add(3, 3, span(20, 30), 40), add(4, 4, span(30, 40), 40)},
			want: in{Start: 10, LogStart: 10, Positions: []tier.Position{2, 3, 4}}},
		"a copy that a checkpoint forgot": {
			facts:  []tier.Fact{add(0, 1, span(0, 10), 10)},
			hidden: []tier.Fact{add(1, 2, span(10, 20), 20)},
			want:   in{Positions: []tier.Position{0, 66}, Moved: 1}},
		"one that is late, and has nothing new": {
			facts:  []tier.Fact{add(0, 1, span(0, 10), 10)},
			hidden: []tier.Fact{add(1, 2, span(0, 10), 10)},
			want:   in{Positions: []tier.Position{0}}},
		"one that was clipped since": {
			facts:  []tier.Fact{add(0, 1, span(0, 10), 10), clip(2, 15)},
			hidden: []tier.Fact{add(1, 2, span(10, 20), 20)},
			want:   in{Positions: []tier.Position{0, 2}, Clips: 1}},
		"a start that a checkpoint forgot": {
			facts:  []tier.Fact{add(0, 1, span(0, 10), 10), add(1, 2, span(10, 20), 20)},
			hidden: []tier.Fact{start(2, 10, 20)},
			want: in{LogStart: 10, Expired: tier.RangeSet{span(0, 10)},
				Positions: []tier.Position{0, 1, 67}, Moved: 1, Leaves: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &known{id: orders, now: 1, bad: c.bad,
				union: objstore.Union{Facts: c.facts, Hidden: c.hidden}}
			for _, f := range append(append([]tier.Fact{}, c.facts...), c.hidden...) {
				k.union.Next = max(k.union.Next, f.Position+1)
			}
			scan := tier.Scan{}
			if c.local != nil {
				scan = *c.local
			}
			k.derive(1, scan, c.local != nil)
			s := &k.state
			got := in{Start: s.Start, LogStart: s.LogStart, Fresh: s.Fresh, Expired: s.Expired,
				Moved: len(k.moved), Clips: len(s.Clips), Leaves: len(s.Moves) > 0}
			for _, f := range k.facts {
				got.Positions = append(got.Positions, f.Position)
				if f.Position >= s.Next || f.Epoch > s.Epoch {
					t.Errorf("position %d of epoch %d, where the next is %d of %d", f.Position, f.Epoch,
						s.Next, s.Epoch)
				}
				if f.Add != nil && f.Add.Position != f.Position {
					t.Errorf("the copy of position %d says %d", f.Position, f.Add.Position)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWhichLog: a log keeps the identity that its facts tell, wherever it lies.
func TestWhichLog(t *testing.T) {
	t.Parallel()
	told := add(0, 1, span(0, 10), 10)
	told.Incarnation = "AAAA"
	here := local(0)
	here.Layout, here.Incarnation = tier.LayoutKafka, "BBBB"
	numbered := add(0, 1, span(0, 10), 10)
	numbered.Incarnation = "7/3"
	for _, c := range []struct {
		fact tier.Fact
		scan *tier.Scan
		want tier.LogState
	}{
		{told, nil, tier.LogState{Layout: tier.LayoutKafka, Incarnation: "AAAA"}},
		{numbered, nil, tier.LogState{Layout: tier.LayoutFluss, Incarnation: "7/3"}},
		{told, here, tier.LogState{Source: "wal", Layout: tier.LayoutKafka, Incarnation: "AAAA"}},
		{add(0, 1, span(0, 10), 10), here,
			tier.LogState{Source: "wal", Layout: tier.LayoutKafka, Incarnation: "BBBB"}},
		{add(0, 1, span(0, 10), 10), nil, tier.LogState{Layout: tier.LayoutPlain}},
	} {
		k := &known{id: orders, union: objstore.Union{Facts: []tier.Fact{c.fact}, Next: 1}}
		scan := tier.Scan{}
		if c.scan != nil {
			scan = *c.scan
		}
		k.derive(1, scan, c.scan != nil)
		got := tier.LogState{Source: k.state.Source, Layout: k.state.Layout,
			Incarnation: k.state.Incarnation}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// TestOfTwoAtOnePositionTheNewerOne: a ledger that was put back writes where the one before it did,
// whose entry may come later still. What was copied last is what local files went for.
func TestOfTwoAtOnePositionTheNewerOne(t *testing.T) {
	t.Parallel()
	late, newer := add(2, 1, span(20, 30), 30), add(2, 9, span(20, 30), 30)
	late.At, newer.At = 100, 200
	for _, facts := range [][]tier.Fact{{late, newer}, {newer, late}} {
		k := &known{id: orders, union: objstore.Union{Facts: facts, Next: 3}}
		k.derive(1, tier.Scan{}, false)
		if len(k.facts) != 1 || k.facts[0].Add.Attempt != newer.Add.Attempt {
			t.Errorf("the ledger gets %+v, want the copy of the attempt %s", k.facts, newer.Add.Attempt)
		}
	}
}
