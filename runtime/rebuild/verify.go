package rebuild

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/runtime/tier"
)

// verify looks at the objects of every add, and marks those that do not count.
func (r *run) verify(ctx context.Context, k *known) error {
	var copies []*tier.Copy
	seen := map[tier.AttemptID]bool{}
	for _, facts := range [][]tier.Fact{k.union.Facts, k.union.Hidden} {
		for i := range facts {
			if c := facts[i].Add; c != nil && !seen[c.Attempt] {
				seen[c.Attempt] = true
				copies = append(copies, c)
			}
		}
	}
	k.bad = map[tier.AttemptID]error{}
	var mu sync.Mutex // guards k.bad and what tell changes
	return r.c.Each(ctx, len(copies), func(ctx context.Context, i int) error {
		c := copies[i]
		why, err := r.look(ctx, k.id, c)
		mu.Lock()
		defer mu.Unlock()
		if why != nil {
			k.bad[c.Attempt] = why
		}
		r.tell(func(p *Progress) {
			p.Copies++
			p.Bytes += c.Content.Bytes()
		})
		return err
	})
}

// missing tells of each add that would be part of the log, and of which an object is gone or wrong.
func (r *run) missing(k *known) (n int64) {
	told := map[tier.AttemptID]bool{}
	for i := range k.union.Facts {
		f := &k.union.Facts[i]
		if f.Add == nil || k.bad[f.Add.Attempt] == nil || told[f.Add.Attempt] ||
			f.Epoch < k.state.Fresh || f.Add.Content.Range.Next <= k.state.LogStart {
			continue // of what has left the log nothing needs to be there
		}
		told[f.Add.Attempt] = true
		n++
		r.report.Problems = append(r.report.Problems, objstore.Problem{Key: fmt.Sprintf(
			"manifest of %s, position %d", k.id, f.Position), Err: k.bad[f.Add.Attempt]})
	}
	return n
}

// look verifies the objects of a copy; why says what is wrong with them. An error leaves it open.
func (r *run) look(ctx context.Context, log tier.LogID, c *tier.Copy) (why, err error) {
	for _, file := range c.Content.Files {
		err := r.c.Store.VerifyFile(ctx, c.Object(log, file.Name), file.FileDigest, r.c.Mode, nil)
		switch {
		case errors.Is(err, tier.ErrVanished), errors.Is(err, tier.ErrDamaged):
			return err, nil
		case err != nil:
			return nil, err
		}
	}
	return nil, nil
}
