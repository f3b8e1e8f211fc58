package tier

// The lineage of a log is the function from offsets to the leader epochs that wrote them. Two logs
// of one id are the same up to the first offset at which their lineages differ, and no further:
// that is what a change of leader leaves behind that cut off what the old one had written.

// EpochAt is the leader epoch that a lineage names for the offset; false where it names none, or
// the batches there carry none.
func EpochAt(lineage []EpochStart, o Offset) (LeaderEpoch, bool) {
	low, high := 0, len(lineage) // entries below low start at o or lower
	for low < high {
		if mid := (low + high) / 2; lineage[mid].Start <= o {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == 0 || lineage[low-1].Epoch == NoLeaderEpoch {
		return NoLeaderEpoch, false
	}
	return lineage[low-1].Epoch, true
}

// LastEpoch is the leader epoch of the last batch; NoLeaderEpoch where there is none.
func LastEpoch(lineage []EpochStart) LeaderEpoch {
	if n := len(lineage); n > 0 {
		return lineage[n-1].Epoch
	}
	return NoLeaderEpoch
}

// ClipOf is the clip that ends a copy at the position sooner than all others; false if none does.
// Clips ascend by position and by offset.
func ClipOf(clips []Clip, pos Position) (Clip, bool) {
	for _, c := range clips {
		if pos < c.Position {
			return c, true
		}
	}
	return Clip{}, false
}

// Clipped is what of the range counts in a copy or hole at the position: nothing of what the source
// has written anew since.
func Clipped(clips []Clip, pos Position, r Range) Range {
	if c, ok := ClipOf(clips, pos); ok {
		r.Next = min(r.Next, c.Offset)
	}
	return r
}

// Clip cuts off the copy where the log's lineage left it. Of one that lies wholly beyond nothing is
// left: its range is empty.
func (s *LogState) Clip(r Remote) Remote {
	if c := Clipped(s.Clips, r.Position, r.Range); c != r.Range {
		r.Bytes = Share(r.Bytes, c, r.Range)
		r.Range, r.Clipped = c, true
	}
	return r
}

// Share is what of so many bytes falls on a part of the offsets that they hold, as if each offset
// had as many as any other. An empty part has none.
func Share(bytes int64, part, whole Range) int64 {
	if part.Empty() || whole.Empty() {
		return 0
	}
	return int64(float64(bytes) * (float64(part.Next-part.Base) / float64(whole.Next-whole.Base)))
}
