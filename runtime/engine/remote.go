package engine

import (
	"cmp"
	"slices"

	"github.com/tierd/tierd/runtime/tier"
)

// What happens to a remote segment at the end of its life:
//
//	in the log --Expire or MoveStart--> below the start --grace--> Remove --> gone
//
// The start moves first, durably, in ledger and manifest; readers that are under way have the grace
// to finish; only then do the objects go, each on a permit of its own.

// counts reports whether the copy is part of the log: of an epoch that counts, at or above the log
// start, and not cut off by a clip.
func (l *logIndex) counts(r *tier.Remote) bool {
	return !l.past(r) && r.Next > l.state.LogStart
}

// considerRemote finds out what is worth doing with the log's remote segments.
func (e *Engine) considerRemote(l *logIndex, looked bool) {
	t := l.table
	if e.finalStopped(t) != nil || e.retryLater(l) {
		return
	}
	e.considerMove(l, t)
	e.considerExpire(l, t, looked)
	e.considerRemove(l, t)
	e.considerClear(l)
}

// finalStopped says why nothing that leaves no copy is proposed, if so.
func (e *Engine) finalStopped(t *tableIndex) *tier.Reason {
	switch {
	case e.paused != nil:
		return e.paused
	case e.clock != nil:
		return e.clock
	case e.stale != nil:
		return e.stale
	case t.state.Paused != nil:
		return t.state.Paused
	}
	return nil
}

// considerMove takes all remote data out of the log of a table that is disabled with the policy
// delete. Where the log begins then was looked at after the table became DISABLING.
func (e *Engine) considerMove(l *logIndex, t *tableIndex) {
	dropped := t.state.Dropped != 0
	if l.moving || l.expiring || !t.state.Leaves() || l.startMovedFor(t) || l.deleting ||
		l.stale && !dropped {
		return
	}
	l.moving = true
	start := l.state.Copied
	for i := range l.remote {
		start = max(start, l.remote[i].Next)
	}
	f := MoveStart{ID: e.id(), Log: l.id, Source: l.source, Cause: tier.MoveDisabled}
	if dropped {
		f.Cause = tier.MoveDropped // nothing of the log is left to be read, whatever is local
	} else if len(l.local) > 0 {
		start = l.local[0].Base
	}
	f.Start = max(start, l.state.LogStart)
	for i := range l.remote {
		if r := l.remote[i].Range; l.remote[i].Epoch >= l.state.Fresh && r.Next <= f.Start {
			f.Expired = f.Expired.Add(r)
		}
	}
	e.emit(f)
}

// startMovedFor reports whether the log's start was moved since the table became DISABLING, or has
// no need to be.
func (l *logIndex) startMovedFor(t *tableIndex) bool {
	if len(l.remote) == 0 {
		return true
	}
	return slices.ContainsFunc(l.state.Moves, t.state.TakesAll)
}

// considerExpire finds out whether the oldest remote segment is worth asking about. looked:
// the source was looked at since that was so.
func (e *Engine) considerExpire(l *logIndex, t *tableIndex, looked bool) {
	if l.expiring || l.moving || t.state.Leaves() || t.draining || t.state.State == tier.Disabling {
		return
	}
	i := l.oldestRemote()
	if i < 0 || !e.begins(l, t, i) {
		return
	}
	if _, waits := e.copiesBelow(l, t, l.remote[i].Next); waits {
		return
	}
	if k := l.remoteKept; k != nil {
		if k.Position == l.remote[i].Position && e.now < k.askAt {
			l.wake(k.askAt)
			return
		}
		l.remoteKept, looked = nil, false // it is time again, or the log begins with another one now
	}
	at := e.remoteDue(l, t, i, l.remoteExtent().Bytes)
	if at > e.now {
		if at != never {
			l.wake(at)
		}
		return
	}
	l.looked = looked || !e.returns(l, t)
	if l.toLook = !l.looked; l.toLook && l.remote[i].Base > l.state.LogStart {
		return
	}
	l.wantSince = at
	e.want(t, l)
}

