package tier

// TakesAll reports whether the move took all copies out of their log, wherever it put the start:
// the first that a disablement with the policy delete, or a drop, made.
func (t *TableState) TakesAll(m StartMove) bool {
	return t.Leaves() && m.Cause != MoveExpired && m.At >= t.Since
}

// Left tells whether a copy is no part of its log any more, and since when; since is absent where
// no reader ever saw it there. in is what clips leave of the copy's range (Clipped). It is the one
// rule: what proposes a removal and what establishes that it may be done both count the grace from
// since.
func Left(s *LogState, t *TableState, pos Position, epoch TierEpoch, in Range) (since Time,
	left bool) {
	c, cut := ClipOf(s.Clips, pos)
	if cut = cut && c.Offset <= in.Next; cut && in.Empty() {
		return c.At, true // the source has written all of it anew
	}
	for _, m := range s.Moves {
		switch {
		case t.TakesAll(m):
			return m.At, true
		case in.Next <= m.Start && cut:
			return max(m.At, c.At), true // until it was cut, it reached beyond the start
		case in.Next <= m.Start:
			return m.At, true
		}
	}
	if epoch < s.Fresh {
		return t.Since, true
	}
	if left = in.Next <= s.LogStart; left && cut {
		return c.At, true
	}
	return 0, left // it finished after its range had left the log
}
