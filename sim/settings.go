package sim

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/sim/choose"
)

// What an operator changes of a configuration, and of what it lets go.

func (h *play) settingsActs() []act {
	if !h.p.Unsettled {
		return nil
	}
	return append(h.limitActs(), []act{
		{kindSettings, "change the policies", 2, func() {
			i := choose.Pick(h.c, "policies", policyNames, nil)
			h.change(func() { h.setPolicy(i) })
		}},
		{kindSettings, "change the plugins", 3, func() {
			set := h.p.wild[choose.Pick(h.c, "plugins", wildNames, wildWeights)]
			h.change(func() { h.w.Config.Plugins = set })
		}},
		{kindSettings, "turn tiering off", 3, func() {
			off := false
			h.change(func() { h.over.tiering = &off })
		}},
		{kindSettings, "turn tiering on", 3, func() {
			h.change(func() { h.over.tiering = nil })
		}},
		{kindSettings, "change remote.log.disable.policy", 4, func() {
			policy := choose.Among(h.c, "remote.log.disable.policy",
				[]tier.DisablePolicy{tier.PolicyRetain, tier.PolicyDelete})
			h.change(func() { h.over.disable = &policy })
		}},
		{kindSettings, "change the entry of a table", 3, func() {
			name := h.log().Table
			i := choose.Pick(h.c, "entry", entryNames, nil)
			due := h.due(name)
			h.change(func() { h.setEntry(name, i) })
			if due && h.o.frozen(name) {
				h.met(EntryGone)
			}
		}},
		{kindSettings, "change the brake", 1, func() {
			n := int64(choose.Number(h.c, "max_delete_segments", 1, 4))
			h.change(func() { h.w.Config.Brake.MaxSegments = n })
		}},
		{kindSettings, "change limits.max_delete_bytes", 1, func() {
			i := choose.Pick(h.c, "max_delete_bytes", []string{"20", "150", "1000"}, nil)
			h.change(func() { h.w.Config.Brake.MaxBytes = []int64{20, 150, 1000}[i] })
		}},
		{kindSettings, "forbid local deletion", 1, func() {
			h.change(func() { h.w.Config.Delete = tier.LocalDeleteNever })
			h.crashed() // the way to delete is the source's, and read once
		}},
	}...)
}

// limitActs change for how long, how many and how much data are kept.
func (h *play) limitActs() []act {
	minutes := func(label string) time.Duration {
		i := choose.Pick(h.c, label, []string{"0", "1 minute", "1 hour", "10 hours"}, nil)
		return []time.Duration{0, time.Minute, time.Hour, 10 * time.Hour}[i]
	}
	limit := func(label string, most int) *tier.Limit {
		n := int64(choose.Number(h.c, label, 0, most))
		return &tier.Limit{Set: n > 0, Value: n}
	}
	return []act{
		{kindSettings, "change table.log.local-ttl", 2, func() {
			d := minutes("table.log.local-ttl")
			h.change(func() { h.over.localTTL = &d })
		}},
		{kindSettings, "change table.log.ttl", 2, func() {
			hours := choose.Pick(h.c, "table.log.ttl", []string{"0", "2 hours", "30 hours",
				"200 hours"}, nil)
			d := []time.Duration{0, 2 * time.Hour, 30 * time.Hour, 200 * time.Hour}[hours]
			h.change(func() { h.over.ttl = &d })
		}},
		{kindSettings, "change table.log.tiered.local-segments", 1, func() {
			n := limit("table.log.tiered.local-segments", 3)
			h.change(func() { h.over.localSegments = n })
		}},
		{kindSettings, "change table.log.local-bytes", 1, func() {
			n := limit("table.log.local-bytes", 60)
			h.change(func() { h.over.localBytes = n })
		}},
		{kindSettings, "change table.log.bytes", 1, func() {
			i := choose.Pick(h.c, "table.log.bytes", []string{"unset", "0", "40", "300"}, nil)
			n := []tier.Limit{{}, {Set: true}, {Set: true, Value: 40}, {Set: true, Value: 300}}[i]
			h.change(func() { h.over.bytes = &n })
		}},
	}
}

// policyNames are what the policies of the built-in project do.
var policyNames = []string{"the built-in one alone", "one denies everything", "one fails"}

func (h *play) setPolicy(i int) {
	h.policy = i
	h.w.Config.Policies = []*rego.Set{h.p.Config.Policies, h.p.held, h.p.failing}[i]
	h.line(LanePolicy, "the policies: %s", policyNames[i])
}

// The entries by which a table may be governed.
const (
	entryGiven    = iota // as the project has it
	entryOwn             // one that names the table
	entryNone            // none: the table is frozen
	entryDefaults        // those of all tables; frozen where it had one of its own
)

// entryNames say what governs a table, for people.
var entryNames = []string{entryGiven: "as it was", entryOwn: "one of its own", entryNone: "none",
	entryDefaults: "the defaults"}

// setEntry changes what governs a table.
func (h *play) setEntry(table string, entry int) {
	h.entries = maps.Clone(h.entries) // the one that is in force may have to come back
	if h.entries == nil {
		h.entries = map[string]int{}
	}
	h.entries[table] = entry
	h.line(LanePolicy, "the entry of %s: %s", table, entryNames[entry])
}

// table is the table as the configuration has it now; false where no entry governs it.
func (h *play) table(name string) (tier.Table, bool) {
	t, ok := h.p.Config.Tables(name)
	t = h.over.apply(t)
	switch h.entries[name] {
	case entryOwn:
		t.Entry, t.Governor = "tables/"+name, "tables/"+name
	case entryNone:
		return tier.Table{}, false
	case entryDefaults:
		t.Entry, t.Governor = "defaults", tier.GovernedByDefaults
	}
	return t, ok
}

// tries makes changed settings count, as one generation; where they are refused none of them do.
func (h *play) tries(change func()) bool {
	over, entries, policy, config := h.over, h.entries, h.policy, h.w.Config
	change()
	if h.reload() == nil {
		return true
	}
	h.over, h.entries, h.policy, h.w.Config = over, entries, policy, config
	return false
}

// change is tries, but that a new process may begin with settings that are refused now.
func (h *play) change(change func()) {
	if h.tries(change) {
		return
	}
	refused := []string{"is taken back", "is what a new process begins with"}
	if choose.Later(h.c, "what is refused", refused, nil) == 1 {
		change()
		h.crashed()
	}
}

// reload makes the settings count, unless they are refused now.
func (h *play) reload() error {
	err := h.w.Reload()
	if err != nil {
		h.line(LaneStep, "the reload is refused: %v", err)
	}
	return err
}

// dropActs let go of tables that nothing governs any more.
func (h *play) dropActs() []act {
	if !h.p.Unsettled {
		return nil
	}
	return []act{{kindOperator, "drops a table", 3, func() {
		ledger, err := h.w.ledgerNow()
		must(err)
		frozen := slices.DeleteFunc(h.p.tables(), func(name string) bool {
			return !h.o.frozen(name) || ledger.table(name).Epoch == 0
		})
		if len(frozen) == 0 {
			return
		}
		name := frozen[choose.Pick(h.c, "table", frozen, nil)]
		h.drops(name)
	}}}
}

// drops plays "tierd drop".
func (h *play) drops(name string) {
	err := h.w.Drop(name)
	switch {
	case err == nil:
		h.met(Dropped)
		h.line(LaneLedger, "an operator drops the table %s", name)
	case errors.Is(err, tier.ErrRefused):
		h.line(LaneLedger, "%v", err)
	default:
		h.alive(err)
	}
}
