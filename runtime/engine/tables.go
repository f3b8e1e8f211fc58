package engine

import (
	"fmt"
	"slices"

	"github.com/tierd/tierd/runtime/planted"
	"github.com/tierd/tierd/runtime/tier"
)

// tending moves a table's tiering on, one step at a time (KIP-950):
//
//	          enable: false, drained                all over
//	ENABLED ------------------------> DISABLING ---------------> DISABLED
//	   ^                                  ^                        |  |
//	   |                                  +-- policy now delete ---+  |
//	   +----------------------------- enable: true -------------------+
//
// Each arrow is one durable TierChanged, proposed by a ChangeTier. Entering DISABLING raises the
// epoch, so that copies under way are refused when they end; entering ENABLED raises it again.
func (e *Engine) tend(t *tableIndex) {
	cfg, governed := e.config(t)
	if !e.started || t.changing || !t.known || !governed && t.state.Dropped == 0 {
		return
	}
	if governed {
		e.govern(t, cfg)
	}
	switch t.state.State {
	case tier.Enabled: // so it is not dropped, and governed
		if cfg.Tiering {
			t.draining = false
			return
		}
		// No deletion may be under way when the rules change beneath it.
		t.draining = true
		if !t.deleting && t.removing == 0 || planted.Is(planted.NotDrained) {
			e.changeTier(t, tier.Disabling, t.state.Epoch+1, cfg.DisablePolicy)
		}
	case tier.Disabling:
		if e.drained(t) {
			e.changeTier(t, tier.Disabled, t.state.Epoch, t.state.Policy)
		}
	case tier.Disabled:
		switch {
		case !governed || t.state.Dropped != 0: // what governs it now is noted first
		case cfg.Tiering:
			// What goes now goes by the limits of a table that does not tier, and without a proof; and a
			// copy that left with a disablement counts once more until its log is in the new epoch.
			t.draining = true
			if !t.deleting && t.removing == 0 {
				e.changeTier(t, tier.Enabled, t.state.Epoch+1, "")
			}
			return
		case t.state.Policy == tier.PolicyRetain && cfg.DisablePolicy == tier.PolicyDelete:
			e.changeTier(t, tier.Disabling, t.state.Epoch+1, tier.PolicyDelete)
		}
		t.draining = false
	}
}

// govern notes what governs the table now. That ends a drop that is over.
func (e *Engine) govern(t *tableIndex, cfg tier.Table) {
	over := t.state.Dropped != 0 && t.state.State == tier.Disabled
	same := cfg.Governor == "" || t.state.Entry == cfg.Governor
	if t.governing || same && !over || e.now < t.retryAt {
		return
	}
	t.governing, t.noting = true, cfg.Governor
	e.emit(Govern{ID: e.id(), Table: t.name, Entry: cfg.Governor})
}

func (e *Engine) governFinished(t *tableIndex, f Govern, res Result) {
	t.governing = false
	if _, ok := res.(Done); !ok {
		e.tableFailed(t)
		return
	}
	t.state.Entry = f.Entry
	if t.state.State == tier.Disabled {
		t.state.Dropped = 0
	}
}

// dropped takes over that a table was dropped.
func (e *Engine) dropped(ev TableDropped) {
	t := e.table(ev.State.Table)
	t.state, t.known, t.draining = ev.State, true, false
	e.evaluateTable(t.name)
}

// Busy reports whether a deletion or a step of the table's tiering is under way. Of a frozen table
// none begins.
func (e *Engine) Busy(table string) bool {
	t := e.table(table)
	return t.deleting || t.removing > 0 || t.changing || t.governing || t.pausing ||
		slices.ContainsFunc(t.logs, func(l *logIndex) bool { return l.moving })
}

