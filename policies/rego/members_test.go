package rego

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/tier"
)

// TestInputIsTheSameAsJSON: what is recorded, and by what answers are remembered, is what policies
// are asked, with keys that ascend, whatever is there and whatever is not.
func TestInputIsTheSameAsJSON(t *testing.T) {
	t.Parallel()
	of := func(change func(*gate.Facts)) *gate.Facts {
		f := &gate.Facts{Action: tier.DeleteLocal, Now: 9,
			Table: tier.Table{Name: `or"ders`, TTL: time.Hour, DisablePolicy: tier.PolicyRetain},
			Log: gate.LogFacts{ID: tier.LogID{Table: "orders", Name: "<0>"}, Layout: tier.LayoutPlain,
				State: tier.Enabled, Epoch: 3, Copied: 4, LocalBytes: -1},
			Seg:    gate.SegmentFacts{Range: tier.Range{Base: 5, Next: 6}, ModTime: 7},
			Node:   gate.NodeFacts{Name: "node", DiskFreeBytes: 1 << 62},
			Safety: gate.SafetyFacts{DropWay: tier.LocalDeleteUnlink}}
		change(f)
		return f
	}
	for name, f := range map[string]*gate.Facts{
		"little": of(func(*gate.Facts) {}),
		"everything": of(func(f *gate.Facts) {
			limit := tier.Limit{Set: true, Value: 12}
			f.Table.Labels = map[string]string{"team": "é", "a": ""}
			f.Table.Bytes, f.Table.LocalBytes, f.Table.LocalSegments = limit, limit, limit
			f.Table.Tiering, f.Table.Compacted = true, tier.Yes
			f.Log.HasHighWatermark, f.Log.HighWatermark = true, 99
			f.Seg.MaxTime, f.Seg.CopiedAt, f.Seg.Verified = 8, 8, true
			f.Safety.Remote.OutOfLog = tier.Yes
			f.Extern = map[string]any{"legal": map[string]any{"hold": []any{1.5, nil}}, "a": false}
		}),
	} {
		v, err := inputOf(f)
		if err != nil {
			t.Fatal(err)
		}
		want, err := appendJSON(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := InputJSON(f)
		if err != nil || string(got) != string(want) || !json.Valid(got) {
			t.Errorf("%s: %v,\n%s, want\n%s", name, err, got, want)
		}
		var of [membersMax]member
		for _, list := range [][]member{logMembers(of[:0], &f.Log), tableMembers(of[:0], f),
			segmentMembers(of[:0], f), nodeMembers(of[:0], &f.Node)} {
			if len(list) == 0 || &list[0] != &of[0] {
				t.Errorf("%s: %d members are more than membersMax", name, len(list))
			}
		}
	}
}
