package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// Orphans lists all objects of logs and finds those that no copy, attempt or tombstone names. Young
// ones are notices: what an upload left behind is collected once it has reached the age. One that
// has twice the age should have been. Logs are all that the ledger has; of is asked which are of
// interest.
func Orphans(ctx context.Context, s Store, logs []*Log, now, age tier.Time,
	of func(tier.LogID) bool) ([]Finding, error) {
	known := map[tier.LogID]map[tier.AttemptID]bool{}
	for _, l := range logs {
		named := map[tier.AttemptID]bool{{}: true} // a start, a hole, an epoch: part of the record
		for _, a := range l.Attempts {
			named[a] = true
		}
		for _, f := range l.Facts {
			if f.Add != nil {
				named[f.Add.Attempt] = true
			}
		}
		known[l.ID] = named
	}
	var out []Finding
	err := s.Objects(ctx, func(o tier.StoredObject) error {
		named, has := known[o.Log]
		if !of(o.Log) || has && (o.Checkpoint || named[o.Attempt]) {
			return nil
		}
		f := Finding{Kind: KindOrphan, Log: o.Log, Object: o.Key, Notice: true}
		since := now - o.Modified
		f.Text = fmt.Sprintf("nothing names it; it is collected once it is %s old", time.Duration(age))
		if o.Modified == 0 || since > 2*age {
			f.Notice = false
			f.Text = fmt.Sprintf("nothing names it, and it is from %s: it should have been collected",
				o.Modified)
		}
		out = append(out, f)
		return nil
	})
	return out, err
}
