package sim

import (
	"testing"

	"github.com/tierd/tierd/runtime/engine"
)

// TestASecondStartThatDoesMoreIsSeen: what it does beyond the first one is a breach of S13, also
// where nothing else would be.
func TestASecondStartThatDoesMoreIsSeen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		does func(*rig)
		want int
	}{
		"it does nothing": {func(*rig) {}, 0},
		"it writes a segment": {func(r *rig) {
			r.do(r.w.Append(orders, 1))
		}, 1},
		"it takes a segment away": {func(r *rig) { r.do(r.w.Remove(orders, 0)) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.copied(2)
			r.w.Kill()
			r.start()
			done := false
			r.w.Stepped = func(engine.Event, []engine.Effect) {
				if !done {
					done = true
					r.w.aside(func() { c.does(r) })
				}
			}
			r.do(r.w.startAgain())
			seen := 0
			for _, v := range r.oracle.Violations() {
				if v.Property == Recovered {
					seen++
				}
			}
			if seen != c.want || !done {
				t.Errorf("%d breaches, want %d; %v", seen, c.want, r.oracle.Violations())
			}
		})
	}
}
