package rego_test

import (
	"context"
	"testing"

	"github.com/tierd/tierd/runtime/tier"
)

// TestReplay: the answer differs where the policies keep today, or cannot say; other reasons for
// the same answer are told apart.
func TestReplay(t *testing.T) {
	t.Parallel()
	f := segmentOf(25 * hour)
	then, err := load(t).Decide(context.Background(), f)
	if err != nil || !then.Delete {
		t.Fatalf("%+v, %v", then, err)
	}
	in := savedInput(t, f)
	for name, c := range map[string]struct {
		source                 string
		then                   []tier.Reason
		kept, fails, otherwise bool
	}{
		"the same":     {"", then.Reasons, false, false, false},
		"held":         {holdOrders, then.Reasons, true, false, false},
		"another held": {holdOthers, then.Reasons, false, false, false},
		"no answer": {"package tierd.x\ndeny contains input.now_ns if true", then.Reasons, true,
			true, false},
		"other reasons": {"", []tier.Reason{{Code: "legacy"}}, false, false, true},
		"one more": {"package tierd.x\nexpire contains \"x\" if true", then.Reasons, false, false,
			true},
		"another text": {"", []tier.Reason{{Code: then.Reasons[0].Code, Text: "x", Rule: "y:1"}},
			false, false, false},
	} {
		set := load(t)
		if c.source != "" {
			set = load(t, "x.rego", c.source)
		}
		r := set.Replay(context.Background(), in, c.then)
		if r.Kept() != c.kept || (r.Err != nil) != c.fails || r.OtherReasons != c.otherwise {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
