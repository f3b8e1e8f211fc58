package objstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/tier"
)

// Delete spends the permit and deletes the objects at the keys, all of which must lie under the
// target's object: the key itself, or the directory of an attempt with its slash. An object that
// is not there is a success. It stops at the first error; what is left needs another permit.
//
// It is the only method that deletes, but for Probe and ForgetProbes, which delete what probes have
// made.
func (s *Store) Delete(ctx context.Context, p gate.Permit, target gate.Target,
	keys ...string) error {
	if err := s.checkDeletion(target, keys); err != nil {
		return err
	}
	if err := p.Spend(target); err != nil {
		return err
	}
	for _, key := range keys {
		if err := s.remove(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// checkDeletion refuses whatever the target does not name. A permit to delete a local segment also
// names an object, the one that proves the segment: it is the last that may go.
func (s *Store) checkDeletion(target gate.Target, keys []string) error {
	switch target.Action {
	case tier.DeleteRemote, tier.DeleteOrphan, tier.DisableDelete:
	default:
		return fmt.Errorf("delete objects of %s %s: the action is %q",
			target.Log, target.Range, target.Action)
	}
	if len(keys) == 0 {
		return fmt.Errorf("%s of %s %s: no keys", target.Action, target.Log, target.Range)
	}
	for _, key := range keys {
		k, err := s.keys.Parse(key)
		if err != nil {
			return fmt.Errorf("%s: %w", target.Action, err)
		}
		switch k.Kind {
		case KeyFile, KeyEntry, KeyCheckpoint:
		default:
			return fmt.Errorf("%s of %s: is no object of a log", target.Action, key)
		}
		under := strings.HasSuffix(target.Object, "/") && strings.HasPrefix(key, target.Object)
		if k.Log != target.Log || key != target.Object && !under {
			return fmt.Errorf("%s of %s: the target is %q of %s",
				target.Action, key, target.Object, target.Log)
		}
	}
	return nil
}

// remove deletes one object.
func (s *Store) remove(ctx context.Context, key string) error {
	err := s.bucket.Delete(ctx, key)
	if err == nil || s.bucket.IsObjNotFoundErr(err) {
		return nil
	}
	return s.failed(ctx, "delete", key, err)
}
