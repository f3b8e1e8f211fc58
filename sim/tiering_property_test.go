package sim

import (
	"errors"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/tierd/tierd/runtime/tier"
)

// settings are what a history changes of a configuration, to go back to where a reload is refused.
type settings struct {
	table tier.Table
	gone  []string // tables whose entry is away
	hold  bool
	world Config
}

func (h *chance) settings() settings {
	return settings{h.table, slices.Clone(h.gone), h.hold, h.w.Config}
}

// change makes changed settings count, as one generation: where they are refused, none of them do,
// unless a new process begins with them.
func (h *chance) change(t *rapid.T, change func()) {
	before := h.settings()
	change()
	if h.w.Reload() == nil {
		return
	}
	if rapid.Bool().Draw(t, "a new process begins with them") {
		h.restart(t)
		return
	}
	h.table, h.gone, h.hold, h.w.Config = before.table, before.gone, before.hold, before.world
}

// tieringDoes turns tiering off and on, with both policies, takes entries away and drops tables.
func (h *chance) tieringDoes() map[string]func(*rapid.T) {
	table := func(t *rapid.T) string { return h.log(t).Table }
	return map[string]func(*rapid.T){
		"goes off": func(t *rapid.T) {
			h.change(t, func() {
				h.table.Tiering = false
				h.table.DisablePolicy = rapid.SampledFrom([]tier.DisablePolicy{tier.PolicyRetain,
					tier.PolicyDelete}).Draw(t, "policy")
			})
		},
		"goes on":       func(t *rapid.T) { h.change(t, func() { h.table.Tiering = true }) },
		"goes on again": func(t *rapid.T) { h.change(t, func() { h.table.Tiering = true }) },
		"loses an entry, or has it again": func(t *rapid.T) {
			name := table(t)
			h.change(t, func() {
				if i := slices.Index(h.gone, name); i >= 0 {
					h.gone = slices.Delete(slices.Clone(h.gone), i, i+1)
				} else {
					h.gone = append(slices.Clone(h.gone), name)
				}
			})
		},
		"ends with a drop": func(t *rapid.T) {
			if len(h.gone) == 0 {
				return
			}
			name := rapid.SampledFrom(h.gone).Draw(t, "table")
			if err := h.w.Drop(name); err != nil && !errors.Is(err, tier.ErrRefused) {
				h.alive(t, err)
			}
		},
	}
}

// calm lets disablements end that are under way, so that tiering can be turned on again, and waits
// until it is.
func (h *chance) calm() {
	h.store, h.disk, h.inside, h.aside, h.brake = nil, 0, 0, 0, 0
	h.must(h.w.Return())
	h.w.SetPaused(false)
	h.w.Config.Brake.MaxSegments = 1000
	h.hold, h.w.Config.Policies = false, builtin()
	for range 40 {
		on := h.accepted(func(table *tier.Table) { table.Tiering = true })
		for _, policy := range []tier.DisablePolicy{tier.PolicyRetain, tier.PolicyDelete} {
			// Whatever is being disabled has an entry that says so, or it waits for ever.
			if !on && h.accepted(func(table *tier.Table) {
				table.Tiering, table.DisablePolicy = false, policy
			}) {
				break
			}
		}
		for _, table := range []string{"orders", "payroll"} {
			h.resume(h.t, table)
			on = on && h.w.Ledger().Table(table).State == tier.Enabled
		}
		if on {
			return
		}
		if h.w.Run() != nil {
			h.w.Kill()
			h.must(h.w.Start())
		}
		h.w.Advance(11 * time.Minute)
	}
}

// accepted reports whether the changed settings count now, for all tables; else none of them do.
func (h *chance) accepted(change func(*tier.Table)) bool {
	before := h.settings()
	change(&h.table)
	h.gone = nil
	if h.w.Reload() == nil {
		return true
	}
	h.table, h.gone = before.table, before.gone
	return false
}
