package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/vfs"
)

// ownersDeeds are what the owner of a log may do at any moment. Where the file is out of its place
// just then, it does nothing.
var ownersDeeds = map[string]func(*rig){
	"writes other content": func(r *rig) { _ = r.w.Write(orders, 0, Content(orders, 0, 2)) },
	"writes it again":      func(r *rig) { _ = r.w.Write(orders, 0, Content(orders, 0, 1)) },
	"appends to it":        func(r *rig) { r.grow() },
	"removes it":           func(r *rig) { _ = r.w.Remove(orders, 0) },
	"rolls":                func(r *rig) { _ = r.w.Append(orders, 1) },
	"writes a second file": func(r *rig) { _ = r.w.WriteCompanion(orders, 0, []byte("late")) },
}

// grow appends to the first segment, if it is there.
func (r *rig) grow() {
	if _, err := r.w.Disk.Stat(SegmentPath(orders, 0)); err == nil {
		_ = r.w.Grow(orders, 0, []byte("more\n"))
	}
}

// betweenHistories are those in which the first segment is worked on.
var betweenHistories = []string{
	"copy", "copy of a segment with two files", "copy that finds the same content",
	"resolve an attempt whose files are there", "record a hole and publish it",
	"delete a segment", "delete a segment with two files", "delete a segment that was touched",
}

// TestTheOwnerComesInBetween lets the owner of the log act right before each operation of an
// effect: between the look and the deed, under the upload, in the middle of a drop. Every promise
// holds, and all that is closed in the end is copied.
func TestTheOwnerComesInBetween(t *testing.T) {
	t.Parallel()
	for i := range histories {
		h := &histories[i]
		if !slices.Contains(betweenHistories, h.name) {
			continue
		}
		for deed, do := range ownersDeeds {
			t.Run(h.name+"/the owner "+deed, func(t *testing.T) {
				t.Parallel()
				for n := 0; ; n++ {
					r := newRig(t)
					h.before(r)
					r.n, r.fate = n, Proceed
					r.meanwhile = func() {
						r.w.Advance(time.Millisecond)
						do(r)
					}
					r.sweep(h, n, Proceed)
					if !r.fired {
						return
					}
					at := r.met[n]
					if at.Kind == string(vfs.OpRemove) && strings.HasSuffix(at.Name, Companion) {
						continue // by its name alone a file is unlinked: this one moment is left
					}
					r.settleBeside()
					for _, v := range r.oracle.Violations() {
						t.Errorf("before %q: %s", at, v)
					}
					if t.Failed() {
						return
					}
				}
			})
		}
	}
}

// settleBeside lets the world come to rest. A file that the owner wrote while the one of that name
// was in the trash keeps the latter there, for an operator to see; then the log waits.
func (r *rig) settleBeside() {
	for range settleRounds {
		r.do(r.w.Run())
		r.w.Advance(time.Minute)
	}
	stuck := slices.ContainsFunc(r.w.files(orders), func(f file) bool { return f.place == pending })
	if !stuck {
		r.oracle.Quiet()
	}
}
