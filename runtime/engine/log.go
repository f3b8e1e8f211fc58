package engine

import (
	"cmp"
	"slices"

	"github.com/tierd/tierd/runtime/planted"
	"github.com/tierd/tierd/runtime/tier"
)

// segmentState is what the engine knows of one local segment.
type segmentState uint8

const (
	uncopied    segmentState = iota
	copying                  // an effect is under way
	copied                   // a finished copy with this identity is recorded
	changed                  // a copy is recorded, but the file has another identity now
	lost                     // a copy is recorded, but the store no longer has it
	quarantined              // damaged; blocks the log until its file changes
	accepted                 // damaged, and an operator accepted the loss
	expired                  // its copy was removed after its TTL; it is not copied again
)

// logIndex is the engine's memory of one log. local and state run in parallel; both are kept for
// every segment on disk, and remote for every segment in the store, so they hold no pointers.
type logIndex struct {
	id          tier.LogID
	table       *tableIndex
	source      string
	layout      tier.Layout
	incarnation string
	double      *tier.Scan // of another source that has a log of this id; nil if none has
	present     bool       // seen by the last whole look at its source
	whole       bool       // the last look could read everything of it
	stays       bool       // its local segments are not for tierd to delete
	compacted   bool
	localEnd    tier.Offset
	sourceStart tier.Offset
	hw          tier.Offset
	hasHW       bool
	problems    []tier.Problem
	dropping    []tier.LocalSegment // given up by the source's own program, and still on disk
	lineage     []tier.EpochStart   // as the source has it on record
	local       []tier.LocalSegment // ascending by base, and by next
	localBytes  int64               // of local, summed up
	states      []segmentState
	cursor      int           // every segment below it is copied
	growing     int           // of local, the first that is not closed; len(local) if all are
	remote      []tier.Remote // ascending by base, then position
	sum         remoteSum     // of remote; summed says whether it holds

	opened  bool // the ledger knows it
	opening bool
	state   tier.LogState

	attempts  []tier.Attempt // of unknown outcome; nothing is copied before they are resolved
	copies    int            // in flight
	underWay  []underWay     // the copies in flight
	resolving bool
	deleting  bool
	moving    bool // the log start is being moved
	expiring  bool
	expireEnd tier.Offset // while expiring: the end of what may leave the log
	removing  bool
	clearing  bool
	holing    bool
	// holeUnknown is a hole of which it is not known whether it was recorded; nil if there is none.
	holeUnknown *RecordHole
	publishing  bool
	checking    bool // a checkpoint is being written

	quarantine []quarantine
	badCopies  []badCopy // that the store lost or altered
	failures   int       // in a row
	retryAt    tier.Time
	failure    *tier.Reason
	failedAt   failure      // what failed last; only its own success ends the backoff
	block      *tier.Reason // why nothing is decided
	kept       *keptSegment
	outdated   bool // what the question under way asked about has changed since

	disputed  *dispute  // what was copied may not be what the source has any more
	recheck   bool      // the lineage is a new one, and was not compared with the copies yet
	comparing bool      // a Compare is under way
	news      bool      // something came since it began that it may not have seen
	grown     bool      // its end came further since
	cleared   tier.Stat // of a segment whose batches were compared and agree
	// unread is from where on closed segments may not have been compared with the copies; allRead
	// where all were.
	unread tier.Offset

	tombstones []Tombstone                 // ascending by position
	uncleared  map[tier.Position]tier.Time // tombstones that a policy keeps, and when to ask
	keptOrphan []tier.Reason               // why the last of them stays
	stale      bool                        // a fresh look is needed before the start moves
	toLook     bool                        // an expiry is due that may have to pass over a hole
	looked     bool                        // the source was looked at since it was due
	reopened   bool                        // an epoch was opened, and nothing was copied in it yet
	remoteKept *keptRemote
	denied     map[tier.Position]denial // removals that were kept from being done

	advice    *advice // of the plugins; nil if they were not asked
	candidate bool    // plugins are asked about it
	unasked   bool    // it waits for their first answer
	rank      []int64 // scores of the segment that is copied next

	due, oldest, wantSince       tier.Time
	dueSlot, readySlot, wantSlot int
}

// failure names what failed: a kind of effect, and the base where it is of one segment.
type failure struct {
	effect string
	base   tier.Offset
}

type quarantine struct {
	segment tier.LocalSegment
	reason  tier.Reason
	// accepted: an operator accepted the loss, and it blocks nothing. That is known of this file
	// alone: a process that starts, or sees another one there, has it read first.
	accepted bool
}

// keptSegment remembers the gate's answer for the oldest segment, so that it is not asked again
// before something changed or time has come.
type keptSegment struct {
	Kept
	askAt tier.Time
}

// denial is the answer for a copy that is to be removed and stays for now.
type denial struct {
	askAt    tier.Time
	byPolicy bool
	reasons  []tier.Reason
}

