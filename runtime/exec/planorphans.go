package exec

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// Orphans are the objects under the ledger's id that nothing names, as a listing showed them.
type Orphans struct {
	found
	of map[tier.LogID][]tier.StoredObject
}

// FindOrphans lists the store. The error is one of the listing, or of the ledger (Ledger.Err).
func (x *Executor) FindOrphans(ctx context.Context) (*Orphans, error) {
	found, err := x.findOrphans(ctx, x.c.Generation())
	if err != nil {
		return nil, err
	}
	out := &Orphans{found: found, of: map[tier.LogID][]tier.StoredObject{}}
	for _, o := range found.orphans {
		out.of[o.Log] = append(out.of[o.Log], o)
	}
	return out, nil
}

// Logs are those that have orphans, ascending.
func (o *Orphans) Logs() []tier.LogID {
	return slices.SortedFunc(maps.Keys(o.of), tier.LogID.Compare)
}

// Stale is why nothing that leaves no copy goes: the ledger is older than the manifests; nil if it
// is not.
func (o *Orphans) Stale() *tier.Reason { return o.stale }

// LaterOrphans are orphans of a log that do not go yet.
type LaterOrphans struct {
	Young int64     // that are not old enough
	Until tier.Time // when the last of these is; absent where the store does not say when they came
	More  int64     // beyond those that were asked about
}

// PlanOrphans asks what a sweep would ask about each orphan of a log, at most limit of them. It
// removes nothing, and makes no permit. There is a list of answers for each question.
func (x *Executor) PlanOrphans(ctx context.Context, o *Orphans, log tier.LogID, limit int,
	questions ...Question) (out [][]Planned, later LaterOrphans) {
	g := x.c.Generation()
	open := x.inquire(g, log, questions)
	var manifest knowledge
	asked := 0
	for i := range o.of[log] {
		object := &o.of[log][i]
		switch {
		case o.old(g, object) != tier.Yes:
			later.Young++
			later.Until = max(later.Until, o.oldAt(x, g, object))
		case asked == limit:
			later.More++
		default:
			asked++
			x.planOrphan(ctx, g, open, log, object.Key, manifest.of(ctx, x, log))
		}
	}
	return answers(open), later
}

// oldAt is when the orphan is old enough; absent where nobody can tell.
func (f *found) oldAt(x *Executor, g *Generation, o *tier.StoredObject) tier.Time {
	if o.Modified <= 0 {
		return 0
	}
	at := o.Modified
	if f.young {
		at = max(at, x.c.Ledger.Rebuilt())
	}
	return at + g.OrphanAge + 1 // it must be older than that
}

// planOrphan asks about one object that is there.
func (x *Executor) planOrphan(ctx context.Context, g *Generation, open []inquiry, log tier.LogID,
	object string, knows tier.Truth) {
	bytes, err := x.c.Store.Size(ctx, object)
	if errors.Is(err, ErrVanished) {
		return // a sweep may be under way
	}
	if err == nil {
		facts := x.orphanFacts(ctx, g, log, object, knows, tier.Yes, tier.Yes)
		for _, last := range askAlone(ctx, open, facts, object) {
			last.Bytes = bytes // policies are not told: a sweep does not ask for it
		}
		return
	}
	for i := range open {
		open[i].answers = append(open[i].answers, Planned{Action: tier.DeleteOrphan, Object: object,
			Alone: true, Verdict: gate.Verdict{Reasons: []tier.Reason{{Code: tier.CodeStoreError,
				Text: err.Error()}}}})
	}
}

// PlanClear asks what would be asked about what abandoned attempts of a log have left in the store.
// It removes nothing, and makes no permit. There is a list of answers for each question.
func (x *Executor) PlanClear(ctx context.Context, log tier.LogID,
	attempts []engine.AbandonedAttempt, questions ...Question) ([][]Planned, error) {
	g := x.c.Generation()
	open := x.inquire(g, log, questions)
	var manifest knowledge
	for _, t := range attempts {
		a, _, err := x.c.Ledger.Abandoned(log, t.Position)
		if errors.Is(err, ErrVanished) {
			continue
		}
		if err != nil {
			return nil, fatal(err)
		}
		for _, name := range a.Names {
			object, err := x.c.Store.FileKey(a.Object(log, name))
			if err != nil {
				return nil, err
			}
			x.planOrphan(ctx, g, open, log, object, manifest.of(ctx, x, log))
		}
	}
	return answers(open), nil
}
