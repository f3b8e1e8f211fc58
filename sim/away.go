package sim

import (
	"slices"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/runtime/tier"
)

// Offsets that are in neither tier are a loss, but for those that went away as they should: over
// which the start of their log moved, or whose copy was removed when it was part of the log no more
// and nothing of it was on disk. Each was judged when it happened. It holds for what was there
// then: what is written again, or is on disk when a new tier epoch begins its log anew, is to be
// kept like anything else.

// goAway notes that offsets may be in neither tier from now on.
func (o *Oracle) goAway(id tier.LogID, r tier.Range) { o.away[id] = o.away[id].Add(r) }

// comeBack notes that offsets are to be kept again.
func (o *Oracle) comeBack(id tier.LogID, r tier.Range) { o.away[id] = o.away[id].Subtract(r) }

// wentAway reports whether all of the segment went away, and did not come back.
func (o *Oracle) wentAway(id tier.LogID, s *segmentRecord) bool {
	return s.closed && o.away[id].Covers(s.Range)
}

// local are the closed segments of the log whose records are on disk.
func (o *Oracle) local(id tier.LogID) (out []*segmentRecord) {
	files := o.w.files(id)
	for _, s := range o.record(id).segments {
		if s.closed && slices.ContainsFunc(files, func(x file) bool {
			return x.records && x.base == s.Base && x.place != dead
		}) {
			out = append(out, s)
		}
	}
	return out
}

// renew is for a log that a new tier epoch begins anew: all that is on disk is part of it again.
func (o *Oracle) renew(id tier.LogID) {
	for _, s := range o.local(id) {
		o.comeBack(id, s.Range)
	}
}

// leftBehind is for a log that a new tier epoch begins anew after the policy delete: what copies of
// the epochs before alone had is part of it no more, whether they are removed yet or not.
func (o *Oracle) leftBehind(l *ledgerLog, t tier.TableState) {
	for i := range l.facts {
		if f := &l.facts[i]; f.Add != nil && f.Epoch < l.state.Fresh {
			o.removedCopy(l, f, t)
		}
	}
}

// removedCopy notes what goes away with a copy that is being removed: what neither disk nor another
// copy that counts has. A plain file whose end nothing told may lie over the offsets of others, and
// has none of their bytes.
func (o *Oracle) removedCopy(l *ledgerLog, f *tier.Fact, t tier.TableState) {
	id := l.state.Log
	if l.counts(f.Add, t) {
		return // a crime, and judged as one
	}
	base := f.Add.Content.Range.Base
	keeps := func(other tier.Offset) bool {
		return o.w.Config.Layout == tier.LayoutKafka || other == base
	}
	gone := tier.RangeSet{}.Add(l.clip(f.Position, f.Add.Content.Range))
	for _, s := range o.local(id) {
		if keeps(s.Base) {
			gone = gone.Subtract(s.Range)
		}
	}
	for _, other := range l.facts {
		if other.Add != nil && l.counts(other.Add, t) && keeps(other.Add.Content.Range.Base) {
			r := l.clip(other.Position, other.Add.Content.Range)
			r.Base = min(max(r.Base, l.state.LogStart), r.Next) // what is below is nobody's any more
			gone = gone.Subtract(r)
		}
	}
	for _, r := range gone {
		o.goAway(id, r)
	}
}

// wentUntiered reports whether the segment was deleted while its table did not tier, and was not
// written again since.
func (o *Oracle) wentUntiered(id tier.LogID, base tier.Offset) bool {
	return slices.ContainsFunc(o.deletions, func(d deletion) bool {
		return d.untiered && !d.renewed && d.log == id && d.base == base
	})
}

// lostSome reports whether the store lost some object of the log by itself.
func (o *Oracle) lostSome(id tier.LogID) bool {
	return o.lostOf(id, func(objstore.Key) bool { return true })
}

// lostSegment reports whether the store lost some object by itself by which the segment was kept: a
// file of it, or something of the manifest.
func (o *Oracle) lostSegment(id tier.LogID, base tier.Offset) bool {
	return o.lostOf(id, func(k objstore.Key) bool {
		return k.Kind != objstore.KeyFile || k.Base == base
	}) || slices.ContainsFunc(o.unsaid, func(u unsaid) bool { return u.Log == id && u.base == base })
}

func (o *Oracle) lostOf(id tier.LogID, fits func(objstore.Key) bool) bool {
	return slices.ContainsFunc(o.lostKeys, func(k objstore.Key) bool {
		return k.Log == id && fits(k)
	})
}
