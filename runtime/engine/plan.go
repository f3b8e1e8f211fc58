package engine

import (
	"github.com/tierd/tierd/runtime/tier"
)

// planMax bounds how many segments of a log are planned.
const planMax = 10_000

// Plan gives what could be asked about for a log, in both tiers, oldest first, whether or not any
// limit is over. Nothing is emitted.
func (e *Engine) Plan(id tier.LogID) (local Delete, remote Expire, ok bool) {
	l := e.logs[id]
	if l == nil || !l.opened {
		return local, remote, false
	}
	t := e.table(id.Table)
	local = Delete{Log: id, Source: l.source, Action: tier.DeleteLocal, Remote: l.remoteExtent()}
	for i := range l.local {
		if !l.mayAsk(t, i) || len(local.Segments) == planMax || l.block != nil {
			break
		}
		s := l.local[i]
		r, identical, _ := l.copyOf(&s)
		if identical {
			s.Next = r.Next
		}
		local.Segments = append(local.Segments, DeleteCandidate{Segment: s, Copied: identical,
			Position: r.Position, Ordinal: int64(len(l.local) - 1 - i)})
	}
	remote = Expire{Log: id, Source: l.source, Remote: l.remoteExtent()}
	for i := range l.remote {
		if len(remote.Segments) == planMax || l.leaves(t) {
			break
		}
		if l.counts(&l.remote[i]) {
			remote.Segments = append(remote.Segments, RemoteCandidate{Remote: l.remote[i],
				Ordinal: int64(len(l.remote) - 1 - i)})
		}
	}
	return local, remote, true
}

// Leaving sums up the copies of a log that are no longer part of it and wait for their removal.
func (e *Engine) Leaving(id tier.LogID) (x Extent, due tier.Time) {
	l := e.logs[id]
	if l == nil {
		return x, 0
	}
	t := e.table(id.Table)
	for i := range l.remote {
		if r := &l.remote[i]; e.goes(l, t, r) {
			x.add(r.Range, r.Bytes)
			due = max(due, e.removeAt(l, t, r))
		}
	}
	return x, due
}