// oldestRemote is the remote segment that the log begins with; -1 if there is none.
func (l *logIndex) oldestRemote() int {
	for i := range l.remote {
		if l.counts(&l.remote[i]) {
			return i
		}
	}
	return -1
}

// begins reports whether the log may begin behind the i-th remote segment: nothing below it is
// still to be copied. Where nothing is copied any more, local segments that never were are parts of
// the log, and their time has to be over as well.
func (e *Engine) begins(l *logIndex, t *tableIndex, i int) bool {
	r := &l.remote[i]
	if r.Next <= l.state.Copied || t.state.State == tier.Enabled {
		return r.Next <= l.state.Copied
	}
	bytes := l.localBytes
	for j := range l.local {
		s := &l.local[j]
		if s.Base >= r.Base {
			break
		}
		if at := e.limitOver(l, t, j, bytes); s.Next > l.state.LogStart && at > e.now {
			if at != never {
				l.wake(at)
			}
			return false
		}
		bytes -= s.Bytes
	}
	return true
}

// copiesBelow reports whether a copy that begins below the offset is under way, or may still be
// found to have come to its end, or is still to be made, as of what was a hole; and where such a
// one begins. A start that moves to the offset would pass over it, and nobody was asked about it.
// What is damaged is not waited for, nor what a damaged segment blocks: nobody may ever mend it, or
// give it up.
func (e *Engine) copiesBelow(l *logIndex, t *tableIndex, o tier.Offset) (at tier.Offset,
	found bool) {
	if at, found := l.copiesIn(tier.Range{Next: o}); found {
		return at, true
	}
	goesOn := e.returns(l, t) && l.block == nil
	for i := l.cursor; i < len(l.local) && l.local[i].Base < o; i++ {
		wants, blocks := l.wantsCopy(i)
		goesOn = goesOn && !blocks
		if goesOn && wants && l.states[i] != lost && l.local[i].Next > l.state.LogStart {
			return l.local[i].Base, true
		}
	}
	return 0, false
}

// returns reports whether the source may have had what was a hole come back since it was looked at
// last, and that is copied as soon as it is seen. An expiry of what lies above it waits for a look:
// a start that moves would pass over it unseen. One at a source in trouble would wait for ever.
func (e *Engine) returns(l *logIndex, t *tableIndex) bool {
	if l.block != nil {
		return e.unseen(l)
	}
	return e.copying(t) && l.state.Epoch == t.state.Epoch
}

// unseen reports whether the source is still to be looked at for the first time: what came back
// into a hole meanwhile is not known. One that cannot be read was looked at.
func (e *Engine) unseen(l *logIndex) bool {
	return l.block != nil && l.block.Code == tier.CodeSourceUnread && e.source(l.source).trouble == nil
}

// remoteDue is the earliest time at which some limit lets the i-th remote segment go, and with it
// those that overlap it, as others of its base or of another replica's bases do: a start that moves
// over one moves over what it has of all of them. bytes are what the log has from it on; never is
// when no limit lets them go.
func (e *Engine) remoteDue(l *logIndex, t *tableIndex, i int, bytes int64) tier.Time {
	at, all, before := e.copyDue(t, &l.remote[i], bytes), l.remote[i].Range, l.remote[i].Bytes
	for i++; i < len(l.remote) && l.remote[i].Base < all.Next; i++ {
		if r := &l.remote[i]; l.counts(r) {
			bytes -= before // as they are asked about: each when those before it have left
			at, all.Next = max(at, e.copyDue(t, r, bytes)), max(all.Next, r.Next)
			before = r.Bytes
		}
	}
	if l.replaces(t, all) {
		return never
	}
	return at
}

