package daemon

import (
	"context"

	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// PolicyInput implements api.Backend. The facts are gathered as for a deletion, so they are as true
// now as those of one; nobody is asked.
func (d *Daemon) PolicyInput(ctx context.Context, id tier.LogID, o tier.Offset,
) (*api.PolicyInput, error) {
	list, view, err := d.segments(id)
	if err != nil {
		return nil, err
	}
	v := holder(list, o, view.LocalEnd)
	if v == nil || !v.Local {
		return nil, api.Errorf(api.CodeNotFound, "log %q: no local segment holds the offset %d, and "+
			"only deletions of local segments are asked of policies: local [%d, %d)", id, o,
			view.Local.Base, view.Local.Next)
	}
	f, candidate := d.proposal(id, &view, v)
	facts, err := d.exec.Facts(ctx, f, candidate)
	if err != nil {
		return nil, err
	}
	input, err := rego.InputJSON(facts)
	if err != nil {
		return nil, err
	}
	out := &api.PolicyInput{Log: id.String(), Base: v.Base, Next: v.Next, Input: input}
	for _, u := range facts.Unknown {
		out.UnknownFacts = append(out.UnknownFacts, api.UnknownFact{Name: u.Name, Text: u.Why})
	}
	return out, nil
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