func compareRemote(a, b tier.Remote) int {
	return cmp.Or(cmp.Compare(a.Base, b.Base), cmp.Compare(a.Position, b.Position))
}

// look takes over a fresh scan.
func (l *logIndex) look(s tier.Scan) {
	same := slices.Equal(l.local, s.Segments)
	l.doubt(&s, same)
	l.source, l.layout, l.incarnation = s.Source, s.Layout, s.Incarnation
	l.present, l.whole, l.compacted, l.stale = true, s.Whole, s.Compacted, false
	l.looked = true
	l.state.Emptied = l.state.Emptied && len(s.Segments) == 0
	l.localEnd, l.sourceStart, l.problems = s.LocalEnd, s.SourceStart, s.Problems
	l.dropping = s.Dropping
	if l.hw != s.HighWatermark || l.hasHW != s.HasHighWatermark {
		l.hw, l.hasHW, same = s.HighWatermark, s.HasHighWatermark, false
	}
	if !same {
		before := l.local[:l.growing]
		l.kept = nil
		l.reindex(s.Segments)
		l.unread = min(l.unread, l.closedSince(before))
	}
	if !same && l.whole {
		l.quarantine = slices.DeleteFunc(l.quarantine, func(q quarantine) bool {
			return !l.has(q.segment)
		})
	}
	l.raise()
}

// has reports whether the file of the segment is still there as it was.
func (l *logIndex) has(s tier.LocalSegment) bool {
	i := l.at(s.Base)
	return i >= 0 && l.local[i].Log == s.Log
}

// reindex takes over the local segments, which may be those that are there, and derives their
// states anew. What neither ledger nor quarantine tell stays: which are being copied, and of which
// the store lost the copy.
func (l *logIndex) reindex(local []tier.LocalSegment) {
	inFlight, lostBases := map[tier.Offset]bool{}, map[tier.Offset]tier.Stat{}
	for i, st := range l.states {
		switch st {
		case copying:
			inFlight[l.local[i].Base] = true
		case lost:
			lostBases[l.local[i].Base] = l.local[i].Log
		}
	}
	l.local = local
	l.derive()
	for i := range l.local {
		if inFlight[l.local[i].Base] {
			l.states[i] = copying
		}
		if st, ok := lostBases[l.local[i].Base]; ok && st == l.local[i].Log && l.states[i] == copied {
			l.states[i] = l.damageOf(&l.local[i], lost)
		}
	}
}

// derive gives every local segment the state that ledger and quarantine say. A segment counts as
// copied only if base and identity are those of a recorded copy.
func (l *logIndex) derive() {
	l.states = slices.Grow(l.states[:0], len(l.local))[:len(l.local)]
	l.cursor, l.localBytes, l.growing = 0, 0, len(l.local)
	r := 0
	for i := range l.local {
		s := &l.local[i]
		l.localBytes += s.Bytes
		if !s.Closed() {
			l.growing = min(l.growing, i)
		}
		for r < len(l.remote) && l.remote[r].Base < s.Base {
			r++
		}
		l.states[i] = uncopied
		for j := r; j < len(l.remote) && l.remote[j].Base == s.Base; j++ {
			if l.remote[j].Epoch < l.state.Fresh && !planted.Is(planted.EpochUnchecked) {
				continue
			}
			l.states[i] = changed
			if l.isCopy(&l.remote[j], s) {
				// What followed it may have gone since: the segment ends where its copy does.
				l.states[i], s.Next = copied, l.remote[j].Next
				if l.bad(l.remote[j].Position) {
					l.states[i] = lost
					continue
				}
				break
			}
		}
		if l.states[i] == uncopied && l.state.Expired.Covers(s.Range) {
			l.states[i] = expired
		}
		if d := l.damageOf(s, l.states[i]); l.states[i] != copied || d == quarantined {
			l.states[i] = d
		}
	}
}

// isCopy reports whether r is a copy of the segment as it is now. That another file came to a
// segment of a plain log shows in the size of all of them; of a Kafka one files may be left out.
func (l *logIndex) isCopy(r *tier.Remote, s *tier.LocalSegment) bool {
	return r.Log == s.Log && r.Next <= s.Next && !r.Clipped &&
		(l.layout != tier.LayoutPlain || r.Bytes == s.Bytes)
}

func (l *logIndex) damageOf(s *tier.LocalSegment, otherwise segmentState) segmentState {
	for _, q := range l.quarantine {
		if q.segment.Base == s.Base && q.segment.Log == s.Log {
			if q.accepted {
				return accepted
			}
			return quarantined
		}
	}
	return otherwise
}

// giveUp remembers of a damaged segment that its loss is accepted.
func (l *logIndex) giveUp(s tier.LocalSegment) {
	l.unquarantine(s.Base)
	if l.has(s) {
		l.quarantine = append(l.quarantine, quarantine{segment: s, accepted: true})
	}
}

