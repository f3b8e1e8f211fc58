package tier_test

import (
	"testing"

	"github.com/tierd/tierd/runtime/tier"
)

// bound is how far the offsets go that ranges are tried with.
const bound = 7

// ranges are all of offsets up to the bound, empty ones and ones turned round among them.
func ranges() (out []tier.Range) {
	for base := range tier.Offset(bound) {
		for next := range tier.Offset(bound) {
			out = append(out, tier.Range{Base: base, Next: next})
		}
	}
	return out
}

// offsets are those of the range, a bit each.
func offsets(r tier.Range) (bits uint) {
	for o := r.Base; o < r.Next; o++ {
		bits |= 1 << o
	}
	return bits
}

// TestRanges: ranges are sets of offsets, and each question about them is one of sets.
func TestRanges(t *testing.T) {
	t.Parallel()
	for _, a := range ranges() {
		for o := range tier.Offset(bound) {
			if got := a.Contains(o); got != (offsets(a)&(1<<o) != 0) {
				t.Errorf("%s contains %d: %t", a, o, got)
			}
		}
		for _, b := range ranges() {
			x, y := offsets(a), offsets(b)
			if got := a.Covers(b); got != (x|y == x) {
				t.Errorf("%s covers %s: %t", a, b, got)
			}
			if got := a.Overlaps(b); got != (x&y != 0) {
				t.Errorf("%s overlaps %s: %t", a, b, got)
			}
			if got := (tier.RangeSet{}).Add(a).Add(b); ofSet(t, got) != x|y {
				t.Errorf("%s and %s are %v", a, b, got)
			}
		}
	}
}

// ofSet are the offsets of a set that is as it is to be: ascending ranges that do not touch.
func ofSet(t *testing.T, s tier.RangeSet) (bits uint) {
	t.Helper()
	for i, r := range s {
		if r.Empty() || i > 0 && r.Base <= s[i-1].Next {
			t.Errorf("%v is no set", s)
		}
		bits |= offsets(r)
	}
	return bits
}

// TestRangeSets: a set of three ranges takes another in, lets it go, and knows whether it has it.
func TestRangeSets(t *testing.T) {
	t.Parallel()
	s := tier.RangeSet{{Base: 0, Next: 1}, {Base: 2, Next: 4}, {Base: 5, Next: 6}}
	has := ofSet(t, s)
	for _, r := range ranges() {
		x := offsets(r)
		if got := s.Add(r); ofSet(t, got) != has|x {
			t.Errorf("%v and %s are %v", s, r, got)
		}
		if got := s.Subtract(r); ofSet(t, got) != has&^x {
			t.Errorf("%v without %s are %v", s, r, got)
		}
		if got := s.Covers(r); got != (has|x == has) {
			t.Errorf("%v covers %s: %t", s, r, got)
		}
	}
	if ofSet(t, s) != has {
		t.Errorf("the set itself became %v", s)
	}
}

// TestShare: a part has as much of the bytes as of the offsets, and an empty one nothing.
func TestShare(t *testing.T) {
	t.Parallel()
	whole := tier.Range{Base: 10, Next: 20}
	for part, want := range map[tier.Range]int64{whole: 100, {Base: 10, Next: 15}: 50,
		{Base: 15, Next: 15}: 0, {Base: 15, Next: 12}: 0} {
		if got := tier.Share(100, part, whole); got != want {
			t.Errorf("%s: %d, want %d", part, got, want)
		}
	}
	if got := tier.Share(100, whole, tier.Range{}); got != 0 {
		t.Errorf("of nothing: %d, want 0", got)
	}
}
