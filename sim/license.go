package sim

import (
	"github.com/tierd/tierd/runtime/tier"
)

// What configuration and operator allow of whole tables, by the oracle's own record: that all
// remote data of one leave, and that anything is done with one at all. Neither ledger nor engine is
// asked.

// frozen reports whether nothing governs the table now: there are no settings for it, or they are
// the defaults, and it had an entry of its own. One that was dropped has nothing to be governed but
// what is local.
func (o *Oracle) frozen(name string) bool {
	table, governed := o.w.Config.Tables(name)
	return !governed || table.Governor == "defaults" && o.owned[name]
}

// owns notes that an entry of its own governed a table, once that is durable. That the ledger says
// something else later takes nothing back.
func (o *Oracle) owns(ledger *ledgerTruth) {
	for _, t := range ledger.tables {
		if t.Entry != "" && t.Entry != "defaults" {
			o.owned[t.Table] = true
		}
	}
}

// configured notes what settings that come into force allow: with tiering off and the policy
// delete, that all remote data of a table leave. Others take that back, but where it has begun.
func (o *Oracle) configured() {
	ledger, err := o.w.ledgerNow()
	if err != nil {
		return // rest says so
	}
	for _, l := range o.logs {
		name := l.id.Table
		t, _ := o.w.Config.Tables(name)
		switch {
		case o.frozen(name):
		case !t.Tiering && t.DisablePolicy == tier.PolicyDelete:
			o.leave[name] = true
		case !leaves(ledger.table(name)) && !o.w.changing(name):
			delete(o.leave, name)
		}
	}
}

// dropped notes that an operator dropped a table, if that is durable: whatever the process was told
// became of its record. It counts where nothing governs the table.
func (o *Oracle) dropped(name string) {
	ledger, err := o.w.ledgerNow()
	if err == nil && ledger.table(name).Dropped != 0 && o.frozen(name) {
		o.leave[name] = true
		delete(o.owned, name) // what comes back under its name is another table
	}
}

// inherited takes for allowed what a ledger says that is not one's own doing.
func (o *Oracle) inherited(ledger *ledgerTruth) {
	o.owned = map[string]bool{}
	o.owns(ledger)
	for _, t := range ledger.tables {
		if leaves(t) || t.Dropped != 0 {
			o.leave[t.Table] = true
		}
	}
}

// allowed (S5): all remote data of a table leave only where a configuration in force said so, or an
// operator dropped it.
func (o *Oracle) allowed(ledger *ledgerTruth) {
	for _, t := range ledger.tables {
		switch {
		case !leaves(t) && t.Dropped == 0:
		case o.leave[t.Table]:
			for _, was := range o.buried {
				was.left[t.Table] = true
			}
		default:
			o.violate(Gated, "all remote data of %s leave, and neither a configuration with "+
				"remote.log.disable.policy delete nor an operator wanted that", t.Table)
		}
	}
}

// ungoverned (S5): nothing is begun to be copied of a table that nothing governs, unless it was
// decided before.
func (o *Oracle) ungoverned(l *ledgerLog) {
	for _, a := range l.attempts {
		if !o.onRecord[a.ID] && o.w.decided() && o.frozen(l.state.Log.Table) {
			o.violateAt(Gated, l.state.Log, a.Range.Base, "segment %d of %s is being copied, and no "+
				"entry of the configuration governs its table", a.Range.Base, l.state.Log)
		}
	}
}
