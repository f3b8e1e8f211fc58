package engine

import (
	"fmt"
	"math"
	"slices"

	"github.com/tierd/tierd/runtime/planted"
	"github.com/tierd/tierd/runtime/tier"
)

// What was copied may have been cut off at the source by a change of leader, and written anew. The
// source's record of its leader epochs shows it at a scan, the batches of a segment at its copy.
// Both are hints: the log is then left alone until a Compare has looked at the batches themselves.

// dispute is a doubt whether the source still has what was copied.
type dispute struct {
	at tier.Offset // nothing below it is in doubt
	// waits is set while the source has no batch that would show it: it was cut off, and nothing was
	// written since.
	waits   bool
	segment tier.Stat // that raised it; zero if the source's record did
	read    bool      // the segment was read for its copy
}

// contradicted finds the lowest copy that cannot be of the lineage that the source has on record.
// Leader epochs rise with the offsets, and each leader's is a new one: where a copy's last batch is
// of the right epoch, so are all before it.
func (l *logIndex) contradicted() *dispute {
	if len(l.lineage) == 0 {
		return nil
	}
	from := max(l.sourceStart, l.lineage[0].Start, l.state.LogStart)
	for i := range l.remote {
		r := &l.remote[i]
		if r.Last == tier.NoLeaderEpoch || r.Next <= from || !l.counts(r) {
			continue
		}
		if l.contradicts(r) {
			return &dispute{at: max(r.Base, from)}
		}
	}
	return nil
}

// contradicts reports whether the source's record names another leader epoch for the end of the
// copy.
func (l *logIndex) contradicts(r *tier.Remote) bool {
	epoch, known := tier.EpochAt(l.lineage, r.Next-1)
	return known && r.Last != tier.NoLeaderEpoch && epoch != r.Last
}

// suspect raises a dispute where a copy that has just finished is not of the lineage that the
// source has by now: it may have been read before a leader changed.
func (l *logIndex) suspect(r tier.Remote) {
	l.cleared = tier.Stat{}
	r = l.state.Clip(r)
	at := max(r.Base, l.sourceStart, l.state.LogStart)
	switch d := l.disputed; {
	case d != nil && at < d.at:
		d.at, d.waits, l.news = at, false, true
	case d == nil && l.counts(&r) && l.contradicts(&r):
		l.disputed = &dispute{at: at}
	}
	l.raise()
}

// doubt takes over what a scan says of the log's lineage.
func (l *logIndex) doubt(s *tier.Scan, same bool) {
	news := !same || s.LocalEnd != l.localEnd || !slices.Equal(l.lineage, s.Lineage)
	if news && l.grew(s) {
		l.grown = true
	} else if news {
		l.news = true
	}
	if l.disputed != nil && news {
		l.disputed.waits = false
	}
	if slices.Equal(l.lineage, s.Lineage) {
		return
	}
	l.lineage = s.Lineage
	l.recheck = true
}

// grew reports whether the scan shows no more than that the log was written on, and perhaps begins
// later. What was compared meanwhile is as it was: a log that always grows would never be compared
// otherwise, where that takes longer than it is until the next scan.
func (l *logIndex) grew(s *tier.Scan) bool {
	if s.LocalEnd < l.localEnd || !slices.Equal(l.lineage, s.Lineage) || len(s.Segments) == 0 {
		return false
	}
	old := l.local
	for len(old) > 0 && old[0].Base < s.Segments[0].Base {
		old = old[1:]
	}
	if len(old) == 0 || len(old) > len(s.Segments) {
		return false
	}
	for i := range old {
		was, is := &old[i], &s.Segments[i]
		grows := i >= l.growing-(len(l.local)-len(old)) && is.Log.Inode == was.Log.Inode &&
			is.Log.Size >= was.Log.Size
		if is.Base != was.Base || is.Log != was.Log && !grows {
			return false
		}
	}
	return true
}

// raise raises a dispute where what the last scan brought gives reason to.
func (l *logIndex) raise() {
	if !l.opened || !l.whole || planted.Is(planted.LineageUnchecked) {
		return
	}
	if l.recheck {
		l.disputed, l.recheck = l.contradicted(), false
	}
	if len(l.lineage) > 0 {
		return
	}
	if d := l.overlapped(); d != nil && (l.disputed == nil || d.at < l.disputed.at) {
		l.disputed, l.news = d, true
	}
}

// overlapped is for a source without a record of its leader epochs: that its log still grows where
// it was copied already means that it was cut off, or that another replica rolled elsewhere. What
// is closed is read when it is copied, and needs no suspicion.
func (l *logIndex) overlapped() *dispute {
	if l.growing == len(l.local) {
		return nil
	}
	base, file := l.local[l.growing].Base, l.local[l.growing].Log
	if base >= l.summed().inLog.Next || file == l.cleared {
		return nil
	}
	for i := range l.remote {
		if r := &l.remote[i]; r.Next > base && r.Last != tier.NoLeaderEpoch && l.counts(r) {
			return &dispute{at: max(base, l.state.LogStart), segment: file}
		}
	}
	return nil
}

// allRead is an offset that no segment has.
const allRead = tier.Offset(math.MaxInt64)

