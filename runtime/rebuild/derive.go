package rebuild

import (
	"cmp"
	"slices"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/runtime/tier"
)

// LateMax is how many positions are left out: entries of copies that the old ledger had under way
// may still arrive at them.
const LateMax = 64

// known is what is known of one log, and what follows from it. Nothing here reads anything.
type known struct {
	id    tier.LogID
	now   tier.Time
	union objstore.Union
	bad   map[tier.AttemptID]error // adds that do not count, and why

	state tier.LogState
	facts []tier.Fact // that the ledger gets, ascending by position
	moved []tier.Fact // of these, the ones to be said once more
	holes []tier.Fact // that were told of
	used  map[tier.Position]bool
}

// derive makes the state of the log, and chooses the facts. epoch is the highest in a key.
func (k *known) derive(epoch tier.TierEpoch, scan tier.Scan, present bool) {
	s := &k.state
	s.Log, s.Next, s.Epoch = k.id, k.union.Next+LateMax, max(epoch, 1)
	spare := k.choose()
	k.home(scan, present)
	open := k.opened()
	for i := range k.union.Facts {
		s.Epoch = max(s.Epoch, k.union.Facts[i].Epoch)
	}
	k.clips()
	started := k.started()
	if open != nil {
		s.Start = *open.Open
	} else {
		s.Start = k.lowest(started, scan, present)
	}
	s.LogStart = max(s.LogStart, s.Start)
	k.sayAgain(spare)
	k.narrow()
	k.expired()
	k.leave()
	s.Checkpoints = slices.Clone(k.union.Checkpoints)
	for n := len(s.Checkpoints); n > 0 && s.Checkpoints[n-1] == 0; n-- {
		s.Checkpoints = s.Checkpoints[:n-1]
	}
	slices.SortFunc(k.facts, byPosition)
}

// choose takes the facts that count as they stand: of each position one, the newest of its adds, of
// each attempt one, and no add without its objects. Holes come later: a ledger that went back takes
// for one what it has forgotten. What could be said once more is spare.
func (k *known) choose() (spare []tier.Fact) {
	order := slices.Clone(k.union.Facts)
	slices.SortStableFunc(order, func(a, b tier.Fact) int {
		return cmp.Or(byPosition(a, b), cmp.Compare(rank(&a), rank(&b)), cmp.Compare(b.At, a.At))
	})
	taken := map[tier.AttemptID]bool{}
	k.used = map[tier.Position]bool{}
	for _, f := range order {
		switch {
		case f.Add != nil && k.bad[f.Add.Attempt] != nil:
		case f.Hole != nil:
			k.holes = append(k.holes, f)
		case k.used[f.Position]:
			spare = append(spare, f)
		case f.Add != nil && taken[f.Add.Attempt]:
		default:
			if f.Add != nil {
				taken[f.Add.Attempt] = true
			}
			k.used[f.Position] = true
			k.facts = append(k.facts, f)
		}
	}
	for _, f := range k.union.Hidden {
		switch {
		case f.Hole != nil:
			f.Position = k.union.Next // past all: it has to be said once more
			k.holes = append(k.holes, f)
		case f.Add == nil || k.bad[f.Add.Attempt] == nil:
			spare = append(spare, f)
		}
	}
	return slices.DeleteFunc(spare, func(f tier.Fact) bool {
		return f.Add != nil && taken[f.Add.Attempt]
	})
}

// rank orders facts of one position: what later facts depend on first.
func rank(f *tier.Fact) int {
	switch {
	case f.Add != nil:
		return 1
	case f.Hole != nil:
		return 2
	}
	return 0
}