// replaces reports whether a local segment that begins within the range is about to be copied in
// the place of what the log has there: what leaves the log then would take the new copy with it.
func (l *logIndex) replaces(t *tableIndex, r tier.Range) bool {
	if _, found := l.copiesIn(r); found {
		return true
	}
	if l.block != nil || t.state.State != tier.Enabled || l.state.Epoch != t.state.Epoch {
		return false
	}
	i, _ := slices.BinarySearchFunc(l.local, r.Base, func(s tier.LocalSegment, b tier.Offset) int {
		return cmp.Compare(s.Base, b)
	})
	for ; i < len(l.local) && l.local[i].Base < r.Next; i++ {
		if st := l.states[i]; l.local[i].Closed() && (st == uncopied || st == changed) {
			return true
		}
	}
	return false
}

// copyDue is when some limit lets the one copy go. It mirrors the built-in policy, which decides.
func (e *Engine) copyDue(t *tableIndex, r *tier.Remote, bytes int64) tier.Time {
	cfg, _ := e.config(t)
	if e.settings.ExpireRemoteRule {
		return e.now
	}
	if cfg.Bytes.Set && bytes-cfg.Bytes.Value >= r.Bytes {
		return e.now
	}
	if cfg.TTL == 0 {
		return never
	}
	birth := r.ModTime
	if r.MaxTime > 0 && r.MaxTime <= e.now+e.settings.Tolerance {
		birth = r.MaxTime
	}
	return birth.Add(cfg.TTL) + 1 // the limit is strict
}

// startExpire proposes the longest prefix of remote segments that is worth asking about, up to the
// brake. It returns whether there is one, or the brake ended it.
func (e *Engine) startExpire(l *logIndex, t *tableIndex) bool {
	brake := e.settings.Brake
	window := t.state.Window.At(e.now, brake.Per)
	f := Expire{Log: l.id, Source: l.source, Remote: l.remoteExtent()}
	after, bytes, braked := window, l.remoteExtent().Bytes, false
	last, end := len(l.remote)-1, l.state.LogStart
	for i := range l.remote {
		r := &l.remote[i]
		if !l.counts(r) {
			continue
		}
		if r.Base > end && !l.looked {
			break
		}
		end = max(end, r.Next)
		_, waits := e.copiesBelow(l, t, r.Next)
		if len(f.Segments) == deleteBatchMax || !e.begins(l, t, i) || waits ||
			e.remoteDue(l, t, i, bytes) > e.now {
			break
		}
		after = after.Plus(1, r.Bytes)
		if braked = brake.Exceeded(after); braked {
			break
		}
		bytes -= r.Bytes
		f.Segments = append(f.Segments, RemoteCandidate{Remote: *r, Ordinal: int64(last - i)})
	}
	f.Segments = l.together(f.Segments)
	if len(f.Segments) == 0 {
		e.brake(l, t, braked, after)
		return braked
	}
	l.expiring, t.deleting = true, true
	l.expireEnd = reach(f.Segments)
	e.deletes++
	f.ID = e.id()
	e.emit(f)
	e.evaluate(l)
	return true
}

// together leaves out the last candidates where a copy that overlaps them is none: either all of
// them leave the log or none.
func (l *logIndex) together(list []RemoteCandidate) []RemoteCandidate {
	if len(list) == 0 {
		return list
	}
	i, _ := slices.BinarySearchFunc(l.remote, list[len(list)-1].Remote, compareRemote)
	for i++; i < len(l.remote) && !l.counts(&l.remote[i]); i++ {
	}
	if i == len(l.remote) {
		return list
	}
	for stays := l.remote[i].Base; len(list) > 0 && reach(list) > stays; {
		stays, list = list[len(list)-1].Base, list[:len(list)-1]
	}
	return list
}

// reach is where the copies end that reach furthest.
func reach(list []RemoteCandidate) (end tier.Offset) {
	for i := range list {
		end = max(end, list[i].Next)
	}
	return end
}