// frozen says why nothing governs the table.
func (e *Engine) frozen(t *tableIndex) *tier.Reason {
	text := "no entry of the configuration governs the table %q"
	if !t.known { // there is nothing that could be dropped
		return &tier.Reason{Code: tier.CodeFrozen, Text: fmt.Sprintf(text+": it is not touched", t.name)}
	}
	if t.governed {
		text = "the entry that governed the table %q is gone, and it does not fall to the defaults"
	}
	return &tier.Reason{Code: tier.CodeFrozen, Text: fmt.Sprintf(text+
		": give it one, or run: tierd drop %s", t.name, t.name)}
}

func (e *Engine) changeTier(t *tableIndex, s tier.TierState, epoch tier.TierEpoch,
	p tier.DisablePolicy) {
	if e.now < t.retryAt {
		return
	}
	t.changing = true
	e.emit(ChangeTier{ID: e.id(), Table: t.name, State: s, Epoch: epoch, Policy: p})
}

// drained reports whether every activity of the epoch that is being disabled is over: no copy is
// under way or unresolved, and with the policy delete no object is left but what is denied.
func (e *Engine) drained(t *tableIndex) bool {
	for _, l := range t.logs {
		if l.copies > 0 || len(l.attempts) > 0 || l.resolving || l.deleting || l.removing ||
			l.moving || l.opening || l.comparing {
			return false
		}
		if t.state.Policy == tier.PolicyDelete && l.opened &&
			(!l.startMovedFor(t) || e.removable(l) && !l.outstanding()) {
			return false
		}
	}
	return true
}

// changeFinished takes over a step of the table's tiering.
func (e *Engine) changeFinished(t *tableIndex, f ChangeTier, res Result) {
	t.changing = false
	switch res.(type) {
	case Done:
		if f.State == tier.Enabled && t.state.Policy == tier.PolicyDelete {
			t.state.Fresh = f.Epoch
		}
		if f.State == tier.Enabled {
			t.state.Dropped = 0
		}
		t.state.State, t.state.Epoch, t.state.Policy = f.State, f.Epoch, f.Policy
		t.state.Since = e.now
		t.draining = false
		t.failures, t.retryAt = 0, 0
		for _, l := range t.logs {
			// What was seen before the change decides nothing after it; and that one disablement is over
			// is no look at the source.
			l.stale = l.stale || f.State == tier.Disabling && f.Policy == tier.PolicyDelete
			l.kept, l.remoteKept, l.unread = nil, nil, 0
		}
	case Failed:
		e.tableFailed(t)
	}
}

func (e *Engine) tableFailed(t *tableIndex) {
	t.failures++
	t.retryAt = e.now + e.settings.Backoff.delay(tier.LogID{Table: t.name}, t.failures)
}

// Tiered names the tables that are not DISABLED, ascending.
func (e *Engine) Tiered() []string {
	var out []string
	for _, l := range e.order {
		t := l.table
		if n := len(out); t.known && t.state.State != tier.Disabled && (n == 0 || out[n-1] != t.name) {
			out = append(out, t.name)
		}
	}
	return out
}

// Refuses says why new settings must not be taken over now: a table whose tiering is being disabled
// cannot be enabled before that is over (KIP-950).
func (e *Engine) Refuses(s Settings) *tier.Reason {
	for _, l := range e.order {
		t := l.table
		if t.state.State != tier.Disabling {
			continue
		}
		cfg, ok := s.Table(t.name)
		if t.state.Frozen(cfg, ok) || t.state.Dropped != 0 && cfg.Governor == tier.GovernedByDefaults {
			continue // a table that was dropped is a new one when that is over
		}
		if cfg.Tiering {
			return &tier.Reason{Code: tier.CodeDisablement, Text: "table " + t.name +
				": its tiering is being disabled; enable it again when it is DISABLED"}
		}
		if cfg.DisablePolicy != t.state.Policy && t.state.Dropped == 0 {
			return &tier.Reason{Code: tier.CodeDisablement, Text: "table " + t.name + ": it is being " +
				"disabled with the policy " + string(t.state.Policy) +
				"; another policy can be given when it is DISABLED"}
		}
	}
	return nil
}
