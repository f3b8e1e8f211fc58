package offsets

import (
	"math"
	"slices"

	"github.com/tierd/tierd/runtime/tier"
)

// The rules for the end of remote data: the start moves first, then copies are removed.

// moveStart advances the log start. That an offset expired is proof that it was once copied; so the
// copies must be there to show it.
func moveStart(g *group, old *header, r tier.StartMoved) (draft, error) {
	table, err := tableOf(g, r.Log)
	if err != nil {
		return draft{}, err
	}
	s := &old.state
	switch {
	case r.Cause != tier.MoveExpired && r.Cause != tier.MoveDisabled && r.Cause != tier.MoveDropped:
		return draft{}, refuse("log %s: %q is no cause of a move", r.Log, r.Cause)
	case r.Start < s.LogStart:
		return draft{}, refuse("log %s: the start %d lies below the log start %d", r.Log, r.Start,
			s.LogStart)
	case r.Start > s.Copied && table.State == tier.Enabled:
		return draft{}, refuse("log %s: the start %d lies above the copied offset %d", r.Log, r.Start,
			s.Copied)
	case r.Start == s.LogStart && !old.mustLeave(&table, r.Cause):
		return draft{}, nil
	}
	at := r.At
	if table.Leaves() {
		at = max(at, table.Since) // it came after the change, whatever the clock says
	}
	h := *old
	h.state.LogStart = r.Start
	found, err := h.survey(g, s.LogStart)
	if err != nil {
		return draft{}, err
	}
	proof := union(slices.Concat(found.proof, s.Expired))
	for _, e := range r.Expired {
		if e.Empty() || e.Next > r.Start || !proof.Covers(e) {
			return draft{}, refuse("log %s: of %s not all was copied and lies below the start %d",
				r.Log, e, r.Start)
		}
	}
	h.state.Expired = union(slices.Concat(s.Expired, r.Expired))
	h.gone = found.gone
	h.state.Moves = append(slices.Clone(s.Moves), tier.StartMove{Start: r.Start, At: at,
		Cause: r.Cause})
	h.state.Moves = slices.DeleteFunc(h.state.Moves, func(m tier.StartMove) bool {
		return m.Start < found.lowest && !table.TakesAll(m)
	})
	h.forgetMoves(&table)
	pos, put := h.putMark(storedMark{mark: markStart, epoch: s.Epoch, offset: r.Start,
		copied: s.Copied, at: at})
	d := draft{position: pos, log: &h, puts: []entry{put}}
	if r.Window != (tier.BrakeWindow{}) {
		table.Window = laterWindow(table.Window, r.Window, r.At, found.segments, found.bytes)
		d.table = &table
	}
	return d, nil
}

// mustLeave reports whether a move is recorded although the start stays where it is: the first one
// after the table's remote data began to leave takes all copies out of the log.
func (h *header) mustLeave(t *tier.TableState, cause tier.MoveCause) bool {
	return t.Leaves() && h.copies > 0 && cause != tier.MoveExpired &&
		!slices.ContainsFunc(h.state.Moves, t.TakesAll)
}

// forgetMoves forgets the moves once no copy is left that they took out of the log.
func (h *header) forgetMoves(t *tier.TableState) {
	if h.copies == 0 || h.gone == 0 && !t.Leaves() {
		h.state.Moves = nil
	}
}

// surveyed is what the copies of a log say of a new log start.
type surveyed struct {
	gone            uint64       // copies that are out of the log
	lowest          tier.Offset  // the lowest end of a copy
	proof           []tier.Range // what of the copies counts
	segments, bytes int64        // that the new start takes out of the log
}

// survey looks at all copies of a log whose start was before.
func (h *header) survey(g *group, before tier.Offset) (surveyed, error) {
	out := surveyed{lowest: math.MaxInt64}
	err := g.eachCopy(h, func(r tier.Remote) {
		in := h.clip(r.Position, r.Range)
		out.lowest = min(out.lowest, in.Next)
		if r.Epoch >= h.state.Fresh {
			out.proof = append(out.proof, in)
			if !in.Empty() && before < in.Next && in.Next <= h.state.LogStart {
				out.segments++
				out.bytes += r.Bytes
			}
		}
		if h.outOfLog(r.Position, r.Epoch, r.Range) {
			out.gone++
		}
	})
	return out, err
}

