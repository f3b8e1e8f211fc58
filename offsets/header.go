package offsets

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/tierd/tierd/runtime/tier"
)

// Headers are never changed once they are in force: a rule makes a copy of the struct and replaces
// what differs, slices included.

// takePosition hands out the next position. It was never handed out before and never will be again.
func (h *header) takePosition() tier.Position {
	p := h.state.Next
	h.state.Next++
	return p
}

// cover adds a range that was copied, or is a hole, and moves the copied offset over the contiguous
// prefix. What expires later was copied before, so it is covered too. The work does not depend on
// how many copies there are, but on how many gaps lie between them above the copied offset.
func (h *header) cover(r tier.Range) {
	if r.Empty() || r.Next <= h.state.Copied {
		return
	}
	h.ahead = h.ahead.Add(r)
	// The ranges of a set do not touch: only the first can reach down to the prefix.
	if first := h.ahead[0]; first.Base <= h.state.Copied {
		h.state.Copied = first.Next
		h.ahead = h.ahead[1:]
	}
	if len(h.ahead) == 0 {
		h.ahead = nil
	}
}

// covers reports whether every offset of r was once copied or lies in a hole.
func (h *header) covers(r tier.Range) bool {
	done := tier.Range{Base: h.state.Start, Next: h.state.Copied}
	if done.Covers(r) || h.ahead.Covers(r) || h.state.Expired.Covers(r) {
		return true
	}
	return union(slices.Concat(h.ahead, h.state.Expired, tier.RangeSet{done})).Covers(r)
}

// union joins ranges, which it sorts.
func union(ranges []tier.Range) tier.RangeSet {
	slices.SortFunc(ranges, func(a, b tier.Range) int { return cmp.Compare(a.Base, b.Base) })
	var out tier.RangeSet
	for _, r := range ranges {
		last := len(out) - 1
		switch {
		case r.Empty():
		case last >= 0 && r.Base <= out[last].Next:
			out[last].Next = max(out[last].Next, r.Next)
		default:
			out = append(out, r)
		}
	}
	return out
}

// clip is what of r counts in a fact at the position: nothing of what the source has written anew
// since.
func (h *header) clip(pos tier.Position, r tier.Range) tier.Range {
	return tier.Clipped(h.state.Clips, pos, r)
}

// lastClip is the position of the newest clip plus one; 0 if there is none.
func (h *header) lastClip() tier.Position {
	if n := len(h.state.Clips); n > 0 {
		return h.state.Clips[n-1].Position + 1
	}
	return 0
}

// outOfLog reports whether a copy at the position is no part of the log any more.
func (h *header) outOfLog(pos tier.Position, epoch tier.TierEpoch, r tier.Range) bool {
	r = h.clip(pos, r)
	return epoch < h.state.Fresh || r.Next <= h.state.LogStart || r.Empty()
}

// putMark hands out a position for a mark, which is to be published.
func (h *header) putMark(m storedMark) (tier.Position, entry) {
	pos := h.takePosition()
	h.state.Unpublished = append(slices.Clone(h.state.Unpublished), pos)
	return pos, entry{factKey(kindMark, h.number, pos), m.encode(), true}
}

// aheadOverlaps reports whether r shares an offset with a copy or hole beyond the prefix.
func (h *header) aheadOverlaps(r tier.Range) bool {
	return slices.ContainsFunc(h.ahead, r.Overlaps)
}