// home says where the log lies and which one it is. A log that no source has keeps the identity
// that its last fact tells; where it comes from is seen when it is there again.
func (k *known) home(scan tier.Scan, present bool) {
	s := &k.state
	told := false
	for _, f := range slices.Backward(k.facts) {
		if f.Incarnation != "" {
			s.Incarnation, told = f.Incarnation, true
			break
		}
	}
	s.Layout = tier.LayoutPlain
	if told {
		s.Layout = tier.LayoutKafka // the one whose logs have one, but for that whose are numbers
		if _, ok := tier.ParseFlussIDs(s.Incarnation); ok {
			s.Layout = tier.LayoutFluss
		}
	}
	if present {
		s.Source, s.Layout = scan.Source, scan.Layout
		if !told {
			s.Incarnation = scan.Incarnation
		}
	}
}

// opened finds the epoch in which nothing older counts.
func (k *known) opened() *tier.Fact {
	var open *tier.Fact
	for i := range k.facts {
		if f := &k.facts[i]; f.Open != nil && (open == nil || f.Epoch >= open.Epoch) {
			open = f
		}
	}
	if open != nil {
		k.state.Fresh = open.Epoch
	}
	return open
}

// clips are those that cut anything: each ends what an older and higher one did.
func (k *known) clips() {
	s := &k.state
	for i := range k.facts {
		f := &k.facts[i]
		if f.Clip == nil || f.Epoch < s.Fresh {
			continue
		}
		s.Clips = slices.DeleteFunc(s.Clips, func(c tier.Clip) bool { return c.Offset >= *f.Clip })
		s.Clips = append(s.Clips, tier.Clip{Position: f.Position, Offset: *f.Clip, At: f.At})
	}
}

// started finds how far the start was moved, and whether it ever was.
func (k *known) started() bool {
	moved := false
	for i := range k.facts {
		if f := &k.facts[i]; f.Start != nil && f.Epoch >= k.state.Fresh {
			k.state.LogStart = max(k.state.LogStart, *f.Start)
			moved = true
		}
	}
	return moved
}

// lowest is where the log began as far as anything tells: with its oldest copy or hole; or where
// its start was moved to; or with the oldest local segment, where nothing ever left the log.
func (k *known) lowest(started bool, scan tier.Scan, present bool) tier.Offset {
	var low []tier.Offset
	for i := range k.union.Facts {
		f := &k.union.Facts[i]
		gone := f.Add != nil && k.bad[f.Add.Attempt] != nil
		switch {
		case f.Epoch < k.state.Fresh:
		case f.Add != nil && (!gone || started && f.Add.Content.Range.Next <= k.state.LogStart):
			low = append(low, f.Add.Content.Range.Base)
		case f.Hole != nil:
			low = append(low, f.Hole.Base)
		}
	}
	if started {
		low = append(low, k.state.LogStart)
	} else if present && len(scan.Segments) > 0 {
		low = append(low, scan.Segments[0].Base)
	}
	if len(low) == 0 {
		return 0
	}
	return slices.Min(low)
}

// expired are the offsets below the log's start that were copied, as the facts of then say; they
// are never copied again, and prove nothing of what is local.
func (k *known) expired() {
	s := &k.state
	var copied tier.Offset
	after := tier.Position(0)
	if n := len(s.Clips); n > 0 {
		after = s.Clips[n-1].Position // nothing older says what was copied above it
	}
	for i := range k.facts {
		f := &k.facts[i]
		if f.Epoch < s.Fresh {
			continue
		}
		if f.Position >= after {
			copied = max(copied, f.Copied)
		}
		if f.Add != nil { // also what was copied out of order, above a gap
			in := tier.Clipped(s.Clips, f.Position, f.Add.Content.Range)
			if !in.Empty() && in.Next <= s.LogStart {
				s.Expired = s.Expired.Add(in)
			}
		}
	}
	s.Expired = s.Expired.Add(tier.Range{Base: s.Start, Next: min(s.LogStart, copied)})
	for i := range k.facts {
		if h := k.facts[i].Hole; h != nil && k.facts[i].Epoch >= s.Fresh {
			s.Expired = s.Expired.Subtract(h.Range)
		}
	}
	if len(s.Expired) == 0 {
		s.Expired = nil
	}
}

