package exec

import (
	"context"
	"fmt"
	"testing"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// denying are policies that deny segments from a base on, and count the questions by base.
type denying struct {
	from  tier.Offset
	asked map[tier.Offset]int
	times []tier.Time
}

// Decide implements gate.Policies.
func (d *denying) Decide(_ context.Context, f *gate.Facts) (gate.Decision, error) {
	if d.asked == nil {
		d.asked = map[tier.Offset]int{}
	}
	d.asked[f.Seg.Range.Base]++
	d.times = append(d.times, f.Now)
	return gate.Decision{Delete: f.Seg.Range.Base < d.from,
		Digest: "p", Data: "d", Reasons: []tier.Reason{{Code: tier.CodeDenied, Text: "held"}}}, nil
}

// TestOneVerdictUpToTheFirstThatStays: of a log of five segments the third of which is denied,
// three are asked about, each once, and those behind it not at all.
func TestOneVerdictUpToTheFirstThatStays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(5)
	r.opened()
	var positions []tier.Position
	for i := range 5 {
		positions = append(positions, r.copied(tier.Offset(10*i)))
	}
	policies := &denying{from: 20}
	r.x.c.Generation = func() *Generation {
		g := r.generation()
		g.Gate = gate.New(policies)
		return g
	}
	d := want[engine.Deleted](r, r.do(r.deleteEffect(positions...)))
	if len(d.Gone) != 2 || d.Kept == nil || d.Kept.Segment.Base != 20 {
		t.Errorf("%+v", d)
	}
	if got := fmt.Sprint(policies.asked); got != "map[0:1 10:1 20:1]" {
		t.Errorf("asked about %s", got)
	}
	if a := r.audit.announced; len(a) != 2 || a[1].Digest != "p" || a[1].Data != "d" {
		t.Errorf("announced with other digests than were decided by: %+v", a)
	}
}

// TestPlanAsksEachQuestion: two questions about one log are asked on one look at each segment, each
// until its first that stays, at its time; and nothing is deleted.
func TestPlanAsksEachQuestion(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(4)
	r.opened()
	var positions []tier.Position
	for i := range 4 {
		positions = append(positions, r.copied(tier.Offset(10*i)))
	}
	looks := 0
	f := r.deleteEffect(positions...)
	r.source.seen = func(*tier.Scan) { looks++ }
	soon, late := &denying{from: 10}, &denying{from: 100}
	asked, err := r.x.PlanLocal(t.Context(), f, Question{Gate: gate.New(soon)},
		Question{Gate: gate.New(late), At: t0 + 5})
	r.must(err)
	if len(asked) != 2 || len(asked[0]) != 2 || len(asked[1]) != 4 {
		t.Fatalf("%d and %d answers: %+v", len(asked[0]), len(asked[1]), asked)
	}
	if a := asked[0]; !a[0].Verdict.Delete || a[1].Verdict.Delete || a[1].Range.Base != 10 {
		t.Errorf("the first question: %+v", a)
	}
	if a := asked[1]; !a[3].Verdict.Delete || a[3].Range.Base != 30 || late.times[3] != t0+5 ||
		soon.times[1] != t0 {
		t.Errorf("the second question: %+v at %v", a, late.times)
	}
	if got := fmt.Sprint(soon.asked, late.asked); got != "map[0:1 10:1] map[0:1 10:1 20:1 30:1]" {
		t.Errorf("asked about %s", got)
	}
	// One look for each segment, and one more for each but the first: is it the oldest by then?
	if looks != 7 {
		t.Errorf("the source was looked at %d times", looks)
	}
	if !r.there(fileName(0)) || len(r.audit.outcomes) > 0 {
		t.Error("a plan deleted something")
	}
}
