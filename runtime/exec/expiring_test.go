package exec

import (
	"context"
	"testing"
	"time"

	"github.com/tierd/tierd/objstore/fault"
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
		"there is a hole": {func(r *rig) []tier.Position {
			all, before := []tier.Position{r.copied(0)}, r.segment(0)
			r.must(r.disk.Remove("wal/orders/0/" + fileName(10)))
			want[engine.HoleDone](r, r.do(engine.RecordHole{ID: 6, Log: orders, Source: "wal",
				Range: tier.Range{Base: 10, Next: 20}, Cause: tier.HoleSourceGone,
				Before: before}))
			return append(all, r.copied(20))
		}, 10, tier.CodePrefixBlocked},
		"something below is copied still": {func(r *rig) []tier.Position {
			return []tier.Position{r.copied(10)}
		}, 0, tier.CodePrefixBlocked},
		"a copy below was not asked about": {func(r *rig) []tier.Position {
			r.copied(0)
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

// TestWhatIsLeftIsAskedAbout: a limit of size lets go what exceeds it, and not all the same.
func TestWhatIsLeftIsAskedAbout(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(3)
	r.opened()
	f := r.expireEffect(r.copied(0), r.copied(10))
	f.Remote.Range = tier.Range{Base: 0, Next: 20}
	want[engine.Moved](r, r.do(f))
	if n := len(r.facts); n != 2 {
		t.Fatalf("asked %d times, want twice", n)
	}
	if a, b := r.facts[0].Log, r.facts[1].Log; a.RemoteStart != 0 || b.RemoteStart != 10 ||
		a.RemoteBytes != f.Remote.Bytes || b.RemoteBytes != f.Segments[1].Bytes {
		t.Errorf("asked about %+v, then %+v", a, b)
	}
	all := engine.Extent{Range: tier.Range{Base: 5, Next: 30}, Segments: 1, Bytes: 7}
	for next, left := range map[tier.Offset]tier.Range{
		3: {Base: 5, Next: 30}, 20: {Base: 20, Next: 30}, 40: {Base: 30, Next: 30}} {
		got := without(all, engine.RemoteCandidate{Remote: tier.Remote{Bytes: 9,
			Range: tier.Range{Base: 0, Next: next}}})
		if want := (engine.Extent{Range: left}); got != want {
			t.Errorf("without what ends at %d: %+v, want %+v", next, got, want)
		}
	}
}

// TestACopyAheadMayGoWhereNothingIsCopied: with tiering off nothing below it is waited for.
func TestACopyAheadMayGoWhereNothingIsCopied(t *testing.T) {
	t.Parallel()
	r, all := disabled(t, 10)
	if m := want[engine.Moved](r, r.do(r.expireEffect(all...))); m.Start != 20 {
		t.Errorf("moved to %d, want 20", m.Start)
	}
}

// TestWhatWasDroppedGoes, whatever the configuration says of the table by now.
func TestWhatWasDroppedGoes(t *testing.T) {
	t.Parallel()
	r, f := expiredRig(t)
	_, err := r.ledger.Append(context.Background(), tier.TableDropped{Table: "orders", At: r.now})
	r.must(err)
	r.governed, f.Action = false, tier.DisableDelete
	if done := want[engine.Removed](r, r.do(f)); len(done.Positions) != 1 {
		t.Errorf("%+v, want it removed", done)
	}
}

// TestDenied: only an answer of the policies is one, which does not hold up DISABLED.
func TestDenied(t *testing.T) {
	t.Parallel()
	reasons := func(codes ...tier.Code) (out []tier.Reason) {
		for _, c := range codes {
			out = append(out, tier.Reason{Code: c})
		}
		return out
	}
	for name, c := range map[string]struct {
		v    gate.Verdict
		want bool
	}{
		"denied":    {gate.Verdict{Reasons: reasons(tier.CodeDenied)}, true},
		"it may go": {gate.Verdict{Delete: true, Reasons: reasons(tier.CodeDenied)}, false},
		"an error":  {gate.Verdict{Reasons: reasons(tier.CodeDenied, tier.CodePolicyError)}, false},
		"no fact":   {gate.Verdict{Reasons: reasons(tier.CodeFactUnknown)}, false},
		"the guard's": {gate.Verdict{Guard: reasons(tier.CodeClock),
			Reasons: reasons(tier.CodeClock)}, false},
	} {
		if got := denied(c.v); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
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

// TestAManifestThatCannotBeListed shows nothing, least of all that the ledger knows it.
func TestAManifestThatCannotBeListed(t *testing.T) {
	t.Parallel()
	r, f := expiredRig(t)
	r.bucket.SetHook(fault.On(fault.OpIter, fault.Effect{Err: errOut}))
	done := want[engine.Removed](r, r.do(f))
	if len(done.Kept) != 1 || done.Kept[0].Reasons[0].Code != tier.CodeLedgerStale {
		t.Errorf("removal: %+v, want it kept", done)
	}
	r.boot() // a process that has not looked yet
	if why := r.x.MayRecord(context.Background(), orders); why == nil ||
		why.Code != tier.CodeStoreError {
		t.Errorf("record: %+v, want it to wait", why)
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
