package tier_test

import (
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// TestBrakeWindow: a window is over after its time, and where the clock went back before it.
func TestBrakeWindow(t *testing.T) {
	t.Parallel()
	const began, per = tier.Time(1000), 100 * time.Nanosecond
	w := tier.BrakeWindow{Since: began, Segments: 3, Bytes: 30}
	for now, want := range map[tier.Time]tier.BrakeWindow{
		began: w, began + 99: w, began + 100: {Since: began + 100}, began - 1: {Since: began - 1},
	} {
		if got := w.At(now, per); got != want {
			t.Errorf("at %d: %+v, want %+v", now, got, want)
		}
	}
	if got := (tier.BrakeWindow{Segments: 3}).At(50, per); got != (tier.BrakeWindow{Since: 50}) {
		t.Errorf("one that never began: %+v", got)
	}
	more := w.Plus(1, 5)
	if more != (tier.BrakeWindow{Since: began, Segments: 4, Bytes: 35}) {
		t.Errorf("with one more: %+v", more)
	}
	for brake, over := range map[tier.Brake]bool{
		{MaxSegments: 4, MaxBytes: 35}: false, {MaxSegments: 3, MaxBytes: 35}: true,
		{MaxSegments: 4, MaxBytes: 34}: true, {}: true} {
		if got := brake.Exceeded(more); got != over {
			t.Errorf("%+v exceeds %+v: %t", more, brake, got)
		}
	}
}

// TestLogIDs: an id is split at its last slash, and none leads out of its directory.
func TestLogIDs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]tier.LogID{
		"orders/0": {Table: "orders", Name: "0"},
		"a/b/c":    {Table: "a/b", Name: "c"},
		"..a/.b":   {Table: "..a", Name: ".b"},
	} {
		if got, err := tier.ParseLogID(text); err != nil || got != want || got.String() != text {
			t.Errorf("%q is %+v (%v), want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "orders", "/", "orders/", "/0", "./0", "../0", "a/../0", "a/.",
		"a/..", "a//0", "a\n/0", "a/\x7f", "a/\xff", "\xff/a"} {
		if got, err := tier.ParseLogID(text); err == nil {
			t.Errorf("%q is taken for %+v", text, got)
		}
	}
	for _, id := range []tier.LogID{{Table: "a", Name: "b/c"}, {Table: "a"}, {Name: "b"}} {
		if id.Validate() == nil {
			t.Errorf("%+v is valid", id)
		}
	}
}

// TestMarks: the mark of files changes with the name of each, and with whatever its stat says.
func TestMarks(t *testing.T) {
	t.Parallel()
	s := tier.Stat{Inode: 1, Size: 2, ModTime: 3}
	seen := map[tier.Mark]string{}
	for what, m := range map[string]tier.Mark{
		"the file":      tier.MarkOf("a.sum", s),
		"another name":  tier.MarkOf("b.sum", s),
		"another inode": tier.MarkOf("a.sum", tier.Stat{Inode: 9, Size: 2, ModTime: 3}),
		"another size":  tier.MarkOf("a.sum", tier.Stat{Inode: 1, Size: 9, ModTime: 3}),
		"another time":  tier.MarkOf("a.sum", tier.Stat{Inode: 1, Size: 2, ModTime: 9}),
		"a large time":  tier.MarkOf("a.sum", tier.Stat{Inode: 1, Size: 2, ModTime: 3 + 1<<40}),
	} {
		if other, known := seen[m]; known {
			t.Errorf("%s and %s have one mark", what, other)
		}
		seen[m] = what
	}
}

// TestDigestsInText: a digest is read as it is written, and nothing else is.
func TestDigestsInText(t *testing.T) {
	t.Parallel()
	want := tier.SHA256{0: 0xab, 31: 0xcd}
	text, err := want.MarshalText()
	var got tier.SHA256
	if err != nil || got.UnmarshalText(text) != nil || got != want {
		t.Errorf("%s is read as %s (%v)", text, got, err)
	}
	for _, bad := range []string{"", string(text[2:]), string(text) + "00", "zz" + string(text[2:])} {
		if got.UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q is taken for %s", bad, got)
		}
	}
}

// TestFrozen: a table that had an entry of its own does not fall to the defaults, and one that no
// entry governs is not touched.
func TestFrozen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		entry, governor string
		governed, want  bool
	}{
		"nothing governs it":            {"", "", false, true},
		"an entry that is not any more": {"tables/orders", "", false, true},
		"its entry":                     {"tables/orders", "tables/orders", true, false},
		"another entry":                 {"tables/orders", "tables/o*", true, false},
		"the defaults":                  {"tables/orders", tier.GovernedByDefaults, true, true},
		"always the defaults":           {tier.GovernedByDefaults, tier.GovernedByDefaults, true, false},
		"the defaults, and it is new":   {"", tier.GovernedByDefaults, true, false},
	} {
		s := tier.TableState{Entry: c.entry}
		if got := s.Frozen(tier.Table{Governor: c.governor}, c.governed); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
