package engine

import (
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
	if !e.started || !governed || t.changing || !t.known {
		return
	}
	switch t.state.State {
	case tier.Enabled:
		if cfg.Tiering {
			t.draining = false
			return
		}
		// No deletion may be under way when the rules change beneath it.
		t.draining = true
		if !t.deleting && t.removing == 0 {
			e.changeTier(t, tier.Disabling, t.state.Epoch+1, cfg.DisablePolicy)
		}
	case tier.Disabling:
		if e.drained(t) {
			e.changeTier(t, tier.Disabled, t.state.Epoch, t.state.Policy)
		}
	case tier.Disabled:
		switch {
		case cfg.Tiering:
			e.changeTier(t, tier.Enabled, t.state.Epoch+1, "")
		case t.state.Policy == tier.PolicyRetain && cfg.DisablePolicy == tier.PolicyDelete:
			e.changeTier(t, tier.Disabling, t.state.Epoch+1, tier.PolicyDelete)
		}
	}
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
			l.moving || l.opening {
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
		t.state.State, t.state.Epoch, t.state.Policy = f.State, f.Epoch, f.Policy
		t.state.Since = e.now
		t.draining = false
		t.failures, t.retryAt = 0, 0
		for _, l := range t.logs {
			// What was seen before the change decides nothing after it.
			l.stale = f.State == tier.Disabling && f.Policy == tier.PolicyDelete
			l.kept, l.remoteKept = nil, nil
		}
	case Failed:
		t.failures++
		t.retryAt = e.now + e.settings.Backoff.delay(tier.LogID{Table: t.name}, t.failures)
	}
}

// Refuses says why new settings must not be taken over now: a table whose tiering is being disabled
// cannot be enabled before that is over (KIP-950).
func (e *Engine) Refuses(s Settings) *tier.Reason {
	for _, l := range e.order {
		t := e.table(l.id.Table)
		if t.state.State != tier.Disabling {
			continue
		}
		cfg, ok := s.Table(t.name)
		if ok && cfg.Tiering {
			return &tier.Reason{Code: tier.CodeDisablement, Text: "table " + t.name +
				": its tiering is being disabled; enable it again when it is DISABLED"}
		}
		if ok && cfg.DisablePolicy != t.state.Policy {
			return &tier.Reason{Code: tier.CodeDisablement, Text: "table " + t.name + ": it is being " +
				"disabled with the policy " + string(t.state.Policy) +
				"; another policy can be given when it is DISABLED"}
		}
	}
	return nil
}
