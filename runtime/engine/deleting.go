package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tierd/tierd/runtime/planted"
	"github.com/tierd/tierd/runtime/tier"
)

// considerDelete finds out whether the oldest local segment is worth asking the gate about now, and
// otherwise when.
func (e *Engine) considerDelete(l *logIndex) {
	t := l.table
	if l.deleting || len(l.local) == 0 || !l.mayAsk(t, 0) || t.draining {
		return
	}
	if e.deletionStopped(l, t) != nil || e.retryLater(l) {
		return
	}
	if l.kept != nil && l.kept.Segment == l.local[0] {
		if e.now < l.kept.askAt {
			l.wake(l.kept.askAt)
			return
		}
		l.kept = nil
	}
	at := e.worthAsking(l, t, 0, l.localBytes)
	if at > e.now {
		if at != never {
			l.wake(at)
		}
		return
	}
	if !e.consult(l, 0) || l.keeps(0) {
		return
	}
	l.wantSince = at
	e.want(t, l)
}

// mayAsk reports whether local segment i is one that may be deleted at all: closed, and copied if
// the table tiers.
func (l *logIndex) mayAsk(t *tableIndex, i int) bool {
	without := planted.Is(planted.TTLWithoutProof) || l.inHole(i)
	return l.local[i].Closed() && (l.states[i] == copied || t.state.State != tier.Enabled ||
		without) && l.states[i] != quarantined
}

// inHole reports whether the segment lies in a hole, where that is taken for proof by mistake.
func (l *logIndex) inHole(i int) bool {
	return planted.Is(planted.HoleIsProof) && slices.ContainsFunc(l.state.Holes,
		func(h tier.Hole) bool { return h.Range.Covers(l.local[i].Range) })
}

// deletionStopped says why no deletion of the log is even proposed, if so.
func (e *Engine) deletionStopped(l *logIndex, t *tableIndex) *tier.Reason {
	switch way := e.localDelete(l.source); {
	case e.paused != nil:
		return e.paused
	case t.state.Paused != nil:
		return t.state.Paused
	case t.state.State != tier.Enabled && e.finalStopped(t) != nil:
		return e.finalStopped(t) // no copy is left of what goes
	case way == tier.LocalDeleteNever:
		return &tier.Reason{Code: tier.CodeLocalDelete,
			Text: fmt.Sprintf("local_delete of the source %q is %s", l.source, way)}
	case !l.whole:
		return &tier.Reason{Code: tier.CodeSourceUnread,
			Text: "not everything of the log could be read"}
	}
	return nil
}

func (e *Engine) localDelete(source string) tier.LocalDelete {
	if e.settings.LocalDelete == nil {
		return tier.LocalDeleteNever
	}
	return e.settings.LocalDelete(source)
}

// worthAsking is the earliest time at which some limit lets segment i go; never if none does. It
// mirrors the built-in policy, which decides. Where a policy may ask for more, asking is always
// worth it.
func (e *Engine) worthAsking(l *logIndex, t *tableIndex, i int, bytesFrom int64) tier.Time {
	if e.settings.ExpireRule {
		return e.now
	}
	return e.limitOver(l, t, i, bytesFrom)
}

// limitOver is the earliest time at which a limit of the table lets segment i go, whatever policies
// ask for.
func (e *Engine) limitOver(l *logIndex, t *tableIndex, i int, bytesFrom int64) tier.Time {
	cfg, _ := e.config(t)
	if t.state.State != tier.Enabled {
		if cfg.Bytes.Set && bytesFrom-cfg.Bytes.Value >= l.local[i].Bytes {
			return e.now
		}
		if cfg.TTL == 0 {
			return never
		}
		return e.birth(l, i).Add(cfg.TTL) + 1
	}
	if cfg.LocalSegments.Set && int64(len(l.local)-i) > cfg.LocalSegments.Value {
		return e.now
	}
	if cfg.LocalBytes.Set && bytesFrom-cfg.LocalBytes.Value >= l.local[i].Bytes {
		return e.now
	}
	if cfg.LocalTTL == 0 {
		return never
	}
	return e.birth(l, i).Add(cfg.LocalTTL) + 1 // the limit is strict
}

