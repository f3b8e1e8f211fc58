package engine

import (
	"slices"
	"sort"

	"github.com/tierd/tierd/runtime/tier"
)

// considerCopy queues the log if its oldest uncopied segment can be copied now.
func (e *Engine) considerCopy(l *logIndex) {
	t := l.table
	if t.state.State != tier.Enabled || t.draining || l.state.Epoch != t.state.Epoch ||
		len(l.attempts) > 0 || e.retryLater(l) {
		return
	}
	i := l.nextCopy()
	if i < 0 {
		i = e.expiredAgain(l, t)
	}
	if i < 0 || l.expiring && l.local[i].Base < l.expireEnd || !e.consult(l, i) {
		return
	}
	if until := e.heldUntil(l, i); until != 0 {
		l.wake(until)
		return
	}
	l.oldest, l.rank = l.local[i].Log.ModTime, l.scores(i)
	e.ready.fix(l)
}

// expiredAgain is for a file whose copy expired and was removed before the file went, as one that
// came back from elsewhere. Nothing is left in the store that it could be compared with. When its
// time comes it is copied once more: then it is proved, and goes like any other. The result is its
// index, or -1 while there is no such file or its time has not come.
func (e *Engine) expiredAgain(l *logIndex, t *tableIndex) int {
	if len(l.local) == 0 || l.states[0] != expired || !l.local[0].Closed() ||
		e.localDelete(l.source) != tier.LocalDeleteUnlink {
		return -1
	}
	if at := e.worthAsking(l, t, 0, l.localBytes); at > e.now {
		if at != never {
			l.wake(at)
		}
		return -1
	}
	l.states[0], l.cursor = uncopied, 0
	return 0
}

// nextCopy is the oldest segment that wants copying; -1 if there is none. A damaged segment blocks
// those behind it, so that no copy ever jumps over damage unseen.
func (l *logIndex) nextCopy() int {
	for l.cursor < len(l.local) && l.states[l.cursor] == copied {
		l.cursor++
	}
	for i := l.cursor; i < len(l.local); i++ {
		if wants, blocks := l.wantsCopy(i); wants {
			return i
		} else if blocks {
			return -1
		}
	}
	return -1
}

// wantsCopy reports whether local segment i wants copying now, and else whether nothing behind it
// may be copied before it.
func (l *logIndex) wantsCopy(i int) (wants, blocks bool) {
	s := &l.local[i]
	switch l.states[i] {
	case copied, copying, accepted, expired:
		return false, false
	case quarantined: // what was copied once blocks nothing: nothing is missed without it
		return false, !l.state.Expired.Covers(s.Range)
	}
	if !s.Closed() {
		return false, true
	}
	return !l.needless(s), false
}

// needless reports whether a copy of the segment would be removed at once, and nothing else needs
// it as a proof.
func (l *logIndex) needless(s *tier.LocalSegment) bool {
	return l.stays && s.Next <= l.state.LogStart
}

func (e *Engine) startCopy(l *logIndex) {
	i := l.nextCopy()
	s := l.local[i]
	known, _, found := l.copyOf(&s)
	f := Copy{
		ID: e.id(), Log: l.id, Source: l.source, Segment: s,
		Epoch: l.table.state.Epoch,
		Known: known.Position, HasKnown: found && l.states[i] == changed && !known.Clipped,
		Over: l.over(&s),
	}
	l.states[i] = copying
	l.copies++
	l.underWay = append(l.underWay, underWay{f.ID, f.Segment.Base, l.state.Next})
	e.copies++
	e.emit(f)
	e.evaluate(l)
}

// underWay is a copy in flight.
type underWay struct {
	id    EffectID
	base  tier.Offset   // of the segment
	floor tier.Position // the lowest that it may have been given
}

// settled is the position below which no copy under way can have an entry: every position below it
// is finished, abandoned or published.
func (l *logIndex) settled() tier.Position {
	low := l.state.Next
	for _, c := range l.underWay {
		low = min(low, c.floor)
	}
	for _, a := range l.attempts {
		low = min(low, a.Position)
	}
	for _, p := range l.state.Unpublished {
		low = min(low, p)
	}
	return low
}

