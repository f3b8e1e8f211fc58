package daemon

import (
	"context"
	"errors"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/tier"
)

// AcceptLoss implements api.Backend; see exec.Executor.AcceptLoss.
func (d *Daemon) AcceptLoss(ctx context.Context, id tier.LogID, o tier.Offset) (
	*api.AcceptedLoss, error) {
	list, view, err := d.segments(id)
	if err != nil {
		return nil, err
	}
	v := holder(list, o, view.LocalEnd)
	if v != nil && v.Remote {
		return nil, api.Errorf(api.CodeRefused, "log %q: the segment [%d, %d), which holds the offset "+
			"%d, is copied: nothing of it is lost; accept-loss is for damaged segments that are local "+
			"alone", id, v.Base, v.Next, o)
	}
	if v == nil || !v.Local || !v.Segment.Closed() {
		return nil, api.Errorf(api.CodeRefused,
			"log %q: no closed segment that is not copied holds the offset %d", id, o)
	}
	if d.sourceNamed(view.Source) == nil {
		return nil, api.Errorf(api.CodeNotFound, "source %q is not configured", view.Source)
	}
	ev, why, err := d.exec.AcceptLoss(ctx, view.Source, id, v.Segment)
	switch {
	case err != nil:
		d.die(err)
		return nil, err
	case errors.Is(why, tier.ErrRefused):
		return nil, api.Errorf(api.CodeRefused, "%v", why)
	case why != nil:
		return nil, why
	}
	loss := ev.Accepted
	d.log.Warn("loss accepted", "log", id.String(), "segment", loss.Range.String(),
		"sha256", loss.SHA256.String())
	d.step(*ev)
	return &api.AcceptedLoss{Log: id.String(), Base: v.Base, Next: v.Next, SHA256: loss.SHA256}, nil
}
