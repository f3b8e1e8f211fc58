package exec

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// TestWhatIsCutOffGoesAsAnOrphanAfterTheGrace: only what a clip left nothing of, only when the
// manifest says so, and only when readers had their time. The executor establishes it, whatever was
// proposed.
func TestWhatIsCutOffGoesAsAnOrphanAfterTheGrace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(3)
	r.opened()
	whole, beyond := r.copied(0), r.copied(10)
	remove := func(pos tier.Position) engine.Removed {
		t.Helper()
		return want[engine.Removed](r, r.do(engine.Remove{ID: 7, Log: orders,
			Action: tier.DeleteOrphan, Copies: []engine.RemoteCandidate{{
				Remote: tier.Remote{Range: tier.Range{Base: 10, Next: 10}, Position: pos, Epoch: 1}}}}))
	}
	stays := func(when string, pos tier.Position, code tier.Code) {
		t.Helper()
		done := remove(pos)
		if len(done.Positions) > 0 || len(done.Kept) != 1 ||
			!slices.ContainsFunc(done.Kept[0].Reasons, func(x tier.Reason) bool { return x.Code == code }) {
			t.Fatalf("%s: %+v, want it kept for %s", when, done, code)
		}
	}
	stays("before it is cut off", beyond, tier.CodeNotProved)
	clip, err := r.ledger.Append(context.Background(),
		tier.Diverged{Log: orders, Offset: 10, At: r.now})
	r.must(err)
	stays("while the manifest does not say so", beyond, tier.CodeGrace)
	want[engine.Done](r, r.do(engine.Publish{ID: 8, Log: orders, Position: clip}))
	r.now += tier.Time(r.grace) - 1
	stays("before the grace is over", beyond, tier.CodeGrace)
	r.now++
	stays("what is not cut off", whole, tier.CodeNotProved)
	if done := remove(beyond); !slices.Equal(done.Positions, []tier.Position{beyond}) {
		t.Fatalf("after the grace: %+v, want it removed", done)
	}
	if state, _ := r.ledger.Log(orders); state.Copied != 10 {
		t.Errorf("the copied offset is %d, want 10", state.Copied)
	}
}

// TestAClippedCopyIsNoProof: of a file that is as it was when it was copied, too.
func TestAClippedCopyIsNoProof(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(2)
	r.opened()
	first := r.copied(0)
	r.now += tier.Time(2 * time.Hour)
	r.kept(r.do(r.deleteEffect(func() tier.Position {
		_, err := r.ledger.Append(context.Background(), tier.Diverged{Log: orders, Offset: 5, At: r.now})
		r.must(err)
		return first
	}())), tier.CodeLineage)
}

// TestAClipBehindACopyIsNotItsOwn: what was written anew lies behind it.
func TestAClipBehindACopyIsNotItsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(3)
	r.opened()
	f := r.deleteEffect(r.copied(0))
	r.copied(10)
	_, err := r.ledger.Append(context.Background(), tier.Diverged{Log: orders, Offset: 10, At: r.now})
	r.must(err)
	if d := want[engine.Deleted](r, r.do(f)); len(d.Gone) != 1 {
		t.Errorf("%+v, want it gone", d)
	}
}

// TestAgrees: the source's record is compared with what batches said, where both say something.
func TestAgrees(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		record, copied []tier.EpochStart
		want           bool
	}{
		"the same":                {leaders(1, 0, 2, 10), leaders(1, 0, 2, 10), true},
		"another leader":          {leaders(1, 0), leaders(1, 0, 2, 10), false},
		"no record":               {nil, leaders(1, 0), true},
		"a record of later ones":  {leaders(3, 20), leaders(1, 0), true},
		"batches without leaders": {leaders(3, 0), leaders(-1, 0), true},
	} {
		if got := agrees(c.record, c.copied); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestDisputes finds the lowest offset at which content and copies are of different leaders.
func TestDisputes(t *testing.T) {
	t.Parallel()
	run := func(pairs ...int) (out []tier.EpochStart) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, tier.EpochStart{Epoch: tier.LeaderEpoch(pairs[i]),
				Start: tier.Offset(pairs[i+1])})
		}
		return out
	}
	copies := lineage{
		{tier.Range{Base: 0, Next: 20}, 0, run(1, 0, 2, 10)},
		{tier.Range{Base: 10, Next: 30}, 2, run(3, 10)}, // newer, and counts where they overlap
		{tier.Range{Base: 30, Next: 40}, 1, nil},        // without epochs: says nothing
	}
	for name, c := range map[string]struct {
		lineage []tier.EpochStart
		next    tier.Offset
		at      tier.Offset // -1 if there is no dispute
	}{
		"the same":                       {run(1, 0, 3, 10), 30, -1},
		"another leader in the middle":   {run(1, 0, 3, 10, 4, 22), 30, 22},
		"an older leader goes on":        {run(1, 0), 30, 10},
		"another one from the beginning": {run(7, 0), 30, 0},
		"where the copies say nothing":   {run(1, 0, 3, 10, 9, 30), 40, -1},
		"no epochs":                      {nil, 30, -1},
		"it ends before they differ":     {run(1, 0), 10, -1},
	} {
		at, found := copies.disputes(&tier.Content{Lineage: c.lineage, LastNext: c.next})
		if found != (c.at >= 0) || found && at != c.at {
			t.Errorf("%s: %d, %t; want %d", name, at, found, c.at)
		}
	}
	if epoch, known := copies.at(25); epoch != 3 || !known || copies.end() != 40 {
		t.Errorf("at 25: %d, %t; they end at %d", epoch, known, copies.end())
	}
}