// maintain resolves what is unknown, publishes what a crash kept out of the manifest, writes
// checkpoints, and records offsets that the source no longer has.
func (e *Engine) maintain(l *logIndex) {
	if e.retryLater(l) {
		return
	}
	e.resolveNext(l)
	e.publish(l)
	if level, block, ok := l.checkpointDue(); ok && !l.checking {
		l.checking = true
		e.emit(Checkpoint{ID: e.id(), Log: l.id, Level: level, Block: block})
	}
	t := l.table
	tiers := t.state.State == tier.Enabled && l.state.Epoch == t.state.Epoch
	if f := l.holeUnknown; f != nil && !l.holing {
		// It may be recorded, and what was copied since may have made the offsets seem passed.
		l.holing = true
		again := *f
		again.ID = e.id()
		e.emit(again)
	} else if r := l.missing(); tiers && !r.Empty() && !l.holing {
		l.holing = true
		f := RecordHole{ID: e.id(), Log: l.id, Source: l.source, Range: r,
			Cause: tier.HoleSourceGone}
		if l.reopened {
			f.Cause = tier.HoleDisabled
		}
		for i := range l.local {
			if l.local[i].Next <= r.Base {
				f.Before = l.local[i]
			}
		}
		e.emit(f)
	}
}

// resolveNext has the outcome of the oldest attempt found out that is not known. Where nothing is
// decided about the log's source the store alone can tell; before the first look nobody knows.
func (e *Engine) resolveNext(l *logIndex) {
	if len(l.attempts) == 0 || l.resolving || e.unseen(l) {
		return
	}
	l.resolving = true
	e.copies++
	f := Resolve{ID: e.id(), Log: l.id, Attempt: l.attempts[0]}
	if l.block == nil {
		f.Source = l.source
	}
	e.emit(f)
}

// copiesIn reports whether a copy that begins in the range is under way, or may turn out to have
// ended, and where such a one begins. The source does not matter here: the copy is in the store.
func (l *logIndex) copiesIn(r tier.Range) (at tier.Offset, found bool) {
	for _, a := range l.attempts {
		if r.Contains(a.Range.Base) {
			return a.Range.Base, true
		}
	}
	for _, c := range l.underWay {
		if r.Contains(c.base) {
			return c.base, true
		}
	}
	return 0, false
}

// publish says in the manifest what is durable and was not said there yet. That is also due where
// the source is gone: nothing that left the log is removed before.
func (e *Engine) publish(l *logIndex) {
	if len(l.state.Unpublished) > 0 && !l.publishing && !e.retryLater(l) {
		l.publishing = true
		e.emit(Publish{ID: e.id(), Log: l.id, Position: l.state.Unpublished[0]})
	}
}

// checkpointDue finds the next block of the lowest level that is complete.
func (l *logIndex) checkpointDue() (level uint8, block uint64, ok bool) {
	below := uint64(l.settled())
	for i := range tier.CheckpointLevelMax {
		var done uint64
		if i < len(l.state.Checkpoints) {
			done = l.state.Checkpoints[i]
		}
		if below < (done+1)*tier.CheckpointRadix {
			if done == 0 {
				return 0, 0, false
			}
			below = done
			continue
		}
		return uint8(i + 1), done, true
	}
	return 0, 0, false
}

// missing is the range just above the copied offset that neither the source nor the store has. It
// is looked for only when everything of the log could be read and no copy is under way.
func (l *logIndex) missing() tier.Range {
	from := l.state.Copied
	if !l.whole || l.copies > 0 || len(l.attempts) > 0 || len(l.local) == 0 {
		return tier.Range{}
	}
	to := tier.Offset(-1)
	// The first that ends above it; an active segment that is still empty can only begin there.
	i := sort.Search(len(l.local), func(i int) bool {
		return l.local[i].Next > from || l.local[i].Base >= from
	})
	if i < len(l.local) {
		to = l.local[i].Base
		if to <= from {
			return tier.Range{}
		}
	}
	for i := range l.remote {
		if r := &l.remote[i]; r.Next > from && !l.past(r) {
			if to < 0 || r.Base < to {
				to = r.Base
			}
			break
		}
	}
	for _, r := range l.state.Expired { // what was copied out of order, and expired, is no hole
		if r.Next > from && (to < 0 || r.Base < to) {
			to = r.Base
		}
	}
	for _, h := range l.state.Holes { // recorded out of order, as a rebuild finds them
		if h.Range.Next > from && (to < 0 || h.Range.Base < to) {
			to = h.Range.Base
		}
	}
	if to <= from {
		return tier.Range{}
	}
	return tier.Range{Base: from, Next: to}
}

