package objstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tierd/tierd/runtime/tier"
)

// manifestNamesMax is the largest listing of one manifest that is read.
const manifestNamesMax = 1 << 22

// ErrSecondEntry: two manifest entries have one position, which a ledger hands out only once. Both
// count. A ledger that was put back to an older state writes such entries.
var ErrSecondEntry = errors.New("second entry at its position")

// Problem is an object in a manifest that is not as it should be. Those that are tier.ErrDamaged,
// tier.ErrNewer, tier.ErrVanished (listed, but not there) or ErrForeign were left out; those that
// are ErrSecondEntry were not.
type Problem struct {
	Key string
	Err error // names the key
}

// Manifest reads the current manifest of a log: the highest checkpoints first, then what they do
// not stand for. Facts ascend by position. Objects that are damaged or foreign are reported and
// left out; a lower checkpoint or the entries serve instead of a damaged checkpoint. What a
// checkpoint stands for and does not contain is left out without a report: it is the late entry of
// an attempt that was abandoned.
//
// It begins with a listing, which in some stores lags behind: what it does not return may exist
// all the same. An error means that the manifest could not be read, and that there is no telling
// what it says.
func (s *Store) Manifest(ctx context.Context, log tier.LogID) ([]tier.Fact, []Problem, error) {
	return s.ManifestPast(ctx, log, nil)
}

// ManifestPast is Manifest for those who look for what is wrong, and go on past an object that the
// store does not give. Past is given the error: where it returns one that is tier.ErrUnread, that
// is a problem of this object alone.
func (s *Store) ManifestPast(ctx context.Context, log tier.LogID, past func(error) error) (
	[]tier.Fact, []Problem, error) {
	l, err := s.listManifest(ctx, log)
	if err != nil {
		return nil, nil, err
	}
	m := manifest{problems: l.problems, past: past}
	for level := uint8(tier.CheckpointLevelMax); level >= 1; level-- {
		for _, k := range l.checkpoints[level] {
			if m.covers(firstOf(level, k.Block)) {
				continue
			}
			key, err := s.keys.format(k)
			if err != nil {
				return nil, nil, err
			}
			facts, _, err := s.readCheckpoint(ctx, key, k)
			if ok, err := m.took(key, err); err != nil {
				return nil, nil, err
			} else if ok {
				m.facts = append(m.facts, facts...)
				m.covered[level].add(k.Block)
			}
		}
	}
	for _, k := range l.entries {
		if m.covers(k.Position) {
			continue
		}
		key, err := s.keys.format(k)
		if err != nil {
			return nil, nil, err
		}
		f, err := s.readEntry(ctx, key, k)
		if ok, err := m.took(key, err); err != nil {
			return nil, nil, err
		} else if ok {
			if n := len(m.facts); n > 0 && m.facts[n-1].Position == f.Position {
				m.problems = append(m.problems, Problem{key, fmt.Errorf("%s: %w", key, ErrSecondEntry)})
			}
			m.facts = append(m.facts, f)
		}
	}
	slices.SortStableFunc(m.facts, byPosition)
	return m.facts, m.problems, nil
}

// manifest is what has been read so far.
type manifest struct {
	facts    []tier.Fact
	problems []Problem
	covered  [tier.CheckpointLevelMax + 1]blocks
	past     func(error) error
}

type blocks map[uint64]bool

func (b *blocks) add(block uint64) {
	if *b == nil {
		*b = blocks{}
	}
	(*b)[block] = true
}

// covers reports whether a checkpoint that was read stands for the position.
func (m *manifest) covers(pos tier.Position) bool {
	for level := uint8(1); level <= tier.CheckpointLevelMax; level++ {
		if m.covered[level][blockOf(level, pos)] {
			return true
		}
	}
	return false
}

// took reports whether the object at key could be read. What is wrong with the object itself is a
// problem of this object alone; any other error ends the reading, unless it is gone past.
func (m *manifest) took(key string, err error) (bool, error) {
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, tier.ErrDamaged), errors.Is(err, tier.ErrNewer),
		errors.Is(err, tier.ErrVanished):
		m.problems = append(m.problems, Problem{key, err})
		return false, nil
	}
	if m.past != nil {
		err = m.past(err)
	}
	if errors.Is(err, tier.ErrUnread) {
		m.problems = append(m.problems, Problem{key, err})
		return false, nil
	}
	return false, err
}

// listing is what lies in the directory of a manifest: entries ascend by position, checkpoints by
// block.
type listing struct {
	entries     []Key
	checkpoints [tier.CheckpointLevelMax + 1][]Key
	problems    []Problem
}

func (s *Store) listManifest(ctx context.Context, log tier.LogID) (listing, error) {
	dir, err := s.keys.Manifest(log)
	if err != nil {
		return listing{}, err
	}
	var l listing
	names := map[string]bool{}
	err = s.bucket.Iter(ctx, dir, func(name string) error {
		if len(names) == manifestNamesMax {
			return fmt.Errorf("more than %d objects", manifestNamesMax)
		}
		names[name] = true
		return nil
	})
	if err != nil {
		return listing{}, s.failed(ctx, "list", dir, err)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		k, err := s.keys.Parse(name)
		switch {
		case err == nil && k.Kind == KeyCheckpoint && k.Log == log:
			l.checkpoints[k.Level] = append(l.checkpoints[k.Level], k)
		case err == nil && k.Kind == KeyEntry && k.Log == log:
			l.entries = append(l.entries, k)
		default:
			l.problems = append(l.problems, Problem{name, fmt.Errorf(
				"%s: %w: tierd gives nothing such a name here, and does not read it", name, ErrForeign)})
		}
	}
	return l, nil
}
