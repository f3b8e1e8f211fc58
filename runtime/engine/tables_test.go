package engine

import (
	"testing"

	"github.com/tierd/tierd/runtime/tier"
)

// tables are those of the tests in each state, in epoch 2.
func tableIn(s tier.TierState, p tier.DisablePolicy) tier.TableState {
	return tier.TableState{Table: "orders", State: s, Policy: p, Epoch: 2, Since: epochStart}
}

// TestTend: which step of its tiering a table takes, and that it waits for what is under way.
func TestTend(t *testing.T) {
	t.Parallel()
	retain, del := tier.PolicyRetain, tier.PolicyDelete
	off := func(p tier.DisablePolicy) func(*tier.Table) {
		return func(c *tier.Table) { c.Tiering, c.DisablePolicy = false, p }
	}
	on := func(*tier.Table) {}
	enabled, disabling := tableIn(tier.Enabled, ""), tableIn(tier.Disabling, retain)
	retained, deleted := tableIn(tier.Disabled, retain), tableIn(tier.Disabled, del)
	dropped := deleted
	dropped.Dropped = epochStart
	same := func(*Engine, *tableIndex) {}
	for name, c := range map[string]struct {
		state  tier.TableState
		cfg    func(*tier.Table)
		change func(*Engine, *tableIndex)
		want   ChangeTier // without a state where there is none
	}{
		"stays on":   {enabled, on, same, ChangeTier{}},
		"turned off": {enabled, off(del), same, ChangeTier{State: tier.Disabling, Epoch: 3, Policy: del}},
		"turned off while a segment is deleted": {enabled, off(del),
			func(_ *Engine, t *tableIndex) { t.deleting = true }, ChangeTier{}},
		"turned off while a copy is removed": {enabled, off(del),
			func(_ *Engine, t *tableIndex) { t.removing = 1 }, ChangeTier{}},
		"turned off, and no step may be tried yet": {enabled, off(del),
			func(e *Engine, t *tableIndex) { t.retryAt = e.now + 1 }, ChangeTier{}},
		"turned off, and a step is under way": {enabled, off(del),
			func(_ *Engine, t *tableIndex) { t.changing = true }, ChangeTier{}},
		"turned off before the start": {enabled, off(del),
			func(e *Engine, _ *tableIndex) { e.started = false }, ChangeTier{}},
		"turned off, and not on record": {enabled, off(del),
			func(_ *Engine, t *tableIndex) { t.known = false }, ChangeTier{}},
		"turned off, and its entry is gone": {enabled, off(del),
			func(_ *Engine, t *tableIndex) {
				t.state.Entry, t.cfg.Governor = "tables/orders", tier.GovernedByDefaults
			}, ChangeTier{}},
		"all is over": {disabling, off(retain), same,
			ChangeTier{State: tier.Disabled, Epoch: 2, Policy: retain}},
		"not all is over": {disabling, off(retain), func(_ *Engine, t *tableIndex) {
			t.logs = []*logIndex{{copies: 1}}
		}, ChangeTier{}},
		"turned on again": {retained, on, same, ChangeTier{State: tier.Enabled, Epoch: 3}},
		"turned on again while a segment is deleted": {retained, on,
			func(_ *Engine, t *tableIndex) { t.deleting = true }, ChangeTier{}},
		"turned on again while a copy is removed": {deleted, on,
			func(_ *Engine, t *tableIndex) { t.removing = 1 }, ChangeTier{}},
		"what was retained is to go": {retained, off(del), same,
			ChangeTier{State: tier.Disabling, Epoch: 3, Policy: del}},
		"what was retained stays":  {retained, off(retain), same, ChangeTier{}},
		"what was deleted is gone": {deleted, off(del), same, ChangeTier{}},
		"dropped, and back":        {dropped, on, same, ChangeTier{}}, // what governs it comes first
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := start(t, settings(func(_ *Settings, cfg *tier.Table) { c.cfg(cfg) })).e
			x := e.table("orders")
			x.state, x.known = c.state, true
			e.config(x)
			c.change(e, x)
			e.out = nil
			e.tend(x)
			var got ChangeTier
			for _, f := range e.out {
				if f, ok := f.(ChangeTier); ok {
					f.ID, f.Table = 0, ""
					got = f
				}
			}
			if got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// TestDrained: each activity of a log holds up that its table is DISABLED.
func TestDrained(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]logIndex{
		"a copy under way":         {copies: 1},
		"an attempt is not solved": {attempts: []tier.Attempt{{}}},
		"one is being solved":      {resolving: true},
		"a segment is deleted":     {deleting: true},
		"a copy is removed":        {removing: true},
		"its start moves":          {moving: true},
		"it is opened":             {opening: true},
		"it is compared":           {comparing: true},
	} {
		e := start(t, settings()).e
		x := &tableIndex{name: "orders", state: tableIn(tier.Disabling, tier.PolicyRetain),
			logs: []*logIndex{{}, &l}}
		if e.drained(x) {
			t.Errorf("%s: drained", name)
		}
		x.logs = x.logs[:1]
		if !e.drained(x) {
			t.Errorf("nothing under way: not drained")
		}
	}
}

// TestRefuses: while a table is being disabled it cannot be enabled, nor given another policy.
func TestRefuses(t *testing.T) {
	t.Parallel()
	retain, del := tier.PolicyRetain, tier.PolicyDelete
	disabling := tableIn(tier.Disabling, retain)
	dropped := tableIn(tier.Disabling, del)
	dropped.Dropped = epochStart
	own := disabling
	own.Entry = "tables/orders"
	for name, c := range map[string]struct {
		state   tier.TableState
		cfg     tier.Table
		refused bool
	}{
		"enabled again":          {disabling, tier.Table{Tiering: true}, true},
		"another policy":         {disabling, tier.Table{DisablePolicy: del}, true},
		"as it is":               {disabling, tier.Table{DisablePolicy: retain}, false},
		"when it is over":        {tableIn(tier.Disabled, retain), tier.Table{Tiering: true}, false},
		"of a table that is on":  {tableIn(tier.Enabled, ""), tier.Table{Tiering: true}, false},
		"dropped, and no policy": {dropped, tier.Table{DisablePolicy: retain}, false},
		"dropped, and an entry":  {dropped, tier.Table{Tiering: true, Governor: "tables/o*"}, true},
		"dropped, and a new table": {dropped, tier.Table{Tiering: true,
			Governor: tier.GovernedByDefaults}, false},
		"its entry is gone": {own, tier.Table{Tiering: true, Governor: tier.GovernedByDefaults}, false},
	} {
		r := start(t, settings())
		r.seen(seg(0), tail(10))
		r.e.table("orders").state = c.state
		s := settings()
		s.Table = func(string) (tier.Table, bool) { return c.cfg, true }
		if why := r.e.Refuses(s); (why != nil) != c.refused ||
			why != nil && why.Code != tier.CodeDisablement {
			t.Errorf("%s: %+v, want it refused: %t", name, why, c.refused)
		}
	}
}

// TestAnEntryCountsBeforeItIsOnRecord: it goes again while it is being noted, and the table is
// frozen from then on, as it is once that is over.
func TestAnEntryCountsBeforeItIsOnRecord(t *testing.T) {
	t.Parallel()
	generation := uint64(1)
	governed := func(by string) Reconfigured {
		generation++
		s := settings(func(_ *Settings, cfg *tier.Table) { cfg.Governor = by })
		s.Generation = generation
		return Reconfigured{Settings: s}
	}
	r := start(t, settings())
	r.step(governed(tier.GovernedByDefaults))
	r.seen(tail(0))
	r.opened(0)
	r.step(Finished{ID: take[Govern](r).ID, Result: Done{}})
	r.step(governed("tables/orders"))
	r.step(governed(tier.GovernedByDefaults))
	r.seen(seg(0), tail(10))
	f := take[Govern](r)
	if r.none(); f.Entry != "tables/orders" {
		t.Errorf("%+v is noted, want the entry", f)
	}
	r.code(tier.CodeFrozen)
	r.step(Finished{ID: f.ID, Result: Done{}})
	r.none()
	r.code(tier.CodeFrozen)
}

// TestADropEndsOnce: that its table is DISABLED is noted by one effect, whatever its entry is.
func TestADropEndsOnce(t *testing.T) {
	t.Parallel()
	r := start(t, settings())
	r.seen(tail(0))
	r.opened(0)
	s := tableIn(tier.Disabled, tier.PolicyDelete)
	s.Dropped = epochStart
	r.open = nil
	r.step(TableDropped{State: s})
	r.e.evaluateTable("orders")
	r.step(Tick{})
	take[Govern](r)
	if r.none(); !r.e.Busy("orders") {
		t.Error("the end of the drop is being noted, and nothing is under way")
	}
}
