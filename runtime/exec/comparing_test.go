package exec

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// leaders are pairs of a leader epoch and its first offset.
func leaders(pairs ...int) (out []tier.EpochStart) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, tier.EpochStart{Epoch: tier.LeaderEpoch(pairs[i]),
			Start: tier.Offset(pairs[i+1])})
	}
	return out
}

// TestCompare: what was copied is cut off where a batch says so and nothing contradicts it, and
// nowhere else.
func TestCompare(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		batches []tier.EpochStart
		seen    func(*tier.Scan)
		want    engine.Result
		at      tier.Offset // where it was cut off
	}{
		"as it was copied":          {leaders(1, 0, 1, 5, 2, 10), nil, engine.Agreed{}, 0},
		"another leader":            {leaders(1, 0, 3, 5, 4, 12), nil, engine.Diverged{}, 5},
		"a batch without an epoch":  {leaders(-1, 5), nil, engine.Agreed{}, 0},
		"a batch that has no copy":  {leaders(7, 25), nil, engine.Agreed{}, 0},
		"a batch behind the copies": {leaders(7, 30), nil, engine.Agreed{}, 0},
		"the record has the batch's leader": {leaders(3, 5), func(s *tier.Scan) {
			s.Lineage = leaders(1, 0, 3, 5)
		}, engine.Diverged{}, 5},
		"the record has the copy's leader": {leaders(3, 5), func(s *tier.Scan) {
			s.Lineage = leaders(1, 0)
		}, engine.Failed{}, 0},
		"the record begins behind it": {leaders(3, 5), func(s *tier.Scan) {
			s.Lineage = leaders(4, 8)
		}, engine.Diverged{}, 5},
		"it ends before the copies do": {leaders(1, 0), func(s *tier.Scan) { s.LocalEnd = 5 },
			engine.Silent{}, 0},
		"it begins behind the batch": {leaders(3, 5), func(s *tier.Scan) { s.SourceStart = 10 },
			engine.Agreed{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.roll(4)
			r.opened()
			f := engine.Compare{ID: 4, Log: orders, Source: "wal", Copies: []tier.Position{
				r.copiedFrom(0, 10, leaders(1, 0)...), r.copiedFrom(10, 20, leaders(2, 10)...),
				r.copiedFrom(30, 40, leaders(2, 30)...)}}
			r.source.batches = c.batches
			r.source.seen = func(s *tier.Scan) {
				s.LocalEnd = 50
				if c.seen != nil {
					c.seen(s)
				}
			}
			if name == "a batch behind the copies" {
				f.Copies = f.Copies[:2]
			}
			if res := r.do(f); reflect.TypeOf(res) != reflect.TypeOf(c.want) {
				t.Fatalf("%T %+v, want %T", res, res, c.want)
			}
			s, _ := r.ledger.Log(orders)
			if (len(s.Clips) == 1) != (c.at > 0) || c.at > 0 && s.Clips[0].Offset != c.at {
				t.Errorf("cut off at %+v, want %d", s.Clips, c.at)
			}
			if c.at == 0 {
				return
			}
			// An engine that did not hear asks once more, and is told. One that did, and sees another
			// leader below, is told of that.
			again := want[engine.Diverged](r, r.do(f))
			f.Clips, r.source.batches = s.Clips[0].Position+1, leaders(9, 0)
			r.source.seen = nil
			below := want[engine.Diverged](r, r.do(f)).State.Clips
			if len(again.State.Clips) != 1 || below[len(below)-1].Offset != 0 {
				t.Errorf("asked again: cut off at %+v; below that: %+v", again.State.Clips, below)
			}
		})
	}
}

// TestWhatOnlyTheRecordSaysIsTold: it cuts nothing off, and where no batch could be read that would
// say the same, somebody has to know.
func TestWhatOnlyTheRecordSaysIsTold(t *testing.T) {
	t.Parallel()
	each := make([]int, 0, 20)
	for o := range 10 {
		each = append(each, 1, o)
	}
	for name, c := range map[string]struct {
		batches, record []tier.EpochStart
		from            tier.Offset
		told            string // what the text has; "" where there is none
	}{
		"from its beginning":      {nil, leaders(3, 0), 0, "epoch 3 at offset 0, the copy is of 1"},
		"behind a batch":          {leaders(1, 0), leaders(1, 0, 3, 2), 0, "epoch 3 at offset 2"},
		"before a batch":          {leaders(1, 9), leaders(3, 0, 4, 9), 0, "epoch 3 at offset 0"},
		"between two batches":     {leaders(1, 0, 1, 9), leaders(3, 4), 0, "epoch 3 at offset 4"},
		"from where is looked":    {nil, leaders(3, 0), 7, "epoch 3 at offset 7"},
		"the same":                {nil, leaders(1, 0), 0, ""},
		"behind the copy":         {nil, leaders(1, 0, 3, 10), 0, ""},
		"each batch was seen":     {leaders(each...), leaders(3, 0), 0, ""},
		"there is no such record": {nil, nil, 0, ""},
	} {
		r := newRig(t)
		r.roll(4)
		r.opened()
		var told []string
		r.x.c.Trouble = func(p tier.Problem) { told = append(told, string(p.Code)+" "+p.Text) }
		f := engine.Compare{ID: 4, Log: orders, Source: "wal", From: c.from,
			Copies: []tier.Position{r.copiedFrom(0, 10, leaders(1, 0)...)}}
		r.source.batches = c.batches
		r.source.seen = func(s *tier.Scan) { s.LocalEnd, s.Lineage = 50, c.record }
		want[engine.Agreed](r, r.do(f))
		if (len(told) == 1) != (c.told != "") || len(told) > 1 || len(told) == 1 &&
			!(strings.HasPrefix(told[0], string(tier.CodeLineage)) && strings.Contains(told[0], c.told)) {
			t.Errorf("%s: %q, want %q", name, told, c.told)
		}
	}
}