// follows says what is wrong with h as the successor of old. Nothing of a log ever goes back, but
// for the copied offset where the source diverged, and for that and the log start where an epoch
// begins with nothing.
func (h *header) follows(old *header) error {
	was, is := &old.state, &h.state
	switch {
	case h.number != old.number || is.Log != was.Log:
		return fmt.Errorf("log %d %s became log %d %s", old.number, was.Log, h.number, is.Log)
	case is.Epoch < was.Epoch:
		return fmt.Errorf("log %s: the tier epoch fell from %d to %d", is.Log, was.Epoch, is.Epoch)
	case is.Fresh < was.Fresh:
		return fmt.Errorf("log %s: the first epoch that counts fell from %d to %d", is.Log, was.Fresh,
			is.Fresh)
	case is.Next < was.Next:
		return fmt.Errorf("log %s: the next position fell from %d to %d", is.Log, was.Next, is.Next)
	case is.Fresh > was.Fresh:
		return h.check()
	case h.lastClip() < old.lastClip():
		return fmt.Errorf("log %s: a clip is lost", is.Log)
	case is.Start != was.Start:
		return fmt.Errorf("log %s: the start went from %d to %d", is.Log, was.Start, is.Start)
	case is.Copied < was.Copied && h.lastClip() == old.lastClip():
		return fmt.Errorf("log %s: the copied offset fell from %d to %d", is.Log, was.Copied,
			is.Copied)
	case is.LogStart < was.LogStart:
		return fmt.Errorf("log %s: the log start fell from %d to %d", is.Log, was.LogStart,
			is.LogStart)
	}
	return h.check()
}

// difference says how a stored header goes back or forward against h, for people; "" where it is
// another one in some other way.
func (h *header) difference(body []byte) string {
	stored, err := decodeHeader(h.number, body, nil)
	if err == nil {
		err = errors.Join(stored.follows(h), h.follows(stored))
	}
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// check says what is wrong with a header on its own.
func (h *header) check() error {
	s := &h.state
	if s.Copied < s.Start || s.LogStart < s.Start || s.Start < 0 {
		return fmt.Errorf("log %s: the copied offset is %d, the log start %d, the start %d", s.Log,
			s.Copied, s.LogStart, s.Start)
	}
	if s.Fresh > s.Epoch || h.gone > h.copies {
		return fmt.Errorf("log %s: in tier epoch %d, epochs from %d on count; of %d copies %d are out "+
			"of the log", s.Log, s.Epoch, s.Fresh, h.copies, h.gone)
	}
	if err := h.checkMarks(); err != nil {
		return err
	}
	edge := s.Copied
	for _, r := range h.ahead {
		if r.Empty() || r.Base <= edge {
			return fmt.Errorf("log %s: %s is out of place above %d", s.Log, r, edge)
		}
		edge = r.Next
	}
	for _, p := range s.Unpublished {
		if p >= s.Next {
			return fmt.Errorf("log %s: position %d was never handed out", s.Log, p)
		}
	}
	return nil
}

// checkMarks says what is wrong with the moves and the clips of a header.
func (h *header) checkMarks() error {
	s := &h.state
	for i, m := range s.Moves {
		if m.Start > s.LogStart || i > 0 && m.Start < s.Moves[i-1].Start {
			return fmt.Errorf("log %s: a move of the start to %d is out of place", s.Log, m.Start)
		}
	}
	for i, c := range s.Clips {
		last := tier.Clip{}
		if i > 0 {
			last = s.Clips[i-1]
		}
		if c.Position >= s.Next || c.Offset < s.Start ||
			i > 0 && (c.Position <= last.Position || c.Offset <= last.Offset) {
			return fmt.Errorf("log %s: a clip at %d is out of place", s.Log, c.Offset)
		}
	}
	return nil
}

// clone returns a copy of the state that shares no memory with it.
func clone(s *tier.LogState) tier.LogState {
	out := *s
	out.Holes = slices.Clone(s.Holes)
	out.Expired = slices.Clone(s.Expired)
	out.Accepted = slices.Clone(s.Accepted)
	out.Unpublished = slices.Clone(s.Unpublished)
	out.Moves = slices.Clone(s.Moves)
	out.Clips = slices.Clone(s.Clips)
	out.Checkpoints = slices.Clone(s.Checkpoints)
	return out
}

func cloneTable(t *tier.TableState) tier.TableState {
	out := *t
	if t.Paused != nil {
		reason := *t.Paused
		out.Paused = &reason
	}
	return out
}

func sortHoles(holes []tier.Hole) {
	slices.SortFunc(holes, func(a, b tier.Hole) int { return cmp.Compare(a.Base, b.Base) })
}
