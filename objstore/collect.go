package objstore

import (
	"context"
	"fmt"
	"strings"

	thanos "github.com/thanos-io/objstore"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/tier"
)

// AttemptKey is the prefix of the keys of an attempt's files.
func (s *Store) AttemptKey(k tier.ObjectKey) (string, error) { return s.keys.Attempt(k) }

// FileKey is the key of one file of an attempt.
func (s *Store) FileKey(k tier.ObjectKey) (string, error) { return s.keys.File(k) }

// DeleteFiles spends the permit and deletes the files, which must be of the target's attempt. One
// that is not there is a success.
func (s *Store) DeleteFiles(ctx context.Context, p gate.Permit, t gate.Target,
	files []tier.ObjectKey) error {
	keys := make([]string, 0, len(files))
	for _, f := range files {
		key, err := s.keys.File(f)
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}
	return s.Delete(ctx, p, t, keys...)
}

// DeleteObject spends the permit and deletes the one object that is the target.
func (s *Store) DeleteObject(ctx context.Context, p gate.Permit, t gate.Target) error {
	return s.Delete(ctx, p, t, t.Object)
}

// NewestEntry lists the log's manifest for the highest position that has an entry.
func (s *Store) NewestEntry(ctx context.Context, log tier.LogID) (pos tier.Position, found bool,
	err error) {
	dir, err := s.keys.Manifest(log)
	if err != nil {
		return 0, false, err
	}
	err = s.bucket.Iter(ctx, dir, func(key string) error {
		if k, err := s.keys.Parse(key); err == nil && k.Kind == KeyEntry && k.Log == log {
			pos, found = max(pos, k.Position), true
		}
		return nil
	})
	if err != nil {
		return 0, false, s.failed(ctx, "list", dir, err)
	}
	return pos, found, nil
}

// Size is the size of the object with the key, in bytes; tier.ErrVanished where there is none.
func (s *Store) Size(ctx context.Context, key string) (int64, error) {
	a, err := s.bucket.Attributes(ctx, key)
	if err != nil {
		return 0, s.missing(ctx, "stat", key, err)
	}
	return a.Size, nil
}

// Objects lists all objects of logs under the ledger's id: files, manifest entries, checkpoints.
// What has no key of tierd's is passed over: it is nobody's to delete. A listing may lag behind; it
// is only ever where looking begins.
func (s *Store) Objects(ctx context.Context, fn func(tier.StoredObject) error) error {
	dir := s.keys.ledger + "/logs/"
	err := s.bucket.IterWithAttributes(ctx, dir, func(a thanos.IterObjectAttributes) error {
		k, err := s.keys.Parse(a.Name)
		if err != nil || strings.HasSuffix(a.Name, "/") {
			return nil
		}
		o := tier.StoredObject{Key: a.Name, Log: k.Log, Attempt: k.Attempt, Position: k.Position,
			Epoch: k.Epoch, Level: k.Level, Block: k.Block, Entry: k.Kind == KeyEntry,
			Checkpoint: k.Kind == KeyCheckpoint}
		if !o.Entry && !o.Checkpoint && k.Kind != KeyFile {
			return nil
		}
		o.Modified = s.modified(ctx, a)
		return fn(o)
	}, s.dated(thanos.WithRecursiveIter())...)
	if err != nil {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	return nil
}

// dated adds that a listing is to tell when objects were modified, where the store can.
func (s *Store) dated(options ...thanos.IterOption) []thanos.IterOption {
	for _, o := range s.bucket.SupportedIterOptions() {
		if o == thanos.UpdatedAt {
			options = append(options, thanos.WithUpdatedAt())
		}
	}
	return options
}

// modified is when a listed object was, by the store's clock; 0 where that cannot be told.
func (s *Store) modified(ctx context.Context, a thanos.IterObjectAttributes) tier.Time {
	if at, ok := a.LastModified(); ok {
		return tier.TimeOf(at)
	}
	if attributes, err := s.bucket.Attributes(ctx, a.Name); err == nil {
		return tier.TimeOf(attributes.LastModified)
	}
	return 0
}

// ForgetProbes deletes the objects of probes that were modified before the time, and says how many:
// a process that ends in the middle of a probe leaves its object behind, and only a listing finds
// it. They have nothing of a log, and no policy is asked about them.
func (s *Store) ForgetProbes(ctx context.Context, before tier.Time) (removed int64, err error) {
	dir := s.keys.ledger + "/probe/"
	var old []string
	err = s.bucket.IterWithAttributes(ctx, dir, func(a thanos.IterObjectAttributes) error {
		if k, err := s.keys.Parse(a.Name); err == nil && k.Kind == KeyProbe {
			if at := s.modified(ctx, a); at > 0 && at < before {
				old = append(old, a.Name)
			}
		}
		return nil
	}, s.dated()...)
	if err != nil {
		return 0, s.failed(ctx, "list", dir, err)
	}
	for _, key := range old {
		if err := s.remove(ctx, key); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}