// copied are the offsets of the adds that count.
func (k *known) copied() tier.RangeSet {
	var out tier.RangeSet
	for i := range k.facts {
		if f := &k.facts[i]; f.Add != nil && f.Epoch >= k.state.Fresh {
			out = out.Add(tier.Clipped(k.state.Clips, f.Position, f.Add.Content.Range))
		}
	}
	return out
}

// sayAgain gives new positions to spare facts that tell of offsets that no other copy has, or of a
// later start.
func (k *known) sayAgain(spare []tier.Fact) {
	s := &k.state
	var copies begins
	for i := range k.facts {
		if f := &k.facts[i]; f.Add != nil && f.Epoch >= s.Fresh {
			copies.add(tier.Clipped(s.Clips, f.Position, f.Add.Content.Range))
		}
	}
	slices.SortStableFunc(spare, byPosition)
	for _, f := range spare {
		switch {
		case f.Epoch < s.Fresh:
		case f.Start != nil && *f.Start > s.LogStart:
			s.LogStart = *f.Start
			k.move(f)
		case f.Add == nil || copies.have(f.Add.Content.Range) ||
			f.Add.Content.Range.Next <= s.LogStart:
		case tier.Clipped(s.Clips, f.Position, f.Add.Content.Range) == f.Add.Content.Range:
			// Else a clip came after it, which at a new position it would no more.
			copies.add(f.Add.Content.Range)
			k.move(f)
		}
	}
}

// begins are the ranges of copies, ascending by where they begin.
type begins []tier.Range

func (b *begins) at(o tier.Offset) int {
	i, _ := slices.BinarySearchFunc(*b, o, func(r tier.Range, o tier.Offset) int {
		return cmp.Compare(r.Base, o)
	})
	return i
}

func (b *begins) add(r tier.Range) { *b = slices.Insert(*b, b.at(r.Base), r) }

// have reports whether copies that begin in the range have all of it. One that begins lower does
// not count: it ends where the next file began, and that of the range may have been gone by then.
func (b *begins) have(r tier.Range) bool {
	var within tier.RangeSet
	for _, c := range (*b)[b.at(r.Base):] {
		if c.Base >= r.Next {
			break
		}
		within = within.Add(c)
	}
	return within.Covers(r)
}

// move gives the fact the next position.
func (k *known) move(f tier.Fact) {
	s := &k.state
	if f.Add != nil {
		add := *f.Add
		add.Position, f.Add = s.Next, &add
	}
	f.Position = s.Next
	s.Next++
	s.Epoch = max(s.Epoch, f.Epoch)
	k.facts, k.moved = append(k.facts, f), append(k.moved, f)
}

// narrow takes the holes in, without what copies have of them.
func (k *known) narrow() {
	covered := k.copied()
	for _, f := range k.holes {
		if f.Epoch < k.state.Fresh {
			continue
		}
		left := tier.RangeSet{tier.Clipped(k.state.Clips, f.Position, f.Hole.Range)}
		if left[0].Empty() {
			continue
		}
		for _, c := range covered {
			left = left.Subtract(c)
		}
		for _, r := range left {
			part := f
			part.Hole = &tier.Hole{Range: r, Cause: f.Hole.Cause, At: f.Hole.At}
			if f.Position < k.union.Next && !k.used[f.Position] {
				k.used[f.Position] = true
				k.facts = append(k.facts, part)
			} else {
				k.move(part)
			}
			covered = covered.Add(r)
		}
	}
}

// leave gives what has left the log its whole grace once more.
func (k *known) leave() {
	s := &k.state
	out := slices.ContainsFunc(k.facts, func(f tier.Fact) bool {
		return f.Add != nil && f.Epoch >= s.Fresh && f.Add.Content.Range.Next <= s.LogStart
	})
	if out {
		s.Moves = []tier.StartMove{{Start: s.LogStart, At: k.now, Cause: tier.MoveExpired}}
	}
}
