package sim

import (
	"crypto/sha256"
	"math"
	"slices"

	"github.com/tierd/tierd/runtime/tier"
)

// What copies come to by size, in words of the oracle's own: each offset counts once, and has its
// share of the bytes of a copy. Where several copies have it nobody need count the same one of
// them, so that a size is known as the most that it may be, and the least.

// sized is a copy that is part of its log, and what of it no clip has cut off.
type sized struct {
	*tier.Copy
	left tier.Range
}

// bytesOf are those of all files of the copy.
func bytesOf(c *tier.Copy) (sum int64) {
	for _, f := range c.Content.Files {
		sum += f.Size
	}
	return sum
}

// inLog are the copies that are part of the log where it begins at from, whatever it begins at now.
func (l *ledgerLog) inLog(from tier.Offset) (out []sized) {
	for i := range l.facts {
		c := l.facts[i].Add
		if c == nil || c.Epoch < l.state.Fresh {
			continue
		}
		if left := l.clip(l.facts[i].Position, c.Content.Range); !left.Empty() && left.Next > from {
			out = append(out, sized{c, left})
		}
	}
	return out
}

// sizeOf is what the copies come to at or above an offset.
func sizeOf(copies []sized, from tier.Offset) (least, most int64) {
	var ends []tier.Offset
	for _, c := range copies {
		ends = append(ends, max(c.left.Base, from), max(c.left.Next, from))
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	for i := 1; i < len(ends); i++ {
		low, high := math.Inf(1), 0.0
		for _, c := range copies {
			if c.left.Base <= ends[i-1] && ends[i] <= c.left.Next {
				r := c.Content.Range
				share := float64(bytesOf(c.Copy)) * float64(ends[i]-ends[i-1]) / float64(r.Next-r.Base)
				low, high = min(low, share), max(high, share)
			}
		}
		if high > 0 {
			least, most = least+int64(low), most+int64(math.Ceil(high))
		}
	}
	return least, most
}

// fills reports whether what the log has in the store behind an offset may fill the limit of bytes:
// then what lies below may go.
func (l *ledgerLog) fills(limit tier.Limit, behind tier.Offset) bool {
	_, most := sizeOf(l.inLog(behind), behind)
	return limit.Set && most >= limit.Value
}

// writtenAt is when the records of a copy were first written; ok is false where its owner never
// wrote them like that.
func (o *Oracle) writtenAt(id tier.LogID, c *tier.Copy) (at tier.Time, ok bool) {
	l := o.record(id)
	for _, s := range slices.Concat(l.segments, l.dead) {
		if s.Base != c.Content.Range.Base {
			continue
		}
		for _, f := range s.files {
			for _, v := range f.versions {
				same := f.records && sha256.Sum256(v.data) == c.Content.Files[0].SHA256
				if same && (!ok || v.at < at) {
					at, ok = v.at, true
				}
			}
		}
	}
	return at, ok
}