// removeCopy forgets a copy of which the store has nothing any more. Where the table was enabled
// again before the end of a removal was heard of, its log may still be to be opened anew: of what
// leaves it then nothing counts any more.
func removeCopy(g *group, old *header, r tier.CopyRemoved) (draft, error) {
	table, err := tableOf(g, r.Log)
	if err != nil {
		return draft{}, err
	}
	key := factKey(kindCopy, old.number, r.Position)
	body, err := g.get(key)
	if err != nil {
		return draft{}, err
	}
	if body == nil {
		return draft{}, refuse("log %s: there is no copy at position %d", r.Log, r.Position)
	}
	c, err := decodeCopy(r.Position, body)
	if err != nil {
		return draft{}, named(key, err)
	}
	gone := old.outOfLog(r.Position, c.Epoch, c.Content.Range)
	if !gone && !table.Leaves() && c.Epoch >= table.Fresh {
		return draft{}, refuse("log %s: the copy of %s at position %d is part of the log, which "+
			"starts at %d", r.Log, c.Content.Range, r.Position, old.state.LogStart)
	}
	h := *old
	h.copies--
	if gone {
		h.gone--
	}
	if gone || h.copies == 0 {
		h.forgetMoves(&table)
	}
	return draft{log: &h, deletes: [][]byte{key, attemptIDKey(c.Attempt)}}, nil
}

// clearTombstone forgets an abandoned attempt, of which nothing can appear any more.
func clearTombstone(g *group, old *header, r tier.TombstoneCleared) (draft, error) {
	key := factKey(kindTombstone, old.number, r.Position)
	body, err := g.get(key)
	if err != nil {
		return draft{}, err
	}
	if body == nil {
		return draft{}, refuse("log %s: there is no tombstone at position %d", r.Log, r.Position)
	}
	t, err := decodeTombstone(r.Position, body)
	if err != nil {
		return draft{}, named(key, err)
	}
	return draft{deletes: [][]byte{key, attemptIDKey(t.ID)}}, nil
}

// diverge ends all that was copied at the offset from which on the source has written anew. What
// lies above, expired ranges included, is no proof of what the source has there now.
func diverge(g *group, old *header, r tier.Diverged) (draft, error) {
	s := &old.state
	end := s.Copied
	if n := len(old.ahead); n > 0 {
		end = old.ahead[n-1].Next
	}
	if r.Offset < s.Start || r.Offset >= end {
		return draft{}, refuse("log %s: nothing was copied at %d: copies lie in [%d, %d)", r.Log,
			r.Offset, s.Start, end)
	}
	h := *old
	above := tier.Range{Base: r.Offset, Next: math.MaxInt64}
	h.state.Copied = min(s.Copied, r.Offset)
	h.ahead = cut(old.ahead, above)
	h.state.Expired = cut(s.Expired, above)
	h.state.Holes = nil
	for _, hole := range s.Holes {
		if hole.Next = min(hole.Next, r.Offset); !hole.Empty() {
			h.state.Holes = append(h.state.Holes, hole)
		}
	}
	// What was given up without its hole, or a part of it, would be passed over in silence.
	h.state.Accepted = slices.DeleteFunc(slices.Clone(s.Accepted), func(a tier.LossAccepted) bool {
		return a.Range.Next > r.Offset
	})
	pos, put := h.putMark(storedMark{mark: markClip, epoch: s.Epoch, offset: r.Offset,
		copied: h.state.Copied, at: r.At})
	// An older clip at or above this one ends nothing that this one does not.
	h.state.Clips = slices.DeleteFunc(slices.Clone(s.Clips), func(c tier.Clip) bool {
		return c.Offset >= r.Offset
	})
	h.state.Clips = append(h.state.Clips, tier.Clip{Position: pos, Offset: r.Offset, At: r.At})
	found, err := h.survey(g, s.LogStart)
	if err != nil {
		return draft{}, err
	}
	h.gone = found.gone // what lies wholly beyond the clip has left the log
	return draft{position: pos, log: &h, puts: []entry{put}}, nil
}

// cut is the set without the range; nil where nothing is left.
func cut(s tier.RangeSet, r tier.Range) tier.RangeSet {
	if out := s.Subtract(r); len(out) > 0 {
		return out
	}
	return nil
}
