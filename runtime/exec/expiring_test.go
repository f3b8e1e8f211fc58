package exec

import (
	"context"
	"testing"
	"time"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// TestOutOfLog: a copy is out of its log where ledger and manifest say so, and its readers have the
// grace from then on.
func TestOutOfLog(t *testing.T) {
	t.Parallel()
	const at, grace = tier.Time(1000), tier.Time(100)
	moved := func(start tier.Offset) tier.LogState {
		return tier.LogState{LogStart: start, Moves: []tier.StartMove{{Start: start, At: at}}}
	}
	unpublished := moved(10)
	unpublished.Unpublished = []tier.Position{3}
	cut := tier.LogState{Clips: []tier.Clip{{Position: 5, Offset: 0, At: at}}}
	half := tier.LogState{Clips: []tier.Clip{{Position: 5, Offset: 5, At: at}}}
	for name, c := range map[string]struct {
		state     tier.LogState
		now       tier.Time
		out, over tier.Truth
	}{
		"in the log":                  {tier.LogState{}, at + grace, tier.No, tier.No},
		"its start lies within":       {moved(9), at + grace, tier.No, tier.No},
		"readers have a moment left":  {moved(10), at + grace - 1, tier.Yes, tier.No},
		"readers had their time":      {moved(10), at + grace, tier.Yes, tier.Yes},
		"not in the manifest yet":     {unpublished, at + grace, tier.Unknown, tier.Unknown},
		"cut off, a moment ago":       {cut, at + grace - 1, tier.Yes, tier.No},
		"cut off":                     {cut, at + grace, tier.Yes, tier.Yes},
		"half of it was cut off":      {half, at + grace, tier.No, tier.No},
		"no reader ever saw it there": {tier.LogState{LogStart: 10}, at, tier.Yes, tier.Yes},
	} {
		cp := tier.Copy{Position: 4, Content: tier.Content{Range: tier.Range{Base: 0, Next: 10}}}
		out, over := outOfLog(c.state, tier.TableState{State: tier.Enabled}, &cp, c.now, grace)
		if out != c.out || over != c.over {
			t.Errorf("%s: out %s, over %s; want %s and %s", name, out, over, c.out, c.over)
		}
	}
}

// expireEffect proposes the copies at the positions, in this order.
func (r *rig) expireEffect(positions ...tier.Position) engine.Expire {
	r.t.Helper()
	f := engine.Expire{ID: 5, Log: orders, Source: "wal"}
	for _, pos := range positions {
		cp, err := r.ledger.Copy(orders, pos)
		r.must(err)
		f.Segments = append(f.Segments, engine.RemoteCandidate{Remote: cp.Remote()})
		f.Remote.Segments++
		f.Remote.Bytes += cp.Content.Bytes()
	}
	return f
}

// copiedFrom copies what the file of the base has, up to next, as an attempt of its own.
func (r *rig) copiedFrom(base, next tier.Offset, leaders ...tier.EpochStart) tier.Position {
	r.t.Helper()
	ctx := context.Background()
	content, err := r.source.Source.Read(ctx, orders, r.segment(base).Range)
	r.must(err)
	content.Range.Next, content.Lineage = next, leaders
	r.attempts++
	a := tier.Attempt{ID: tier.AttemptID{15: r.attempts}, Epoch: 1, Range: content.Range,
		Names: []string{content.Files[0].Name}, StartedAt: r.now}
	pos, err := r.ledger.Append(ctx, tier.CopyStarted{Log: orders, Attempt: a})
	r.must(err)
	_, err = r.ledger.Append(ctx, tier.CopyFinished{Log: orders, Copy: tier.Copy{Attempt: a.ID,
		Position: pos, Epoch: 1, Content: content, Verified: tier.VerifyFull, FinishedAt: r.now}})
	r.must(err)
	return pos
}

// keeping answers each question in order, and deletes from then on.
func (r *rig) keeping(which int) {
	n := 0
	r.asked = func() {
		r.answer = gate.Decision{Delete: n != which, Reasons: []tier.Reason{{Code: tier.CodeDenied}}}
		n++
	}
}

// TestAStartMovesOverAPrefixAlone: an expiry goes from the beginning of the log on, over what was
// copied without a gap, and not over a copy that stays.
func TestAStartMovesOverAPrefixAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make  func(*rig) []tier.Position
		start tier.Offset // where the log begins then
		code  tier.Code   // for which the first copy that stays does
	}{
		"one by one": {func(r *rig) []tier.Position {
			return []tier.Position{r.copied(0), r.copied(10)}
		}, 20, ""},
		"one stays": {func(r *rig) []tier.Position {
			r.keeping(1)
			return []tier.Position{r.copied(0), r.copied(10)}
		}, 10, tier.CodeDenied},
		"one reaches over the one that stays": {func(r *rig) []tier.Position {
			r.keeping(1)
			return []tier.Position{r.copiedFrom(0, 30), r.copied(10)}
		}, 0, tier.CodeDenied},
		"one ends within another": {func(r *rig) []tier.Position {
			return []tier.Position{r.copiedFrom(0, 30), r.copied(10)}
		}, 30, ""},
		"there is a gap": {func(r *rig) []tier.Position {
			return []tier.Position{r.copied(0), r.copied(20)}
		}, 10, tier.CodePrefixBlocked},
		"something below is copied still": {func(r *rig) []tier.Position {
			return []tier.Position{r.copied(10)}
		}, 0, tier.CodePrefixBlocked},
		"it was cut off": {func(r *rig) []tier.Position {
			pos := r.copied(0)
			clip, err := r.ledger.Append(context.Background(), tier.Diverged{Log: orders, Offset: 5,
				At: r.now})
			r.must(err)
			want[engine.Done](r, r.do(engine.Publish{ID: 8, Log: orders, Position: clip}))
			return []tier.Position{pos}
		}, 5, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.roll(4)
			r.opened()
			f := r.expireEffect(c.make(r)...)
			r.now += tier.Time(2 * time.Hour)
			var kept *engine.KeptRemote
			switch res := r.do(f).(type) {
			case engine.StaysAll:
				kept = &res.Kept
			case engine.Moved:
				kept = res.Kept
			default:
				t.Fatalf("%T %+v", res, res)
			}
			if s, _ := r.ledger.Log(orders); s.LogStart != c.start {
				t.Errorf("the log begins at %d, want %d", s.LogStart, c.start)
			}
			if (kept != nil) != (c.code != "") || kept != nil && kept.Reasons[0].Code != c.code {
				t.Errorf("kept %+v, want one for %q", kept, c.code)
			}
		})
	}
}