// TestNothingIsComparedWithHalfALog: what cannot be read may be what differs.
func TestNothingIsComparedWithHalfALog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(3)
	r.opened()
	f := engine.Compare{ID: 4, Log: orders, Source: "wal",
		Copies: []tier.Position{r.copiedFrom(0, 10, leaders(1, 0)...)}}
	r.source.batches = leaders(3, 5)
	r.must(r.disk.Symlink("nowhere", "wal/orders/0/"+fileName(5)))
	if x := want[engine.Failed](r, r.do(f)); x.Reason.Code != tier.CodeSourceUnread {
		t.Errorf("%+v, want it to wait until all can be read", x)
	}
}

// TestACopyOfAnEpochBeforeHasNoLineage that counts: it is not compared with what came later.
func TestACopyOfAnEpochBeforeHasNoLineage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(3)
	r.opened()
	pos := []tier.Position{r.copiedFrom(0, 10, leaders(1, 0)...)}
	if l, err := r.x.lineageOf(orders, append(pos, 77)); err != nil || len(l) != 1 {
		t.Errorf("%+v, %v; want that of one copy", l, err)
	}
	r.changes(tier.TierChanged{State: tier.Disabling, Epoch: 2, Policy: tier.PolicyDelete},
		tier.TierChanged{State: tier.Disabled, Epoch: 2, Policy: tier.PolicyDelete},
		tier.TierChanged{State: tier.Enabled, Epoch: 3})
	want[engine.Opened](r, r.do(engine.OpenEpoch{ID: 8, Log: orders, Source: "wal", Epoch: 3,
		Fresh: true}))
	if l, err := r.x.lineageOf(orders, pos); err != nil || len(l) != 0 {
		t.Errorf("%+v, %v; want none", l, err)
	}
}

// TestTheDirectoryHasAllThatTheBrokerHas: what the broker gives up may be more than what was seen.
func TestTheDirectoryHasAllThatTheBrokerHas(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*rig, *gate.OwnerFacts, *engine.Delete)
		code  tier.Code
	}{
		"it has": {func(*rig, *gate.OwnerFacts, *engine.Delete) {}, ""},
		"the broker has more behind it": {func(_ *rig, o *gate.OwnerFacts, _ *engine.Delete) {
			o.HighWatermark = 31
		}, tier.CodeSourceUnread},
		"the broker has more before it": {func(_ *rig, o *gate.OwnerFacts, _ *engine.Delete) {
			o.Start = -1
		}, tier.CodeSourceUnread},
		"nothing is copied": {func(_ *rig, _ *gate.OwnerFacts, f *engine.Delete) {
			f.Segments[0].Copied = false
		}, tier.CodeBroker},
		"the copy is gone": {func(_ *rig, _ *gate.OwnerFacts, f *engine.Delete) {
			f.Segments[0].Position = 77
		}, tier.CodeBroker},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, f := ready(t)
			o := gate.OwnerFacts{Asked: tier.Yes, SameLog: tier.Yes, Leads: tier.Yes, Deletes: tier.Yes,
				Begins: tier.Yes, Lineage: tier.Yes, HighWatermark: 30}
			r.source.seen = func(s *tier.Scan) { s.LocalEnd = 30 }
			r.source.drop = func(func() error) error { return nil }
			r.source.vet = func() gate.OwnerFacts { return o }
			c.spoil(r, &o, &f)
			res := r.do(f)
			if c.code != "" {
				r.kept(res, c.code)
			} else if d := want[engine.Deleted](r, res); len(d.Gone) != 1 {
				t.Errorf("%+v, want it given up", d)
			}
		})
	}
}

// TestWhatTheBrokerGaveUpIsForItToSay: the files of a segment that its broker was to give up tell
// nothing, and neither does a broker that is not asked, or of another log.
func TestWhatTheBrokerGaveUpIsForItToSay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		owner gate.OwnerFacts
		want  tier.OutcomeResult // "" while it cannot be told
	}{
		"it did": {gate.OwnerFacts{Asked: tier.Yes, SameLog: tier.Yes, Given: true},
			tier.OutcomeDeleted},
		"it did not":       {gate.OwnerFacts{Asked: tier.Yes, SameLog: tier.Yes}, tier.OutcomeKept},
		"it is silent":     {gate.OwnerFacts{SameLog: tier.Yes, Given: true}, ""},
		"another log's is": {gate.OwnerFacts{Asked: tier.Yes, Given: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := interrupted(t, false)
			r.source.vet = func() gate.OwnerFacts { return c.owner }
			r.must(r.x.ResolveIntents(context.Background()))
			o := r.audit.outcomes
			if (len(o) == 1) != (c.want != "") || c.want != "" && o[0].Result != c.want {
				t.Errorf("outcomes %+v, want %q", o, c.want)
			}
		})
	}
}