// closedSince is the base of the first closed segment that is not among those before; allRead where
// there is none.
func (l *logIndex) closedSince(before []tier.LocalSegment) tier.Offset {
	for i := range l.local[:l.growing] {
		s := &l.local[i]
		for len(before) > 0 && before[0].Base < s.Base {
			before = before[1:]
		}
		if len(before) == 0 || before[0].Base != s.Base || before[0].Log != s.Log {
			return s.Base
		}
	}
	return allRead
}

// suspectUnread is for a table that does not tier, whose segments nobody reads for a copy: where a
// closed one lies over copies and is none of them, its source may have written it anew.
func (l *logIndex) suspectUnread() {
	if l.unread == allRead || !l.opened || !l.whole {
		return
	}
	from := l.unread
	l.unread = allRead
	for i := range l.local[:l.growing] {
		s := &l.local[i]
		if s.Base < from || l.states[i] != uncopied && l.states[i] != changed || len(l.over(s)) == 0 {
			continue
		}
		if at := max(s.Base, l.state.LogStart); l.disputed == nil || at < l.disputed.at {
			l.disputed, l.news = &dispute{at: at}, true
		}
		return
	}
}

// inDoubt reports whether nothing of the log is decided before a Compare has ended.
func (l *logIndex) inDoubt() bool { return l.comparing || l.disputed != nil && !l.disputed.waits }

// compare has the batches looked at, once nothing of the log is under way.
func (e *Engine) compare(l *logIndex) {
	busy := l.copies > 0 || l.deleting || l.moving || l.expiring || l.removing || l.clearing ||
		l.holing || l.publishing || l.checking
	switch {
	case l.comparing || e.retryLater(l):
		return
	case len(l.attempts) > 0:
		e.resolveNext(l)
		return
	case busy || !l.whole || len(l.local) == 0:
		return
	}
	f := Compare{ID: e.id(), Log: l.id, Source: l.source, From: l.disputed.at}
	for i := range l.remote {
		if r := &l.remote[i]; l.counts(r) && r.Next > f.From {
			f.Copies = append(f.Copies, r.Position)
		}
	}
	if n := len(l.state.Clips); n > 0 {
		f.Clips = l.state.Clips[n-1].Position + 1
	}
	l.comparing, l.news, l.grown = true, false, false
	e.emit(f)
}

// over are the copies whose batches the segment's must agree with.
func (l *logIndex) over(s *tier.LocalSegment) []tier.Position {
	if s.Log == l.cleared || s.Base >= l.summed().inLog.Next ||
		planted.Is(planted.LineageUnchecked) {
		return nil
	}
	var out []tier.Position
	for i := range l.remote {
		if r := &l.remote[i]; r.Last != tier.NoLeaderEpoch && l.counts(r) && r.Overlaps(s.Range) {
			out = append(out, r.Position)
		}
	}
	return out
}

// raisedMeanwhile is a dispute that came while a comparison looked that ends now, below where the
// copies are cut off by what it found; nil if there is none.
func (l *logIndex) raisedMeanwhile() *dispute {
	n := len(l.state.Clips)
	if l.disputed == nil || !l.news || n == 0 || l.disputed.at >= l.state.Clips[n-1].Offset {
		return nil
	}
	return l.disputed
}

// compareFinished takes over what the batches said.
func (e *Engine) compareFinished(l *logIndex, res Result) {
	what := failure{effect: "compare"}
	l.comparing = false
	switch res := res.(type) {
	case Diverged:
		l.succeeded(what)
		l.state = res.State
		for i := range l.remote {
			l.remote[i] = l.state.Clip(l.remote[i])
		}
		l.sum.holds = false
		deeper := l.raisedMeanwhile()
		l.disputed, l.kept, l.remoteKept = nil, nil, nil
		// What the ledger has accepted no more has to be asked about again.
		l.quarantine = slices.DeleteFunc(l.quarantine, func(q quarantine) bool {
			return q.accepted && !slices.ContainsFunc(l.state.Accepted,
				func(a tier.LossAccepted) bool { return a.Range == q.segment.Range })
		})
		l.reindex(l.local)
		// Meanwhile the source may have been cut off once more, and below where this one looked.
		l.recheck = true
		l.raise()
		if deeper != nil && (l.disputed == nil || deeper.at < l.disputed.at) {
			l.disputed = deeper // nobody raises it again
		}
	case Agreed:
		l.succeeded(what)
		if l.disputed == nil || l.news {
			return
		}
		l.cleared, l.disputed = l.disputed.segment, nil
	case Silent:
		l.succeeded(what)
		if l.disputed == nil || l.news || l.grown {
			return
		}
		l.disputed.waits = true
		if l.disputed.read {
			// The segment that raised it has changed again; its next copy is to wait for a while. What
			// the source's record says against the copies stays.
			e.failed(l, what, Failed{Reason: l.inDispute()})
			l.disputed, l.recheck = nil, true
			l.raise()
		}
	case Failed:
		e.failed(l, what, res)
	}
}

// inDispute says what is in doubt, for people.
func (l *logIndex) inDispute() tier.Reason {
	text := "nothing of the log is decided before its batches were compared"
	if l.disputed.waits {
		text = fmt.Sprintf("the source ends at %d and no batch of it shows yet what counts", l.localEnd)
	}
	return tier.Reason{Code: tier.CodeLineage, Text: fmt.Sprintf("from offset %d on the source may "+
		"have other leader epochs than what was copied: %s", l.disputed.at, text)}
}
