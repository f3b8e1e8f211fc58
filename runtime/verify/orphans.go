package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// Orphans lists all objects of logs and finds those that no copy, attempt or tombstone names. Young
// ones are notices: what an upload left behind is collected once it has reached the age. One that
// has twice the age should have been. What somebody put beside the files of a copy is found too;
// tierd collects nothing there. Logs are all that the ledger has; of is asked which are of
// interest.
func Orphans(ctx context.Context, s Store, logs []*Log, now, age tier.Time,
	of func(tier.LogID) bool) ([]Finding, error) {
	known := map[tier.LogID]map[tier.AttemptID]*tier.Copy{}
	for _, l := range logs {
		named := map[tier.AttemptID]*tier.Copy{{}: nil} // a start, a hole, an epoch: of the record
		for _, a := range l.Attempts {
			named[a] = nil // and every file that it may leave
		}
		for i := range l.Facts {
			if c := l.Facts[i].Add; c != nil {
				named[c.Attempt] = c
			}
		}
		known[l.ID] = named
	}
	var out []Finding
	err := s.Objects(ctx, func(o tier.StoredObject) error {
		named, has := known[o.Log]
		c, attempt := named[o.Attempt]
		if !of(o.Log) || has && (o.Checkpoint || attempt && (o.Entry || c == nil)) {
			return nil
		}
		if attempt {
			if is, err := fileOf(s, &o, c); is || err != nil {
				return err
			}
		}
		f := Finding{Kind: KindOrphan, Log: o.Log, Object: o.Key, Notice: true}
		since := now - o.Modified
		f.Text = fmt.Sprintf("nothing names it; it is collected once it is %s old", time.Duration(age))
		if o.Modified == 0 || since > 2*age {
			f.Notice = false
			f.Text = fmt.Sprintf("nothing names it, and it is from %s: it should have been collected",
				o.Modified)
		}
		if attempt {
			f.Text = "it lies with the files of a copy, which has none of this name; nothing collects it"
		}
		out = append(out, f)
		return nil
	})
	if errors.Is(err, tier.ErrUnread) {
		return append(out, Finding{Kind: KindUnread, Text: err.Error()}), nil
	}
	return out, err
}

// fileOf reports whether the object is a file of the copy.
func fileOf(s Store, o *tier.StoredObject, c *tier.Copy) (bool, error) {
	for _, f := range c.Content.Files {
		if key, err := s.FileKey(c.Object(o.Log, f.Name)); err != nil || key == o.Key {
			return true, err
		}
	}
	return false, nil
}