// birth is the time from which a segment's age counts: its largest record timestamp where that is
// usable, else the mtime of its log file. Of a copied segment both are those of the copy, which the
// gate goes by: a file that was only touched is as old as it was.
func (e *Engine) birth(l *logIndex, i int) tier.Time {
	s := &l.local[i]
	maxTime, modTime := s.MaxTime, s.Log.ModTime
	if planted.Is(planted.NothingIsZero) && maxTime == 0 {
		return maxTime
	}
	if r, identical, _ := l.copyOf(s); identical {
		maxTime, modTime = r.MaxTime, r.ModTime
	}
	if maxTime > 0 && maxTime <= e.now+e.settings.Tolerance {
		return maxTime
	}
	return modTime
}

// startDelete proposes the longest prefix that is worth asking about, up to the brake.
func (e *Engine) startDelete(l *logIndex) {
	t := l.table
	list, after, braked := e.deletable(l, t, true)
	if len(list) == 0 {
		e.brake(l, t, braked, after)
		return
	}
	l.deleting, t.deleting = true, true
	e.deletes++
	e.emit(Delete{ID: e.id(), Log: l.id, Source: l.source, Action: tier.DeleteLocal,
		Segments: list, Remote: e.remoteOf(l)})
	e.evaluate(l)
}

// deletable lists the oldest segments that are worth asking about, up to the brake, and what the
// brake counts with them; braked is set where it ended the list. Plugins, which do not count where
// plugins is false, only make it shorter.
func (e *Engine) deletable(l *logIndex, t *tableIndex, plugins bool) (list []DeleteCandidate,
	after tier.BrakeWindow, braked bool) {
	brake := e.settings.Brake
	after = t.state.Window.At(e.now, brake.Per)
	bytes := l.localBytes
	for i := range l.local {
		s := l.local[i]
		if planted.Is(planted.PrefixIgnored) && i == 0 && len(l.local) > 2 {
			continue
		}
		r, identical, _ := l.copyOf(&s)
		waits := !l.mayAsk(t, i) ||
			!identical && t.state.State == tier.Enabled && l.states[i] == copied ||
			e.worthAsking(l, t, i, bytes) > e.now ||
			plugins && (!e.asked(l, i) || l.keeps(i))
		if planted.Is(planted.KeepIsLeave) && plugins && l.keeps(i) {
			waits = !s.Closed()
		}
		if len(list) == deleteBatchMax || waits {
			break
		}
		after = after.Plus(1, s.Bytes)
		if braked = brake.Exceeded(after); braked {
			break
		}
		bytes -= s.Bytes
		if identical {
			s.Next = r.Next // what was copied; a gap behind it belongs to nobody
		}
		list = append(list, DeleteCandidate{Segment: s, Copied: identical, Position: r.Position,
			Ordinal: int64(len(l.local) - 1 - i)})
	}
	return list, after, braked
}

// brake pauses the table, durably, where the next deletion would pass its limit.
func (e *Engine) brake(l *logIndex, t *tableIndex, braked bool, after tier.BrakeWindow) {
	e.unwant(l)
	if !braked {
		return
	}
	b := e.settings.Brake
	t.pausing = true
	e.emit(Pause{ID: e.id(), Table: t.name, Reason: tier.Reason{Code: tier.CodeBrake,
		Text: fmt.Sprintf("the next deletion would be number %d (%s in all) within %s; the limit is %d "+
			"(%s): look into it, then run: tierd resume %s", after.Segments,
			tier.Count(after.Bytes, "byte"), b.Per, b.MaxSegments, tier.Bytes(b.MaxBytes), t.name)}})
}

// want queues a log whose oldest segment may go; unwant takes it out.
func (e *Engine) want(t *tableIndex, l *logIndex) {
	t.want.fix(l)
	if i, found := e.findWanting(t); !found {
		e.wanting = slices.Insert(e.wanting, i, t)
	}
}

