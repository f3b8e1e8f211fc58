package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/exec"
	"github.com/tierd/tierd/runtime/tier"
)

// AcceptLoss implements api.Backend. Durable sub-steps: the audit record and its outcome, the hole,
// the acceptance. Repeating it after a stop between any two of them goes on where it stopped. The
// damaged file stays: only an operator's own hand removes what was never copied.
func (d *Daemon) AcceptLoss(ctx context.Context, id tier.LogID, o tier.Offset) (
	*api.AcceptedLoss, error) {
	list, view, err := d.segments(id)
	if err != nil {
		return nil, err
	}
	v := holder(list, o, view.LocalEnd)
	if v == nil || !v.Local || v.Remote || !v.Segment.Closed() {
		return nil, api.Errorf(api.CodeRefused,
			"log %q: no closed segment that is not copied holds the offset %d", id, o)
	}
	sum, err := d.damaged(ctx, view.Source, id, v)
	if err != nil {
		return nil, err
	}
	if why := d.exec.MayRecord(ctx, id); why != nil {
		return nil, api.Errorf(api.CodeRefused, "log %q: %s: %s", id, why.Code, why.Text)
	}
	ctx = context.WithoutCancel(ctx) // whoever asked may go; half of it would be news to the engine
	if err := d.auditLoss(ctx, id, v, sum); err != nil {
		return nil, err
	}
	ev, err := d.recordLoss(ctx, id, v.Range, sum)
	if err != nil {
		return nil, err
	}
	d.log.Warn("loss accepted", "log", id.String(), "segment", v.Range.String(),
		"sha256", sum.String())
	d.step(ev)
	return &api.AcceptedLoss{Log: id.String(), Base: v.Base, Next: v.Next, SHA256: sum}, nil
}

// damaged makes sure that the segment is, since only the loss of what cannot be copied can be
// accepted, and identifies the file whose loss it is.
func (d *Daemon) damaged(ctx context.Context, source string, id tier.LogID,
	v *engine.SegmentView) (sum tier.SHA256, err error) {
	s := d.sourceNamed(source)
	if s == nil {
		return sum, api.Errorf(api.CodeNotFound, "source %q is not configured", source)
	}
	_, err = s.dir.Read(ctx, id, v.Range)
	switch {
	case err == nil:
		return sum, api.Errorf(api.CodeRefused, "log %q: the segment %s is not damaged; it is copied",
			id, v.Range)
	case !errors.Is(err, tier.ErrDamaged):
		return sum, err
	}
	sum, err = exec.HashOf(ctx, s.dir, id, v.Base, v.Segment.Log)
	if errors.Is(err, tier.ErrChanged) {
		return sum, api.Errorf(api.CodeRefused, "%v just now; look again", err)
	}
	return sum, err
}

func (d *Daemon) auditLoss(ctx context.Context, id tier.LogID, v *engine.SegmentView,
	sum tier.SHA256) error {
	why := tier.Reason{Code: tier.CodeQuarantined,
		Text: "an operator accepted the loss; the damaged file stays"}
	seq, err := d.audit.Intend(ctx, tier.Deletion{Action: tier.AcceptLoss, Log: id, Range: v.Range,
		Bytes: v.Segment.Log.Size, SHA256: sum, At: d.now(), Reasons: []tier.Reason{why}})
	if err == nil {
		err = d.audit.Conclude(ctx, seq, tier.Outcome{Result: tier.OutcomeKept, At: d.now()})
	}
	if err != nil {
		d.die(fmt.Errorf("audit: %w", err))
	}
	return err
}

// recordLoss makes the hole and the acceptance durable. A hole is not needed, and refused, where
// the offsets were passed already.
func (d *Daemon) recordLoss(ctx context.Context, id tier.LogID, r tier.Range,
	sum tier.SHA256) (engine.LossAccepted, error) {
	hole := tier.Hole{Range: r, Cause: tier.HoleLossAccepted, At: d.now()}
	ev := engine.LossAccepted{Accepted: tier.LossAccepted{Log: id, Range: r, SHA256: sum, At: d.now()}}
	pos, err := d.ledger.Append(ctx, tier.HoleRecorded{Log: id, Hole: hole})
	holed := err == nil
	if holed || errors.Is(err, tier.ErrRefused) {
		_, err = d.ledger.Append(ctx, ev.Accepted)
	}
	if errors.Is(err, tier.ErrRefused) {
		return ev, api.Errorf(api.CodeRefused, "%v", err)
	}
	if err != nil {
		d.die(err)
		return ev, err
	}
	if holed {
		state, _ := d.ledger.Log(id)
		ev.Hole = &engine.HoleDone{Hole: hole, Position: pos, Offset: state.Copied, Next: state.Next}
	}
	return ev, nil
}