// TestAClipCountsWhereNothingIsCopied: with tiering off nothing is asked of the copied offset, and
// what a clip cut off a copy leaves no start behind it.
func TestAClipCountsWhereNothingIsCopied(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(2)
	r.opened()
	f := r.expireEffect(r.copied(0))
	_, err := r.ledger.Append(context.Background(), tier.Diverged{Log: orders, Offset: 5, At: r.now})
	r.must(err)
	r.tiering = false
	r.changes(tier.TierChanged{State: tier.Disabling, Epoch: 2, Policy: tier.PolicyRetain},
		tier.TierChanged{State: tier.Disabled, Epoch: 2, Policy: tier.PolicyRetain})
	if m := want[engine.Moved](r, r.do(f)); m.Start != 5 {
		t.Errorf("moved to %d, want 5", m.Start)
	}
}

// TestThePolicyIsTheOneThatWasFixed when tiering was turned off, whatever the configuration says by
// now.
func TestThePolicyIsTheOneThatWasFixed(t *testing.T) {
	t.Parallel()
	for _, policy := range []tier.DisablePolicy{tier.PolicyRetain, tier.PolicyDelete} {
		r, f := expiredRig(t)
		r.changes(tier.TierChanged{State: tier.Disabling, Epoch: 2, Policy: policy})
		r.policy = tier.PolicyRetain
		if policy == tier.PolicyRetain {
			r.policy = tier.PolicyDelete
		}
		f.Action = tier.DisableDelete
		done := want[engine.Removed](r, r.do(f))
		if (len(done.Positions) == 1) != (policy == tier.PolicyDelete) {
			t.Errorf("disabled with %s: %+v", policy, done)
		}
	}
}

// TestAnOldLedgerRemovesNothing: its manifest knows more than it does.
func TestAnOldLedgerRemovesNothing(t *testing.T) {
	t.Parallel()
	newer := func(r *rig) {
		start := tier.Offset(0)
		r.must(r.store().PutFact(context.Background(), orders, tier.AttemptID{}, tier.Fact{
			Position: 70, Epoch: 1, Start: &start, At: r.now}))
	}
	r, f := expiredRig(t)
	newer(r)
	done := want[engine.Removed](r, r.do(f))
	if len(done.Kept) != 1 || done.Kept[0].Reasons[0].Code != tier.CodeLedgerStale {
		t.Errorf("removal: %+v, want it kept", done)
	}
	r = newRig(t)
	r.roll(2)
	r.opened()
	e := r.expireEffect(r.copied(0))
	newer(r)
	if k := want[engine.StaysAll](r, r.do(e)).Kept; k.Reasons[0].Code != tier.CodeLedgerStale {
		t.Errorf("expiry: %+v, want it kept", k)
	}
	r.boot() // a process that has not looked yet
	res, err := r.x.diverge(context.Background(), orders, 5, 2, 1)
	r.must(err)
	if x := want[engine.Failed](r, res); x.Reason.Code != tier.CodeLedgerStale {
		t.Errorf("divergence: not recorded for %+v", x)
	}
}