func (e *Engine) unwant(l *logIndex) {
	t := l.table
	t.want.remove(l)
	if t.want.len() > 0 {
		return
	}
	if i, found := e.findWanting(t); found {
		e.wanting = slices.Delete(e.wanting, i, i+1)
	}
}

// findWanting returns where the table is among those that want to delete, or would be.
func (e *Engine) findWanting(t *tableIndex) (i int, found bool) {
	return slices.BinarySearchFunc(e.wanting, t.name, func(t *tableIndex, name string) int {
		return cmp.Compare(t.name, name)
	})
}

// deleteFinished takes out what went, and remembers why the next one stayed.
func (e *Engine) deleteFinished(l *logIndex, res Result) {
	t := l.table
	l.deleting, t.deleting = false, false
	e.deletes--
	switch res := res.(type) {
	case Deleted:
		l.succeeded(failure{effect: "delete"})
		l.went(res)
		l.state.Emptied = len(res.Gone) > 0 && len(l.local) == 0
		t.state.Window = res.Window
		if res.Kept != nil {
			e.keep(l, *res.Kept)
		}
	case Failed:
		e.failed(l, failure{effect: "delete"}, res)
	}
	l.outdated = false
}

// went takes over what of the log is gone, and what became of its start.
func (l *logIndex) went(res Deleted) {
	l.state.LogStart = max(l.state.LogStart, res.LogStart)
	l.state.Next = max(l.state.Next, res.Next)
	l.lacks(res.Unpublished) // of a start that moved for the deletion
	l.drop(res.Gone)
}

// late takes over what a deletion came to that was given up. Its log may be gone from the source by
// its hand, and the start of the log may have to be said in the manifest.
func (e *Engine) late(ev Late) {
	f, ok := ev.Effect.(Delete)
	res, deleted := ev.Result.(Deleted)
	if !ok || !deleted {
		return
	}
	l := e.log(f.Log)
	if len(res.Gone) > 0 {
		l.succeeded(failure{effect: "delete"}) // after all
	}
	l.went(res)
	l.state.Emptied = l.state.Emptied || len(res.Gone) > 0 && len(l.local) == 0
	if w := &l.table.state.Window; res.Window.Since >= w.Since && res.Window.Segments > w.Segments {
		*w = res.Window
	}
	e.evaluate(l)
}

func (l *logIndex) drop(gone []tier.LocalSegment) {
	for _, g := range gone {
		i := l.at(g.Base)
		if i < 0 || l.local[i].Log != g.Log {
			continue
		}
		l.localBytes -= l.local[i].Bytes
		if i < l.cursor {
			l.cursor--
		}
		if i < l.growing {
			l.growing--
		}
		if i == 0 { // as it always is: nothing has to move up, however long the log
			l.local, l.states = l.local[1:], l.states[1:]
		} else {
			l.local = slices.Delete(l.local, i, i+1)
			l.states = slices.Delete(l.states, i, i+1)
		}
		for l.growing < len(l.local) && l.local[l.growing].Closed() {
			l.unread = min(l.unread, l.local[l.growing].Base)
			l.growing++ // one that counted as growing by then is gone
		}
	}
}

// keep remembers the gate's answer. What it found out about the copy counts at once: a changed file
// or a lost object is copied again.
func (e *Engine) keep(l *logIndex, k Kept) {
	i := l.at(k.Segment.Base)
	if i < 0 || l.local[i].Log != k.Segment.Log {
		return // it is another file by now
	}
	k.Segment = l.local[i]
	l.kept = &keptSegment{Kept: k, askAt: e.askAt(k.Due)}
	if l.outdated {
		l.kept = nil
	}
	for _, r := range k.Reasons {
		switch r.Code {
		case tier.CodeChanged:
			l.states[i] = changed
		case tier.CodeStoreLost:
			l.states[i] = lost
		}
	}
	l.cursor = min(l.cursor, i)
}