// considerRemove proposes the removal of copies that are no longer part of the log, when the grace
// is over. One effect is of one action: others follow by effects of their own.
func (e *Engine) considerRemove(l *logIndex, t *tableIndex) {
	if l.removing || l.moving || l.expiring || t.draining || len(l.state.Unpublished) > 0 {
		return // while the manifest lacks a move the gate would only keep it
	}
	f := Remove{Log: l.id, Remote: l.remoteExtent()}
	for i := range l.remote {
		r := &l.remote[i]
		if r.Base >= l.state.LogStart && !t.state.Leaves() && !l.summed().past {
			break // it is part of the log, and so are all behind it
		}
		if !e.goes(l, t, r) {
			continue
		}
		at := max(e.removeAt(l, t, r), l.denied[r.Position].askAt)
		if at > e.now {
			l.wake(at)
			continue
		}
		if len(f.Copies) == 0 {
			f.Action = l.removal(t, r)
		}
		if f.Action == l.removal(t, r) && len(f.Copies) < deleteBatchMax {
			f.Copies = append(f.Copies, RemoteCandidate{Remote: *r})
		}
	}
	if len(f.Copies) == 0 || e.removers >= e.settings.Removers {
		if len(f.Copies) > 0 {
			e.waitRemover(l)
		}
		return
	}
	l.removing = true
	t.removing++
	e.removers++
	f.ID = e.id()
	e.emit(f)
}

// goes reports whether the objects of the copy are to be removed. A copy that may still be needed
// to show that a local file is the copied one stays until that file is gone.
func (e *Engine) goes(l *logIndex, t *tableIndex, r *tier.Remote) bool {
	if t.state.Leaves() {
		return l.startMovedFor(t)
	}
	if l.past(r) {
		return true
	}
	if r.Next > l.state.LogStart {
		return false
	}
	return e.localDelete(l.source) != tier.LocalDeleteUnlink || !l.present || !l.identifies(r)
}

// identifies reports whether a local segment is the one that was copied.
func (l *logIndex) identifies(r *tier.Remote) bool {
	return l.has(tier.LocalSegment{Range: r.Range, Log: r.Log})
}

// removeAt is when the grace of what took the copy out of the log is over.
func (e *Engine) removeAt(l *logIndex, t *tableIndex, r *tier.Remote) tier.Time {
	since, _ := tier.Left(&l.state, &t.state, r.Position, r.Epoch, r.Range)
	if since == 0 {
		return e.now
	}
	return since + e.settings.Grace
}

// removable reports whether copies are left whose objects are to go.
func (e *Engine) removable(l *logIndex) bool {
	t := l.table
	return slices.ContainsFunc(l.remote, func(r tier.Remote) bool { return e.goes(l, t, &r) })
}

// outstanding reports whether every copy that is left was denied by a policy.
func (l *logIndex) outstanding() bool {
	for i := range l.remote {
		if !l.denied[l.remote[i].Position].byPolicy {
			return false
		}
	}
	return true
}

// considerClear proposes to clear the tombstones whose time is over: nothing of the attempt can
// appear any more.
func (e *Engine) considerClear(l *logIndex) {
	if l.clearing || len(l.tombstones) == 0 {
		return
	}
	for _, t := range l.tombstones {
		at := max(t.At+e.settings.OrphanAge, l.uncleared[t.Position])
		if at > e.now {
			l.wake(at)
			continue
		}
		l.clearing = true
		e.emit(Clear{ID: e.id(), Log: l.id, Position: t.Position})
		return
	}
}

// moveFinished takes over a new start.
func (e *Engine) moveFinished(l *logIndex, what failure, res Result) {
	switch res := res.(type) {
	case Moved:
		l.succeeded(what)
		l.state.LogStart = max(l.state.LogStart, res.Start)
		l.state.Next = max(l.state.Next, res.Next)
		for _, r := range res.Expired {
			l.state.Expired = l.state.Expired.Add(r)
		}
		at := res.At
		if t := l.table; t.state.Leaves() {
			at = max(at, t.state.Since) // as the ledger has it, whatever the clock says
		}
		l.state.Moves = append(l.state.Moves, tier.StartMove{Start: res.Start, At: at,
			Cause: res.Cause})
		l.lacks(res.Unpublished)
		if res.Window != (tier.BrakeWindow{}) {
			l.table.state.Window = res.Window
		}
		l.keepRemote(e, res.Kept)
	case StaysAll:
		l.succeeded(what)
		l.keepRemote(e, &res.Kept)
	case Failed:
		e.failed(l, what, res)
	}
	l.outdated = false
}

