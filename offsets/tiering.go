package offsets

import (
	"github.com/tierd/tierd/runtime/tier"
)

// The rules for the tier states of tables and the tier epochs of logs.

// changeTier takes a table one step along ENABLED -> DISABLING -> DISABLED -> ENABLED, or back from
// DISABLED by retain to DISABLING by delete. The step that is there already changes nothing.
func changeTier(g *group, r tier.TierChanged) (draft, error) {
	table, ok := g.table(r.Table)
	if !ok {
		return draft{}, refuse("table %q is not known", r.Table)
	}
	if r.State == table.State && r.Epoch == table.Epoch && r.Policy == table.Policy {
		return draft{}, nil
	}
	old := table
	if !leadsOn(&old, r) {
		return draft{}, refuse("table %q: from %s, epoch %d, policy %q no step leads to %s, epoch %d, "+
			"policy %q", r.Table, old.State, old.Epoch, old.Policy, r.State, r.Epoch, r.Policy)
	}
	if r.State == tier.Disabled && g.anyUnderWay(r.Table) {
		return draft{}, refuse("table %q: a copy is still under way", r.Table)
	}
	table.State, table.Epoch, table.Policy, table.Since = r.State, r.Epoch, r.Policy, r.At
	if r.State == tier.Enabled {
		table.Dropped = 0
		if old.Policy == tier.PolicyDelete {
			table.Fresh = r.Epoch
		}
	}
	return draft{table: &table}, nil
}

// leadsOn reports whether the step is one that the table's state allows.
func leadsOn(t *tier.TableState, r tier.TierChanged) bool {
	risen := r.Epoch > t.Epoch && r.Epoch == t.Epoch+1
	switch t.State {
	case tier.Enabled:
		return r.State == tier.Disabling && risen &&
			(r.Policy == tier.PolicyRetain || r.Policy == tier.PolicyDelete)
	case tier.Disabling:
		return r.State == tier.Disabled && r.Epoch == t.Epoch && r.Policy == t.Policy
	case tier.Disabled:
		again := r.State == tier.Disabling && t.Policy == tier.PolicyRetain &&
			r.Policy == tier.PolicyDelete
		return risen && (again || r.State == tier.Enabled && r.Policy == "")
	}
	return false
}

// openEpoch brings a log into the epoch of its table. What an older epoch copied stays stored until
// it is removed; in a fresh epoch it counts for nothing. Only a fresh one takes a position, for the
// manifest's fact: otherwise the manifest goes on as it is.
func openEpoch(g *group, old *header, r tier.EpochOpened) (draft, error) {
	table, err := tableOf(g, r.Log)
	if err != nil {
		return draft{}, err
	}
	switch {
	case table.State != tier.Enabled:
		return draft{}, refuse("log %s: the tier state of its table is %s", r.Log, table.State)
	case r.Epoch != table.Epoch:
		return draft{}, refuse("log %s: tier epoch %d is not the table's, %d", r.Log, r.Epoch,
			table.Epoch)
	case old.state.Epoch >= r.Epoch:
		return draft{}, refuse("log %s: it is in tier epoch %d already", r.Log, old.state.Epoch)
	case r.Fresh != (old.state.Epoch < table.Fresh):
		return draft{}, refuse("log %s: in tier epoch %d, of a table in which nothing before %d "+
			"counts, it cannot be opened with fresh %t", r.Log, old.state.Epoch, table.Fresh, r.Fresh)
	case r.Fresh && r.Start < 0:
		return draft{}, refuse("log %s: the start %d is below 0", r.Log, r.Start)
	}
	h := *old
	s := &h.state
	s.Epoch = r.Epoch
	if !r.Fresh {
		return draft{log: &h}, nil
	}
	s.Fresh = r.Epoch
	s.Start, s.Copied, s.LogStart = r.Start, r.Start, r.Start
	s.Holes, s.Expired, s.Accepted, s.Moves, s.Clips = nil, nil, nil, nil, nil
	h.ahead = nil
	h.gone = h.copies
	pos, put := h.putMark(storedMark{mark: markOpen, epoch: r.Epoch, offset: r.Start,
		copied: r.Start, at: r.At})
	return draft{position: pos, log: &h, puts: []entry{put}}, nil
}

// governTable notes which entry of the configuration governs a table.
func governTable(g *group, r tier.TableGoverned) (draft, error) {
	table, ok := g.table(r.Table)
	if !ok {
		return draft{}, refuse("table %q is not known", r.Table)
	}
	if len(r.Entry) > nameBytesMax {
		return draft{}, refuse("table %q: the entry has %d bytes, more than %d", r.Table,
			len(r.Entry), nameBytesMax)
	}
	over := table.Dropped != 0 && table.State == tier.Disabled
	if table.Entry == r.Entry && !over {
		return draft{}, nil
	}
	table.Entry = r.Entry
	if over {
		table.Dropped = 0
	}
	return draft{table: &table}, nil
}

// dropTable lets all remote data of a table go. Where they are going already it only notes why; a
// drop that is over, and left what was denied, begins again.
func dropTable(g *group, r tier.TableDropped) (draft, error) {
	table, ok := g.table(r.Table)
	switch {
	case !ok:
		return draft{}, refuse("table %q is not known", r.Table)
	case r.At == 0:
		return draft{}, refuse("table %q: it is not said when it was dropped", r.Table)
	case table.State == tier.Disabling && table.Dropped != 0:
		return draft{}, nil
	}
	if !table.Leaves() || table.State == tier.Disabled {
		table.State, table.Policy, table.Since = tier.Disabling, tier.PolicyDelete, r.At
		table.Epoch++
	}
	table.Dropped, table.Entry = r.At, ""
	return draft{table: &table}, nil
}
