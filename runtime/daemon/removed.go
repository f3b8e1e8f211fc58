package daemon

import (
	"context"
	"sync"

	"github.com/tierd/tierd/runtime/exec"
	"github.com/tierd/tierd/runtime/tier"
)

// toldAudit is the executor's audit log. What it has as deleted from the store is counted, measured
// and logged at that moment, whatever its effect comes to: also where that was given up.
type toldAudit struct {
	exec.Audit
	tell func(*tier.Deletion)

	mu   sync.Mutex // guards open
	open map[uint64]*tier.Deletion
}

// told tells of what an audit log has as deleted from the store.
func (d *Daemon) told(a exec.Audit) *toldAudit {
	return &toldAudit{Audit: a, tell: d.tellRemoved, open: map[uint64]*tier.Deletion{}}
}

// Intend implements exec.Audit.
func (a *toldAudit) Intend(ctx context.Context, d tier.Deletion) (uint64, error) {
	seq, err := a.Audit.Intend(ctx, d)
	if err != nil {
		return seq, err
	}
	switch d.Action {
	case tier.DeleteRemote, tier.DisableDelete, tier.DeleteOrphan:
		d.Input, d.Reasons = nil, nil // large, and not told
		a.mu.Lock()
		a.open[seq] = &d
		a.mu.Unlock()
	}
	return seq, nil
}

// Conclude implements exec.Audit.
func (a *toldAudit) Conclude(ctx context.Context, seq uint64, o tier.Outcome) error {
	if err := a.Audit.Conclude(ctx, seq, o); err != nil {
		return err
	}
	a.mu.Lock()
	d := a.open[seq]
	delete(a.open, seq)
	a.mu.Unlock()
	if d != nil && o.Result == tier.OutcomeDeleted {
		a.tell(d)
	}
	return nil
}

func (d *Daemon) tellRemoved(r *tier.Deletion) {
	d.metrics.removed(r)
	d.done.remove(r)
	d.log.Info("removed from the store", "log", r.Log.String(), "action", r.Action,
		"segment", r.Range.String(), "bytes", r.Bytes, "object", r.Object)
}