// keptRemote remembers the gate's answer for the oldest remote segment.
type keptRemote struct {
	KeptRemote
	askAt tier.Time
}

func (l *logIndex) keepRemote(e *Engine, k *KeptRemote) {
	if k != nil && !l.outdated {
		l.remoteKept = &keptRemote{*k, e.askAt(k.Due)}
	}
}

// askAt is when a kept segment is asked about again.
func (e *Engine) askAt(due tier.Time) tier.Time {
	at := e.now + max(e.settings.AskAgain, 1)
	if due > e.now {
		at = min(at, due)
	}
	return at
}

func (e *Engine) removeFinished(l *logIndex, res Result) {
	t := l.table
	l.removing = false
	t.removing--
	e.removers--
	what := failure{effect: "remove"}
	switch res := res.(type) {
	case Removed:
		l.succeeded(what)
		l.remote = slices.DeleteFunc(l.remote, func(r tier.Remote) bool {
			return slices.Contains(res.Positions, r.Position)
		})
		l.sum.holds = false
		for _, p := range res.Positions {
			delete(l.denied, p)
		}
		for _, k := range res.Kept {
			if l.denied == nil {
				l.denied = map[tier.Position]denial{}
			}
			l.denied[k.Position] = denial{e.askAt(k.Due), k.Denied, k.Reasons}
		}
		if !slices.ContainsFunc(l.remote, func(r tier.Remote) bool {
			return r.Next <= l.state.LogStart
		}) && !t.state.Leaves() {
			l.state.Moves = nil
		}
		l.reindex(l.local)
	case Failed:
		e.failed(l, what, res)
	}
}

func (e *Engine) clearFinished(l *logIndex, f Clear, res Result) {
	l.clearing = false
	what := failure{effect: "clear"}
	switch res := res.(type) {
	case Done:
		l.succeeded(what)
		l.tombstones = slices.DeleteFunc(l.tombstones, func(t Tombstone) bool {
			return t.Position == f.Position
		})
		delete(l.uncleared, f.Position)
	case StaysAll:
		// That a policy keeps it is no failure: the log goes on, and it is asked about again.
		l.succeeded(what)
		if l.uncleared == nil {
			l.uncleared = map[tier.Position]tier.Time{}
		}
		l.uncleared[f.Position], l.keptOrphan = e.askAt(res.Kept.Due), res.Kept.Reasons
	case Failed:
		e.failed(l, what, res)
	}
}

// considerSweep looks for orphans from time to time.
func (e *Engine) considerSweep() {
	every := e.settings.SweepEvery
	if every == 0 || e.sweeping || e.paused != nil || e.clock != nil || e.now < e.sweepAt {
		return
	}
	e.sweeping = true
	e.sweepAt = e.now + every
	e.emit(Sweep{ID: e.id()})
}

func (e *Engine) sweepFinished(res Result) {
	e.sweeping = false
	switch res := res.(type) {
	case Swept:
		e.sweepFailures = 0
		if (res.Stale == nil) != (e.stale == nil) {
			e.stale = res.Stale
			e.evaluateAll()
		}
	case Failed:
		e.sweepFailures++
		again := e.now + e.settings.Backoff.delay(tier.LogID{}, e.sweepFailures)
		e.sweepAt = min(e.sweepAt, again)
	}
}

// waitRemover queues a log that wants a free remover.
func (e *Engine) waitRemover(l *logIndex) {
	if !slices.Contains(e.wantRemover, l) {
		e.wantRemover = append(e.wantRemover, l)
	}
}