func (l *logIndex) unquarantine(base tier.Offset) {
	l.quarantine = slices.DeleteFunc(l.quarantine, func(q quarantine) bool {
		return q.segment.Base == base
	})
}

// at finds the local segment with the base; -1 if there is none.
func (l *logIndex) at(base tier.Offset) int {
	i, ok := slices.BinarySearchFunc(l.local, base, func(s tier.LocalSegment, b tier.Offset) int {
		return cmp.Compare(s.Base, b)
	})
	if !ok {
		return -1
	}
	return i
}

// copyOf finds the newest recorded copy with the segment's base and identity, or, if there is none
// with its identity, the newest with its base.
func (l *logIndex) copyOf(s *tier.LocalSegment) (r tier.Remote, identical, found bool) {
	i, _ := slices.BinarySearchFunc(l.remote, s.Base, func(r tier.Remote, b tier.Offset) int {
		return cmp.Compare(r.Base, b)
	})
	for ; i < len(l.remote) && l.remote[i].Base == s.Base; i++ {
		if l.remote[i].Epoch < l.state.Fresh && !planted.Is(planted.EpochUnchecked) {
			continue
		}
		same := l.isCopy(&l.remote[i], s)
		if same || !identical {
			r, found = l.remote[i], true
		}
		identical = identical || same
	}
	return r, identical, found
}

// openHoles are the holes that copies do not fill. What neither tier had may come back, and is
// copied then; the hole stays on record.
func (l *logIndex) openHoles() []tier.Hole {
	return slices.DeleteFunc(slices.Clone(l.state.Holes), func(h tier.Hole) bool {
		return l.filled(h.Range)
	})
}

// filled reports whether copies that count follow upon each other over the whole range.
func (l *logIndex) filled(r tier.Range) bool {
	i, _ := slices.BinarySearchFunc(l.remote, r.Base, func(c tier.Remote, b tier.Offset) int {
		return cmp.Compare(c.Base, b)
	})
	for i = max(i-1, 0); i < len(l.remote) && !r.Empty() && l.remote[i].Base <= r.Base; i++ {
		if l.counts(&l.remote[i]) {
			r.Base = max(r.Base, l.remote[i].Next)
		}
	}
	return r.Empty()
}

// addRemote takes over a finished copy; one with the same position is replaced.
func (l *logIndex) addRemote(r tier.Remote) {
	r = l.state.Clip(r)
	i, found := slices.BinarySearchFunc(l.remote, r, compareRemote)
	if found {
		l.remote[i] = r
		l.sum.holds = false
		return
	}
	l.summed()
	l.remote = slices.Insert(l.remote, i, r)
	if r.Base < l.sum.inLog.Next || i+1 < len(l.remote) {
		l.sum.holds = false // what others have too counts once
		return
	}
	l.sum.add(l, &r)
}

// remoteSum is what the copies of a log come to. A log may have very many, and is decided anew with
// each of them, so nothing that is decided may go through all.
type remoteSum struct {
	holds bool // but where fresh or logStart are not those of the log any more
	fresh tier.TierEpoch
	start tier.Offset

	inLog Extent // of the copies that are part of the log, each offset range once
	past  bool   // there are copies of epochs that no longer count, or that were cut off wholly
}

// add adds a copy that begins no lower than those before it. Of one that overlaps them only what
// they have not is counted, by its share of the offsets.
func (s *remoteSum) add(l *logIndex, r *tier.Remote) {
	if l.counts(r) {
		bytes := r.Bytes
		if s.inLog.Segments > 0 && r.Base < s.inLog.Next {
			own := tier.Range{Base: min(s.inLog.Next, r.Next), Next: r.Next}
			bytes = tier.Share(bytes, own, r.Range)
		}
		s.inLog.add(r.Range, bytes)
	}
	s.past = s.past || l.past(r)
}

// past reports whether the copy is no part of the log, wherever that starts.
func (l *logIndex) past(r *tier.Remote) bool { return r.Epoch < l.state.Fresh || r.Empty() }

// summed brings the sum up to date.
func (l *logIndex) summed() *remoteSum {
	if s := &l.sum; !s.holds || s.fresh != l.state.Fresh || s.start != l.state.LogStart {
		l.sum = l.sumUp()
	}
	return &l.sum
}

// sumUp goes through all copies: of those with the same base the newest counts.
func (l *logIndex) sumUp() remoteSum {
	s := remoteSum{holds: true, fresh: l.state.Fresh, start: l.state.LogStart}
	for i := range l.remote {
		r := &l.remote[i]
		if i+1 < len(l.remote) && l.remote[i+1].Base == r.Base {
			s.past = s.past || l.past(r)
			continue
		}
		s.add(l, r)
	}
	return s
}
