package engine

import (
	"sort"

	"github.com/tierd/tierd/runtime/tier"
)

// Readable returns what the last look at the log's source showed; false for a log never heard of.
func (e *Engine) Readable(id tier.LogID) (tier.LocalLog, bool) {
	l := e.logs[id]
	if l == nil {
		return tier.LocalLog{}, false
	}
	s := e.source(l.source)
	return tier.LocalLog{Source: l.source, Layout: l.layout, Incarnation: l.incarnation,
		Usable: l.present && l.double == nil && s.trouble == nil &&
			(!l.opened || l.incarnation == l.state.Incarnation),
		Away:        l.source != "" && (s.trouble != nil || !s.scanned && !l.present),
		SourceStart: l.sourceStart, HighWatermark: l.hw, HasHighWatermark: l.hasHW,
		LocalEnd: l.localEnd, Lineage: l.lineage}, true
}

// Away reports whether nobody knows what the source has: it cannot be read now, or was not yet.
func (e *Engine) Away(source string) bool {
	s := e.source(source)
	return s.trouble != nil || !s.scanned
}

// LocalFrom returns the first local segment of the log that ends above the offset; false if there
// is none.
func (e *Engine) LocalFrom(id tier.LogID, o tier.Offset) (tier.LocalSegment, bool) {
	l := e.logs[id]
	if l == nil || len(l.local) == 0 {
		return tier.LocalSegment{}, false
	}
	last := len(l.local) - 1
	i := sort.Search(last, func(i int) bool { return l.local[i].Next > o })
	s := l.local[i]
	if i == last && !s.Closed() {
		s.Next = max(s.Next, l.localEnd) // where a scan does not give it an end of its own
	}
	return s, s.Next > o
}
