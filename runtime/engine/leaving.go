package engine

import (
	"github.com/tierd/tierd/runtime/tier"
)

// EachCopy calls fn with every copy of the table that is part of its log, ascending by log and
// base, and says of each whether its segment is local as well.
func (e *Engine) EachCopy(table string, fn func(id tier.LogID, r tier.Remote, local bool)) {
	for _, l := range e.table(table).logs {
		for i := range l.remote {
			if r := &l.remote[i]; l.counts(r) {
				fn(l.id, *r, l.present && l.identifies(r))
			}
		}
	}
}

// Disables names the tables, ascending, whose remote data would leave their logs if the settings
// were taken over: their tiering is turned off with the policy delete, and was not before.
func (e *Engine) Disables(s Settings) []string {
	var out []string
	for _, l := range e.order {
		if n := len(out); n > 0 && out[n-1] == l.id.Table {
			continue
		}
		t := l.table
		cfg, ok := s.Table(t.name)
		on := t.state.State == tier.Enabled ||
			t.state.State == tier.Disabled && t.state.Policy == tier.PolicyRetain
		if on && t.known && t.state.Dropped == 0 && !t.state.Frozen(cfg, ok) && !cfg.Tiering &&
			cfg.DisablePolicy == tier.PolicyDelete {
			out = append(out, t.name)
		}
	}
	return out
}
