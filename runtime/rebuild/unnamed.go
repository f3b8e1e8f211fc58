package rebuild

import (
	"context"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/runtime/tier"
)

// unnamedMax is how many objects that nothing names are listed.
const unnamedMax = 100

// unnamedOf counts the objects of the log that are of no copy that its manifest speaks of, and
// remembers of which attempts they are.
func (r *run) unnamedOf(f *found, u *objstore.Union) (n int64) {
	for _, facts := range [][]tier.Fact{u.Facts, u.Hidden} {
		for i := range facts {
			if c := facts[i].Add; c != nil {
				delete(f.files, c.Attempt)
			}
		}
	}
	for _, objects := range f.files {
		n += objects
	}
	if n > 0 {
		if r.unnamed == nil {
			r.unnamed = map[tier.LogID]map[tier.AttemptID]int64{}
		}
		r.unnamed[f.id] = f.files
	}
	f.files = nil
	return n
}

// listUnnamed looks for the keys of what unnamedOf has counted. Keys are not kept from the first
// listing: in a store that is sound, all of them would be for nothing.
func (r *run) listUnnamed(ctx context.Context) error {
	if len(r.unnamed) == 0 {
		return nil
	}
	return r.c.Store.Objects(ctx, func(o tier.StoredObject) error {
		_, unnamed := r.unnamed[o.Log][o.Attempt]
		if unnamed && !o.Entry && !o.Checkpoint && len(r.report.Unnamed) < unnamedMax {
			r.report.Unnamed = append(r.report.Unnamed, o.Key)
		}
		return nil
	})
}
