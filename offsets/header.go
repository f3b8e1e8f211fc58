package offsets

import (
	"cmp"
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
	if r.Next <= h.state.Copied {
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
	return done.Covers(r) || h.ahead.Covers(r) || h.ahead.Add(done).Covers(r)
}

// aheadOverlaps reports whether r shares an offset with a copy or hole beyond the prefix.
func (h *header) aheadOverlaps(r tier.Range) bool {
	return slices.ContainsFunc(h.ahead, r.Overlaps)
}

// follows says what is wrong with h as the successor of old. Nothing of a log ever goes back.
func (h *header) follows(old *header) error {
	was, is := &old.state, &h.state
	switch {
	case h.number != old.number || is.Log != was.Log:
		return fmt.Errorf("log %d %s became log %d %s", old.number, was.Log, h.number, is.Log)
	case is.Epoch < was.Epoch:
		return fmt.Errorf("log %s: the tier epoch fell from %d to %d", is.Log, was.Epoch, is.Epoch)
	case is.Epoch == was.Epoch && is.Copied < was.Copied:
		return fmt.Errorf("log %s: the copied offset fell from %d to %d", is.Log, was.Copied,
			is.Copied)
	case is.Next < was.Next:
		return fmt.Errorf("log %s: the next position fell from %d to %d", is.Log, was.Next, is.Next)
	case is.LogStart < was.LogStart:
		return fmt.Errorf("log %s: the log start fell from %d to %d", is.Log, was.LogStart,
			is.LogStart)
	}
	return h.check()
}

// check says what is wrong with a header on its own.
func (h *header) check() error {
	s := &h.state
	if s.Copied < s.Start || s.Start < 0 {
		return fmt.Errorf("log %s: the copied offset is %d, the start %d", s.Log, s.Copied, s.Start)
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

// clone returns a copy of the state that shares no memory with it.
func clone(s *tier.LogState) tier.LogState {
	out := *s
	out.Holes = slices.Clone(s.Holes)
	out.Expired = slices.Clone(s.Expired)
	out.Accepted = slices.Clone(s.Accepted)
	out.Unpublished = slices.Clone(s.Unpublished)
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
