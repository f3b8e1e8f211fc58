package engine

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/tierd/tierd/runtime/tier"
)

// planMax bounds how many segments of a log are planned.
const planMax = 10_000

// Plan gives what could be asked about for a log, in both tiers, oldest first, whether or not any
// limit is over, up to the first local segment that a plugin keeps. Nothing is emitted.
func (e *Engine) Plan(id tier.LogID) (local Delete, remote Expire, ok bool) {
	l := e.logs[id]
	if l == nil || !l.opened {
		return local, remote, false
	}
	t := e.table(id.Table)
	local = Delete{Log: id, Source: l.source, Action: tier.DeleteLocal, Remote: e.remoteOf(l)}
	for i := range l.local {
		if !l.mayAsk(t, i) || len(local.Segments) == planMax || l.block != nil || l.keeps(i) {
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
		if len(remote.Segments) == planMax || t.state.Leaves() {
			break
		}
		if l.counts(&l.remote[i]) {
			remote.Segments = append(remote.Segments, RemoteCandidate{Remote: l.remote[i],
				Ordinal: int64(len(l.remote) - 1 - i)})
		}
	}
	return local, remote, true
}

// Deletable lists what would be proposed now for the local deletion of a log, up to the brake: with
// what plugins say, or as if there were none. Nothing is emitted.
func (e *Engine) Deletable(id tier.LogID, plugins bool) []DeleteCandidate {
	l := e.logs[id]
	if l == nil || !l.opened || l.block != nil {
		return nil
	}
	list, _, _ := e.deletable(l, e.table(id.Table), plugins)
	return list
}

// KeptByPlugin gives the oldest local segment of a log that might be deleted, but for a plugin that
// keeps it; reason is nil where there is none.
func (e *Engine) KeptByPlugin(id tier.LogID) (r tier.Range, reason *tier.Reason) {
	l := e.logs[id]
	if l == nil || l.advice == nil {
		return r, nil
	}
	t := e.table(id.Table)
	for i := range l.local {
		if !l.mayAsk(t, i) {
			break
		}
		if l.keeps(i) {
			return l.local[i].Range, e.keptReason(l, i)
		}
	}
	return r, nil
}

// Awaited is what of a log's copies goes later: those that have left it, or are about to.
type Awaited struct {
	Action tier.Action
	Extent
	Reason tier.Reason // Until is when it is over; absent where only a change can help
}

// PlanRemove gives the copies of a log that are no longer part of it and whose grace is over now,
// an effect for each action; and what is to go and waits.
func (e *Engine) PlanRemove(id tier.LogID, now tier.Time) (list []Remove, waiting []Awaited) {
	l := e.logs[id]
	if l == nil {
		return nil, nil
	}
	t := e.table(id.Table)
	for _, action := range []tier.Action{tier.DeleteRemote, tier.DisableDelete, tier.DeleteOrphan} {
		f, awaited := e.planRemove(l, t, action, now)
		if len(f.Copies) > 0 {
			list = append(list, f)
		}
		waiting = append(waiting, awaited...)
	}
	return list, waiting
}

func (e *Engine) planRemove(l *logIndex, t *tableIndex, action tier.Action, now tier.Time) (
	f Remove, waiting []Awaited) {
	f = Remove{Log: l.id, Action: action, Remote: l.remoteExtent()}
	var moves, needed, more Extent
	var grace leaving
	for i := range l.remote {
		r := &l.remote[i]
		if l.removal(t, r) != action {
			continue
		}
		switch {
		case t.state.Leaves() && !l.startMovedFor(t):
			moves.add(r.Range, r.Bytes)
		case e.goes(l, t, r) && grace.addAfter(r, e.removeAt(l, t, r), now):
		case e.goes(l, t, r) && len(f.Copies) < planMax:
			f.Copies = append(f.Copies, RemoteCandidate{Remote: *r})
		case e.goes(l, t, r):
			more.add(r.Range, r.Bytes)
		case r.Next <= l.state.LogStart:
			needed.add(r.Range, r.Bytes)
		}
	}
	await := func(x Extent, why tier.Reason) {
		if x.Segments > 0 {
			waiting = append(waiting, Awaited{action, x, why})
		}
	}
	code, text := tier.CodeTierState, "to leave the log, whose start moves first"
	if why := e.finalStopped(t); why != nil {
		code, text = why.Code, text+": "+why.Text
	}
	await(moves, tier.Reason{Code: code, Text: copiesText(moves, text)})
	await(grace.Extent, grace.reason())
	await(needed, tier.Reason{Code: tier.CodePrefixBlocked, Text: copiesText(needed, "out of the "+
		"log, by which files on local disk are shown to be what was copied: the objects go after these")})
	await(more, tier.Reason{Code: tier.CodePrefixBlocked, Text: copiesText(more, "more out of the "+
		"log; not asked about before the others are gone")})
	return f, waiting
}

// removal is by which action the objects of a copy go once it is no part of its log. What a clip
// left nothing of is an orphan: it has no age that a limit could count.
func (l *logIndex) removal(t *tableIndex, r *tier.Remote) tier.Action {
	switch {
	case t.state.Leaves():
		return tier.DisableDelete
	case r.Empty():
		return tier.DeleteOrphan
	}
	return tier.DeleteRemote
}

// AbandonedAttempt is an attempt that was given up, of which something may still be in the store.
type AbandonedAttempt struct {
	Tombstone
	Due tier.Time // when what it may have left is looked for
}

// Abandoned are the attempts of a log whose names are kept, ascending by position.
func (e *Engine) Abandoned(id tier.LogID) []AbandonedAttempt {
	l := e.logs[id]
	if l == nil {
		return nil
	}
	out := make([]AbandonedAttempt, len(l.tombstones))
	for i, t := range l.tombstones {
		out[i] = AbandonedAttempt{t, t.At + e.settings.OrphanAge}
	}
	return out
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

// PlannedCopy is a segment that is being copied or will be.
type PlannedCopy struct {
	Log tier.LogID
	tier.Range
	Bytes   int64
	Written tier.Time // when its file was last written: among equals the oldest goes first
	Copying bool      // it has begun
	Plugins []string  // that said something of it
	Scores  []int64   // one of each plugin
}

// Copies are what is to be copied.
type Copies struct {
	List  []PlannedCopy // in the order in which they begin if nothing changes
	Total Extent        // of all of them, also of those beyond the list
	Held  []HeldCopy    // ascending by log
}

// HeldCopy is the oldest segment of a log that plugins hold back.
type HeldCopy struct {
	Log tier.LogID
	tier.Range
	Reason tier.Reason
}

// PlanCopies gives what is to be copied, the first limit of it as a list. Nothing is emitted.
func (e *Engine) PlanCopies(limit int) Copies {
	var out Copies
	var waiting copyHeap
	for _, l := range e.order {
		if l.block != nil || !e.copying(l.table) {
			continue
		}
		c := copyCursor{e: e, l: l, i: -1}
		for i := range l.local {
			if l.states[i] == copying {
				out.take(c.planned(i), limit)
			}
		}
		if c.advance(&out) {
			waiting = append(waiting, c)
		}
	}
	heap.Init(&waiting)
	for len(waiting) > 0 {
		c := &waiting[0]
		out.take(c.planned(c.i), limit)
		if c.advance(&out) {
			heap.Fix(&waiting, 0)
		} else {
			heap.Pop(&waiting)
		}
	}
	slices.SortFunc(out.Held, func(a, b HeldCopy) int { return a.Log.Compare(b.Log) })
	return out
}

func (c *Copies) take(p PlannedCopy, limit int) {
	c.Total.count(Extent{Segments: 1, Bytes: p.Bytes})
	if len(c.List) < limit {
		c.List = append(c.List, p)
	}
}

// copyCursor is where in a log the plan of its copies is: at a segment that wants copying.
type copyCursor struct {
	e *Engine
	l *logIndex
	i int
}

// advance goes on to the next one; false where there is none, or it is held.
func (c *copyCursor) advance(out *Copies) bool {
	l := c.l
	for c.i++; c.i < len(l.local); c.i++ {
		wants, blocks := l.wantsCopy(c.i)
		if blocks {
			return false
		}
		if !wants {
			continue
		}
		if r := c.e.heldReason(l, c.i); r != nil {
			out.Held = append(out.Held, HeldCopy{l.id, l.local[c.i].Range, *r})
			return false
		}
		return true
	}
	return false
}

func (c *copyCursor) planned(i int) PlannedCopy {
	s := &c.l.local[i]
	p := PlannedCopy{Log: c.l.id, Range: s.Range, Bytes: s.Bytes, Written: s.Log.ModTime,
		Copying: c.l.states[i] == copying}
	if r := c.l.advice.of(s.Base); r != nil {
		p.Plugins, p.Scores = c.l.advice.plugins, r.scores
	}
	return p
}

// copyHeap has the copy that begins first at its root.
type copyHeap []copyCursor

func (h copyHeap) Len() int      { return len(h) }
func (h copyHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h copyHeap) Less(i, j int) bool {
	a, b := &h[i], &h[j]
	return cmp.Or(compareScores(a.l.scores(a.i), b.l.scores(b.i)),
		cmp.Compare(a.l.local[a.i].Log.ModTime, b.l.local[b.i].Log.ModTime),
		a.l.id.Compare(b.l.id)) < 0
}

// Push and Pop implement heap.Interface.
func (h *copyHeap) Push(x any) { *h = append(*h, x.(copyCursor)) }
func (h *copyHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
