package sim

import (
	"fmt"
	"slices"

	"github.com/tierd/tierd/runtime/tier"
)

// What the oracle knows of the leaders of a log. Its lineage is what its owner says that it is now;
// what a new leader cut off is dead, and counts nowhere.

// leads notes the lineage that the owner's log has now, and where it ends.
func (o *Oracle) leads(id tier.LogID, lineage []tier.EpochStart, end tier.Offset) {
	o.changed = true
	l := o.record(id)
	l.lineage, l.end = slices.Clone(lineage), end
}

// replicated notes up to where every replica has the owner's log.
func (o *Oracle) replicated(id tier.LogID, hw tier.Offset) {
	o.changed = true
	l := o.record(id)
	l.replicas, l.hw = true, hw
	l.hwMax = max(l.hwMax, hw)
}

// unreplicated says what is wrong with a segment that the replicas of its log need not have: a new
// leader may cut it off at any time.
func (o *Oracle) unreplicated(s *segmentRecord, l *logRecord) string {
	if l.replicas && s.closed && s.Next > l.hw {
		return fmt.Sprintf("it ends at %d, above the high watermark %d of its log", s.Next, l.hw)
	}
	return ""
}

// above (S2): nothing counts as copied that was never on all replicas.
func (o *Oracle) above(l *ledgerLog) string {
	if r := o.record(l.state.Log); r.replicas && l.state.Copied > r.hwMax {
		return fmt.Sprintf("its high watermark never was above %d", r.hwMax)
	}
	return ""
}

// cuts notes that a new leader cut off everything at or above the offset. It comes before the owner
// writes what is left.
func (o *Oracle) cuts(id tier.LogID, at tier.Offset) {
	o.changed = true
	l := o.record(id)
	l.cutAt = min(l.cutAt, at)
	keep := l.segments[:0:0]
	for _, s := range l.segments {
		if s.closed && s.Next <= at {
			keep = append(keep, s)
			continue
		}
		l.dead = append(l.dead, s)
		if s.Base < at { // it is written anew, and grows again
			keep = append(keep, &segmentRecord{Range: tier.Range{Base: s.Base}, removed: s.removed})
		}
	}
	if n := len(keep); n > 0 {
		keep[n-1].closed = false
	}
	l.segments = keep
}

// Current judges what readers are offered of logs whose leaders changed, once nothing fails any
// more and a Run has come to its end; see Quiet.
func (o *Oracle) Current() {
	ledger, err := o.w.ledgerNow()
	if err != nil {
		return // rest says so
	}
	for _, l := range o.logs {
		if o.frozen(l.id.Table) {
			continue // nobody looks at it
		}
		o.current(l, ledger.log(l.id), ledger.table(l.id.Table))
	}
}

// current (S2): when nothing fails any more, no reader is offered anything of a lineage that the
// log has left: of each copy that counts, every offset that no newer one has is of the leader epoch
// that the owner's log has there. Above its end, and where its owner dropped the segment, there is
// nothing that could show what counts.
func (o *Oracle) current(l *logRecord, known *ledgerLog, t tier.TableState) {
	if known == nil || len(l.lineage) == 0 {
		return
	}
	for i := range known.facts {
		c := known.facts[i].Add
		if c == nil || !known.counts(c, t) {
			continue
		}
		left := tier.RangeSet{}.Add(known.clip(c.Position, c.Content.Range))
		for _, newer := range known.facts[i+1:] {
			if newer.Add != nil && known.counts(newer.Add, t) {
				left = left.Subtract(known.clip(newer.Position, newer.Add.Content.Range))
			}
		}
		for _, r := range left {
			for at := max(r.Base, known.state.LogStart); at < min(r.Next, l.end); at++ {
				was, _ := tier.EpochAt(c.Content.Lineage, at)
				if now, ok := tier.EpochAt(l.lineage, at); ok && now != was && !l.dropped(at) {
					o.violate(CopiedSound, "offset %d of %s is of leader epoch %d, and readers get it of "+
						"%d, from the copy of %s at position %d", at, l.id, now, was, c.Content.Range,
						c.Position)
					return
				}
			}
		}
	}
}

// dropped reports whether the owner removed the segment with the offset. What a leader wrote there
// may have come and gone between two looks at the source.
func (l *logRecord) dropped(at tier.Offset) bool {
	return slices.ContainsFunc(l.segments, func(s *segmentRecord) bool {
		return s.removed && s.closed && s.Contains(at)
	})
}