// copyFinished takes over the result of a Copy or a Resolve.
func (e *Engine) copyFinished(l *logIndex, id EffectID, base tier.Offset, res Result) {
	what := failure{"copy", base}
	e.copies--
	l.underWay = slices.DeleteFunc(l.underWay, func(c underWay) bool { return c.id == id })
	switch res := res.(type) {
	case Copied:
		l.succeeded(what)
		l.addRemote(res.Remote)
		l.unquarantine(base) // it was read, and is sound
		l.state.Copied = max(l.state.Copied, res.Offset)
		l.state.Next = max(l.state.Next, res.Next)
		l.kept, l.reopened = nil, false
		l.suspect(res.Remote)
	case Abandoned:
		l.state.Next = max(l.state.Next, res.Next)
		if res.Tombstone != nil {
			l.tombstones = append(l.tombstones, *res.Tombstone)
		}
	case Disputed:
		l.succeeded(what)
		d := &dispute{at: res.At, segment: res.Segment, read: true}
		if l.disputed != nil {
			d.at = min(d.at, l.disputed.at) // what was in doubt before still is
		}
		l.disputed = d
	case LossKnown:
		l.succeeded(what)
		l.giveUp(res.Segment)
	case Failed:
		e.failed(l, what, res)
	}
}

// settle gives the segment of a finished copy its new state: whatever ledger and quarantine say.
func (l *logIndex) settle(base tier.Offset) {
	i := l.at(base)
	if i < 0 {
		return
	}
	s := &l.local[i]
	r, identical, found := l.copyOf(s)
	switch {
	case !found && l.state.Expired.Covers(s.Range):
		l.states[i] = l.damageOf(s, expired)
	case identical:
		// What followed it may have gone since: the segment ends where its copy does.
		l.states[i], s.Next = copied, r.Next
		if l.bad(r.Position) {
			l.states[i] = lost
		}
		// It is copied anew where its copy is lost, and may be damaged itself by then, or have the
		// bytes that were given up.
		l.states[i] = l.damageOf(s, l.states[i])
	case found:
		l.states[i] = l.damageOf(s, changed)
	default:
		l.states[i] = l.damageOf(s, uncopied)
	}
	l.cursor = min(l.cursor, i)
}

// failed remembers a failure and when to try again. Damage is quarantined; something that went away
// is a normal race and is seen at the next scan.
func (e *Engine) failed(l *logIndex, what failure, f Failed) {
	if f.Attempt != nil {
		if !slices.ContainsFunc(l.attempts, func(a tier.Attempt) bool { return a.ID == f.Attempt.ID }) {
			l.attempts = append(l.attempts, *f.Attempt)
		}
		l.state.Next = max(l.state.Next, f.Attempt.Position+1)
	}
	if f.Quarantine {
		if l.has(f.Segment) {
			l.unquarantine(f.Segment.Base)
			l.quarantine = append(l.quarantine, quarantine{segment: f.Segment, reason: f.Reason})
		}
		return
	}
	l.failures++
	l.failure, l.failedAt = &f.Reason, what
	l.retryAt = e.now + e.settings.Backoff.delay(l.id, l.failures)
}

// succeeded ends the backoff if it is this that had failed: a segment that keeps failing must not
// be tried again at once because its neighbour went well.
func (l *logIndex) succeeded(what failure) {
	if l.failedAt == what {
		l.forget()
	}
}

func (l *logIndex) forget() { l.failures, l.failure, l.retryAt, l.failedAt = 0, nil, 0, failure{} }

// delay doubles from Min to Max with the number of failures, less up to a quarter, which depends on
// the log alone: logs that failed together do not come back together, and a replay gives the same.
func (b Backoff) delay(id tier.LogID, failures int) tier.Time {
	d := b.Min
	for i := 1; i < failures && d < b.Max; i++ {
		d *= 2
	}
	d = max(min(d, b.Max), 1)
	h := uint32(2166136261) // FNV-1a, 32 bit
	for _, c := range []byte(id.String()) {
		h = (h ^ uint32(c)) * 16777619
	}
	return d - d/4*tier.Time(h%1024)/1024
}
