package daemon

import (
	"testing"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// TestHolder: an offset is in the segment that has it, also where several are active; the last one
// alone has what was written since the scan.
func TestHolder(t *testing.T) {
	t.Parallel()
	view := func(base, next tier.Offset, local bool, state string) engine.SegmentView {
		return engine.SegmentView{Range: tier.Range{Base: base, Next: next}, Local: local,
			Remote: !local, State: state}
	}
	list := []engine.SegmentView{view(0, 10, false, "copied"), view(10, 20, true, "active"),
		view(20, 30, true, "active"), view(30, 30, true, "active")}
	for o, want := range map[tier.Offset]tier.Offset{0: 0, 9: 0, 10: 10, 19: 10, 20: 20, 29: 20,
		30: 30, 34: 30} {
		if v := holder(list, o, 35); v == nil || v.Range.Base != want {
			t.Errorf("offset %d is in %+v, want the segment at %d", o, v, want)
		}
	}
	if v := holder(list[:3], 30, 30); v != nil {
		t.Errorf("offset 30 is in %+v, want none", v)
	}
}
