package tier

import "testing"

// TestLeft: what takes a copy out of its log, and since when.
func TestLeft(t *testing.T) {
	t.Parallel()
	const before, since, after = Time(50), Time(100), Time(150)
	enabled := TableState{State: Enabled, Since: since}
	leaving := TableState{State: Disabling, Policy: PolicyDelete, Since: since}
	retained := TableState{State: Disabled, Policy: PolicyRetain, Since: since}
	moved := func(start Offset, at Time, cause MoveCause) LogState {
		return LogState{LogStart: start, Moves: []StartMove{{Start: start, At: at, Cause: cause}}}
	}
	copied := Range{Base: 10, Next: 20}
	for _, c := range []struct {
		what  string
		log   LogState
		table TableState
		epoch TierEpoch
		in    Range
		at    Time
		left  bool
	}{
		{"nothing happened", LogState{}, enabled, 1, copied, 0, false},
		{"the start passed it", moved(20, after, MoveExpired), enabled, 1, copied, after, true},
		{"the start cuts it", moved(15, after, MoveExpired), enabled, 1, copied, 0, false},
		{"all leave, wherever the start is", moved(0, after, MoveDisabled), leaving, 1, copied, after,
			true},
		{"all leave with a drop", moved(0, since, MoveDropped), leaving, 1, copied, since, true},
		{"a move of an older disablement", moved(0, before, MoveDisabled), leaving, 1, copied, 0, false},
		{"an expiry takes not all", moved(0, after, MoveExpired), leaving, 1, copied, 0, false},
		{"retained", moved(0, after, MoveDisabled), retained, 1, copied, 0, false},
		{"of an epoch that counts no more", LogState{Fresh: 3}, enabled, 1, copied, since, true},
		{"of the one that does", LogState{Fresh: 3}, enabled, 3, copied, 0, false},
		{"it finished after its range had left", LogState{LogStart: 20}, enabled, 1, copied, 0, true},
		{"a clip left nothing", LogState{Clips: []Clip{{Position: 9, Offset: 5, At: before}}}, enabled, 1,
			Range{Base: 10, Next: 5}, before, true},
		{"a clip left some", LogState{Clips: []Clip{{Position: 9, Offset: 15, At: before}}}, enabled, 1,
			Range{Base: 10, Next: 15}, 0, false},
		{"a clip cut what reached beyond the start", LogState{LogStart: 15,
			Moves: []StartMove{{Start: 15, At: before}},
			Clips: []Clip{{Position: 9, Offset: 15, At: after}}}, enabled, 1,
			Range{Base: 10, Next: 15}, after, true},
		{"a clip cut what finished late", LogState{LogStart: 15,
			Clips: []Clip{{Position: 9, Offset: 15, At: after}}}, enabled, 1,
			Range{Base: 10, Next: 15}, after, true},
		{"a clip cut it, and the start passed what is left", LogState{LogStart: 15,
			Moves: []StartMove{{Start: 15, At: after}},
			Clips: []Clip{{Position: 9, Offset: 15, At: before}}}, enabled, 1,
			Range{Base: 10, Next: 15}, after, true},
		{"a clip cut it, and the start lies within what is left", LogState{LogStart: 12,
			Moves: []StartMove{{Start: 12, At: before}},
			Clips: []Clip{{Position: 9, Offset: 15, At: after}}}, enabled, 1,
			Range{Base: 10, Next: 15}, 0, false},
		{"a clip behind it cut nothing", LogState{LogStart: 20,
			Moves: []StartMove{{Start: 20, At: before}},
			Clips: []Clip{{Position: 9, Offset: 25, At: after}}}, enabled, 1, copied, before, true},
		{"the first of two moves counts", LogState{LogStart: 30, Moves: []StartMove{
			{Start: 20, At: before}, {Start: 30, At: after}}}, enabled, 1, copied, before, true},
	} {
		at, left := Left(&c.log, &c.table, 3, c.epoch, c.in)
		if at != c.at || left != c.left {
			t.Errorf("%s: since %d, %t; want %d, %t", c.what, at, left, c.at, c.left)
		}
	}
}
