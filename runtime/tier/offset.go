package tier

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Offset addresses one record of a log. It counts records, or bytes where the source does; it is
// never negative in a valid segment.
type Offset int64

// LeaderEpoch is the term of the source's leader that wrote a batch; NoLeaderEpoch where the
// source records none (plain files, Kafka batches of magic 0 and 1).
type LeaderEpoch int32

// NoLeaderEpoch is what Kafka writes for "no leader epoch" in a batch header.
const NoLeaderEpoch LeaderEpoch = -1

// TierEpoch is the version of a table's tiering. It rises at each disable and each enable and is
// part of every object key. The first one is 1.
type TierEpoch uint32

// Position orders the facts of one log's manifest. The ledger hands positions out, each once.
type Position uint64

// Time is an instant in nanoseconds since the Unix epoch; 0 means absent. The core computes with
// it so that instants are small, comparable and never read from a clock.
type Time int64

// TimeOf converts t; the zero time.Time becomes the absent Time. What lies beyond the years that a
// Time can hold, as the modification time of a file may, becomes one as far off as durations can be
// computed to: else it would come out as any time, and a file of the year 2600 be centuries old.
func TimeOf(t time.Time) Time {
	switch year := t.UTC().Year(); {
	case t.IsZero():
		return 0
	case year < yearMin:
		return math.MinInt64 / 2
	case year > yearMax:
		return math.MaxInt64
	}
	return Time(t.UnixNano())
}

// The years that 64 bits of nanoseconds hold from end to end.
const (
	yearMin = 1678
	yearMax = 2261
)

// ErrOutOfTime: the instant is one that a Time cannot hold.
var ErrOutOfTime = fmt.Errorf("want a moment from %d to %d", yearMin, yearMax)

// ParseTime reads an instant as RFC 3339 writes it. Of another text the error wraps a
// *time.ParseError, and of an instant too far from now ErrOutOfTime.
func ParseTime(s string) (Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0, err
	}
	if y := t.UTC().Year(); y < yearMin || y > yearMax {
		return 0, ErrOutOfTime
	}
	return TimeOf(t), nil
}

// Std converts t to a time.Time in UTC; the absent Time becomes the zero time.Time.
func (t Time) Std() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(t)).UTC()
}

// Add returns t moved by d. Moving the absent Time leaves it absent.
func (t Time) Add(d time.Duration) Time {
	if t == 0 {
		return 0
	}
	return t + Time(d)
}

// Sub returns the duration from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// String gives RFC 3339 with the precision needed, and "absent" for the absent Time.
func (t Time) String() string {
	if t == 0 {
		return "absent"
	}
	return t.Std().Format(time.RFC3339Nano)
}

// Range is the offsets [Base, Next).
type Range struct {
	Base Offset `json:"base"`
	Next Offset `json:"next"`
}

// Empty reports whether r holds no offset.
func (r Range) Empty() bool { return r.Next <= r.Base }

// Contains reports whether o lies in r.
func (r Range) Contains(o Offset) bool { return r.Base <= o && o < r.Next }

// Covers reports whether every offset of s lies in r. Every range covers an empty one.
func (r Range) Covers(s Range) bool { return s.Empty() || r.Base <= s.Base && s.Next <= r.Next }

// Overlaps reports whether r and s share an offset.
func (r Range) Overlaps(s Range) bool {
	return !r.Empty() && !s.Empty() && r.Base < s.Next && s.Base < r.Next
}

// String gives "[base, next)".
func (r Range) String() string { return fmt.Sprintf("[%d, %d)", r.Base, r.Next) }

// RangeSet is a set of offsets as ascending, disjoint, non-adjacent, non-empty ranges.
type RangeSet []Range

// Add returns the set with r joined in. The receiver is not changed.
func (s RangeSet) Add(r Range) RangeSet {
	if r.Empty() {
		return slices.Clone(s)
	}
	out := make(RangeSet, 0, len(s)+1)
	i := 0
	for ; i < len(s) && s[i].Next < r.Base; i++ {
		out = append(out, s[i])
	}
	for ; i < len(s) && s[i].Base <= r.Next; i++ {
		r = Range{min(r.Base, s[i].Base), max(r.Next, s[i].Next)}
	}
	out = append(out, r)
	return append(out, s[i:]...)
}

// Subtract returns the set without the offsets of r. The receiver is not changed.
func (s RangeSet) Subtract(r Range) RangeSet {
	out := make(RangeSet, 0, len(s)+1)
	for _, x := range s {
		if !x.Overlaps(r) {
			out = append(out, x)
			continue
		}
		if left := (Range{x.Base, r.Base}); !left.Empty() {
			out = append(out, left)
		}
		if right := (Range{r.Next, x.Next}); !right.Empty() {
			out = append(out, right)
		}
	}
	return out
}

// Covers reports whether every offset of r lies in the set.
func (s RangeSet) Covers(r Range) bool {
	if r.Empty() {
		return true
	}
	for _, x := range s {
		if x.Contains(r.Base) {
			return x.Covers(r)
		}
	}
	return false
}

// Contains reports whether o lies in the set.
func (s RangeSet) Contains(o Offset) bool { return s.Covers(Range{o, o + 1}) }
