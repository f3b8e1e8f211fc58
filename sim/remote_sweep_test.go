package sim

import (
	"testing"
	"time"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// tables puts the same settings in force for every table.
func (r *rig) tables(change func(*tier.Table)) {
	r.t.Helper()
	table := testTable
	change(&table)
	r.w.Config.Tables = func(name string) (tier.Table, bool) {
		t := table
		t.Name = name
		return t, true
	}
	if r.w.process != nil {
		r.do(r.w.Reload())
	}
}

// ungoverned takes the entries of all tables out of the configuration.
func (r *rig) ungoverned() {
	r.t.Helper()
	r.w.Config.Tables = func(string) (tier.Table, bool) { return tier.Table{}, false }
	r.do(r.w.Reload())
}

// dropped leaves a table that was dropped, with two copies.
func dropped(r *rig) {
	r.copied(2)
	r.ungoverned()
	r.do(r.w.Drop(orders.Table))
}

// remoteOnly leaves two segments that are in the store alone, and nearly at the end of their TTL.
func remoteOnly(r *rig) {
	r.tables(func(t *tier.Table) { t.TTL = 24 * time.Hour })
	r.copied(2)
	r.w.Advance(2 * time.Hour)
	r.run()
	r.w.Advance(21 * time.Hour)
	r.run()
}

// remoteHistories are those of what happens to remote data.
var remoteHistories = []history{
	{name: "expire two remote segments", steps: 3, effect: is[engine.Expire],
		before: func(r *rig) {
			remoteOnly(r)
			r.w.Advance(2 * time.Hour)
		}},
	{name: "remove two expired copies", steps: 8, effect: is[engine.Remove],
		before: func(r *rig) {
			remoteOnly(r)
			r.w.Advance(2 * time.Hour)
			r.run()
			r.w.Advance(11 * time.Minute)
		}},
	{name: "turn tiering off", steps: 1, effect: is[engine.ChangeTier], before: func(r *rig) {
		r.copied(2)
		r.tables(func(t *tier.Table) { t.Tiering = false })
	}},
	{name: "turn tiering off, and delete", steps: 3, effect: is[engine.MoveStart],
		before: func(r *rig) {
			r.copied(2)
			r.tables(func(t *tier.Table) { t.Tiering, t.DisablePolicy = false, tier.PolicyDelete })
		}},
	{name: "drop a table", steps: 3, effect: is[engine.MoveStart], before: dropped},
	{name: "remove the copies of a dropped table", steps: 8, effect: is[engine.Remove],
		before: func(r *rig) {
			dropped(r)
			r.run()
			r.w.Advance(11 * time.Minute)
		}},
	{name: "note what governs a table", steps: 1, effect: is[engine.Govern], before: func(r *rig) {
		r.copied(1)
		r.tables(func(t *tier.Table) { t.Governor = "tables/orders" })
	}},
	{name: "govern a dropped table anew", steps: 1, effect: is[engine.Govern],
		before: func(r *rig) {
			dropped(r)
			r.run()
			r.w.Advance(11 * time.Minute)
			r.run()
			r.tables(func(t *tier.Table) { t.Governor = "tables/orders" })
		}},
	{name: "turn tiering on again", steps: 1, effect: is[engine.OpenEpoch], before: func(r *rig) {
		r.copied(2)
		r.tables(func(t *tier.Table) { t.Tiering = false })
		r.run()
		r.do(r.w.Append(orders, 1))
		r.run()
		r.tables(func(*tier.Table) {})
	}},
	{name: "clear what an abandoned attempt left", steps: 4, effect: is[engine.Clear],
		before: func(r *rig) {
			late := fault.Effect{Err: errInjected, Late: true}
			r.w.Bucket.SetHook(failOnce("/"+segmentName(0), late))
			r.copied(1)
			r.w.Advance(time.Minute)
			r.run()
			r.do(r.w.Bucket.Land(r.t.Context(), 0))
			r.w.Advance(25 * time.Hour)
		}},
}

// TestEveryRemoteSubStep sweeps the histories of remote data.
func TestEveryRemoteSubStep(t *testing.T) {
	t.Parallel()
	for i := range remoteHistories {
		h := &remoteHistories[i]
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			(&sweeper{t: t, h: h}).sweep()
		})
	}
}
