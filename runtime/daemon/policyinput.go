package daemon

import (
	"context"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// PolicyInput implements api.Backend. The facts are gathered as for a deletion, so they are as true
// now as those of one; of gate and policies the guard alone is asked. Without an action the local
// segment goes first.
func (d *Daemon) PolicyInput(ctx context.Context, id tier.LogID, o tier.Offset, action tier.Action,
) (*api.PolicyInput, error) {
	list, view, err := d.segments(id)
	if err != nil {
		return nil, err
	}
	var facts *gate.Facts
	v := holder(list, o, view.LocalEnd)
	local := v != nil && v.Local
	switch {
	case action != "" && action != tier.DeleteLocal && action != tier.DeleteRemote:
		return nil, api.Errorf(api.CodeInvalid, "action %q: want %s or %s", action, tier.DeleteLocal,
			tier.DeleteRemote)
	case local && action != tier.DeleteRemote:
		f, candidate := d.proposal(id, &view, v)
		facts, err = d.exec.Facts(ctx, f, candidate)
	case action == tier.DeleteLocal:
		err = api.Errorf(api.CodeNotFound, "log %q: no local segment holds the offset %d", id, o)
	default:
		facts, err = d.remoteFacts(ctx, id, o)
	}
	if err != nil {
		return nil, err
	}
	input, err := rego.InputJSON(facts)
	if err != nil {
		return nil, err
	}
	out := &api.PolicyInput{Log: id.String(), Base: facts.Seg.Range.Base,
		Next: facts.Seg.Range.Next, Input: input}
	for _, u := range facts.Unknown {
		out.UnknownFacts = append(out.UnknownFacts, api.UnknownFact{Name: u.Name, Text: u.Why})
	}
	guard := gate.Guard(facts)
	if facts.Action == tier.DeleteLocal && (!v.Remote || !v.First) && len(v.Reasons) > 0 {
		// It would not even be proposed, and the engine says so in fewer words.
		guard = v.Reasons
	}
	for _, r := range guard {
		out.Guard = append(out.Guard, api.ReasonOf(r, false))
	}
	return out, nil
}

// remoteFacts are those of the remote segment that holds the offset.
func (d *Daemon) remoteFacts(ctx context.Context, id tier.LogID, o tier.Offset,
) (*gate.Facts, error) {
	d.mu.Lock()
	_, remote, _ := d.engine.Plan(id)
	d.mu.Unlock()
	for _, c := range remote.Segments {
		if c.Contains(o) {
			return d.exec.RemoteFacts(ctx, remote, c)
		}
	}
	return nil, api.Errorf(api.CodeNotFound, "log %q: neither a local nor a remote segment that the "+
		"policies may be asked about holds the offset %d", id, o)
}

// proposal is the deletion of one local segment as the engine would propose it.
func (d *Daemon) proposal(id tier.LogID, view *engine.LogView, v *engine.SegmentView,
) (engine.Delete, engine.DeleteCandidate) {
	candidate := engine.DeleteCandidate{Segment: v.Segment, Copied: v.Remote,
		Position: v.Position, Ordinal: v.Ordinal}
	candidate.Segment.Next = v.Next
	return engine.Delete{Log: id, Source: view.Source, Action: tier.DeleteLocal,
		Remote: view.Remote}, candidate
}
