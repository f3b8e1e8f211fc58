package objstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	thanos "github.com/thanos-io/objstore"

	"github.com/tierd/tierd/runtime/tier"
)

// Union is all that a log's manifest says anywhere.
type Union struct {
	// Facts are what a reader of the manifest sees, ascending by position. Several can have one
	// position.
	Facts []tier.Fact
	// Hidden are facts of entries that the checkpoint of their block lacks, likewise: late ones of
	// attempts that were abandoned, those of copies that are gone, or what an older ledger's
	// checkpoint forgot.
	Hidden []tier.Fact
	// Problems are objects that could not be read, and second entries at a position.
	Problems []Problem
	// Next is one past the highest position that a key or a checkpoint speaks of.
	Next tier.Position
	// Checkpoints[l] is how many leading blocks of level l+1 could be read.
	Checkpoints []uint64
}

// factID tells facts apart: a ledger gives a position to one attempt, and none to two marks.
type factID struct {
	position tier.Position
	attempt  tier.AttemptID
}

func idOf(f *tier.Fact) factID {
	id := factID{position: f.Position}
	if f.Add != nil {
		id.attempt = f.Add.Attempt
	}
	return id
}

// Union reads every checkpoint of a log's manifest and every entry that says something else. Unlike
// Manifest it trusts no checkpoint to be the last word about its block: one that an older ledger
// wrote over a newer one's may lack what still stands in entries. An error means that the manifest
// could not be read, and that there is no telling what it says.
func (s *Store) Union(ctx context.Context, log tier.LogID) (Union, error) {
	l, err := s.listManifest(ctx, log)
	if err != nil {
		return Union{}, err
	}
	m := manifest{problems: l.problems}
	seen := map[factID]bool{}
	u := Union{}
	for level := uint8(tier.CheckpointLevelMax); level >= 1; level-- {
		leading := uint64(0)
		for _, k := range l.checkpoints[level] {
			u.Next = max(u.Next, firstOf(level, k.Block+1))
			facts, ok, err := s.unionCheckpoint(ctx, &m, k)
			if err != nil {
				return Union{}, err
			}
			if ok && k.Block == leading {
				leading++
			}
			if ok {
				m.covered[level].add(k.Block)
			}
			m.facts = appendNew(m.facts, facts, seen)
		}
		u.Checkpoints = append([]uint64{leading}, u.Checkpoints...)
	}
	for _, k := range l.entries {
		u.Next = max(u.Next, k.Position+1)
		if seen[factID{k.Position, k.Attempt}] {
			continue
		}
		key, err := s.keys.format(k)
		if err != nil {
			return Union{}, err
		}
		f, err := s.readEntry(ctx, key, k)
		if ok, err := m.took(key, err); err != nil {
			return Union{}, err
		} else if ok && m.covers(k.Position) {
			u.Hidden = append(u.Hidden, f)
		} else if ok {
			m.facts = append(m.facts, f)
		}
	}
	slices.SortStableFunc(m.facts, byPosition)
	u.Facts, u.Problems = m.facts, m.problems
	return u, nil
}

func (s *Store) unionCheckpoint(ctx context.Context, m *manifest, k Key) ([]tier.Fact, bool,
	error) {
	key, err := s.keys.format(k)
	if err != nil {
		return nil, false, err
	}
	facts, _, err := s.readCheckpoint(ctx, key, k)
	ok, err := m.took(key, err)
	return facts, ok, err
}

func appendNew(to, facts []tier.Fact, seen map[factID]bool) []tier.Fact {
	for i := range facts {
		if id := idOf(&facts[i]); !seen[id] {
			seen[id] = true
			to = append(to, facts[i])
		}
	}
	return to
}

// Owners reads the owner objects of all ledgers that write into the bucket, ascending by ledger.
// Whatever else lies in the bucket is passed over; an owner object that cannot be made out is a
// problem.
func Owners(ctx context.Context, bucket thanos.Bucket) ([]Owner, []Problem, error) {
	var ids []string
	err := bucket.Iter(ctx, "", func(name string) error {
		if id, isDir := strings.CutSuffix(name, "/"); isDir {
			if _, err := NewKeys(id); err == nil {
				ids = append(ids, id)
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list the bucket: %w", err)
	}
	slices.Sort(ids)
	var out []Owner
	var problems []Problem
	for _, id := range ids {
		s, err := New(bucket, id)
		if err != nil {
			return nil, nil, err
		}
		o, err := s.Owner(ctx)
		switch {
		case err == nil && o.Ledger == id:
			out = append(out, o)
		case err == nil:
			problems = append(problems, Problem{s.keys.Owner(), fmt.Errorf("%s names the ledger %q: %w",
				s.keys.Owner(), o.Ledger, tier.ErrDamaged)})
		case errors.Is(err, tier.ErrVanished): // a directory of somebody else's
		case errors.Is(err, tier.ErrDamaged), errors.Is(err, tier.ErrNewer):
			problems = append(problems, Problem{s.keys.Owner(), err})
		default:
			return nil, nil, err
		}
	}
	return out, problems, nil
}
