package logdir

import (
	"context"
	"errors"
	"fmt"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// Drop removes the segment's files, the one with the records first, and spends the permit. It is
// done only if that file is still target.File; otherwise the error wraps tier.ErrChanged or
// tier.ErrVanished and nothing was removed. A nil error means that the names are durably gone.
// After any other error, looking tells how it ended. With LocalDeleteRecords the broker gives the
// segment up, which is what nil says then; its files go when its retention comes by.
func (s *Source) Drop(ctx context.Context, p gate.Permit, target gate.Target) (err error) {
	if err := p.Spend(target); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	name := func(err error) error {
		return fmt.Errorf("drop %s %s: %w", target.Log, target.Range, err)
	}
	switch {
	case target.Action != tier.DeleteLocal:
		return name(fmt.Errorf("%s is not what a source does", target.Action))
	case s.cfg.ReadOnly:
		return name(fmt.Errorf("the source %s is only looked at", s.cfg.Name))
	case s.cfg.LocalDelete == tier.LocalDeleteNever:
		return name(fmt.Errorf("local_delete of the source %s is %s", s.cfg.Name,
			s.cfg.LocalDelete))
	case s.cfg.LocalDelete == tier.LocalDeleteUnlink && !s.mayDrop():
		return name(fmt.Errorf("tierd does not hold the lock of the source %s", s.cfg.Name))
	}
	root, err := s.root()
	if err != nil {
		return name(err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	dir, _, err := s.names(root, target.Log)
	if err != nil {
		return name(err)
	}
	defer s.distrust(dir)
	if s.cfg.LocalDelete == tier.LocalDeleteRecords {
		if err := s.give(ctx, root, dir, target); err != nil {
			return name(err)
		}
		return nil
	}
	defer s.locks.drop(dir)()
	if err := s.drop(root, dir, target); err != nil {
		return name(err)
	}
	return nil
}

// drop is Drop in the log's directory, with everybody else excluded from it.
func (s *Source) drop(root vfs.Dir, dir string, target gate.Target) error {
	t := trash{root: root, dir: dir, layout: s.layout}
	if err := t.putRight(); err != nil {
		return err
	}
	names, err := root.Names(dir)
	if err != nil {
		return gone(err)
	}
	seg, err := s.segment(root, dir, names, target.Range)
	if err != nil {
		return err
	}
	if seg.rest != target.Rest { // names, sizes, times and inodes of all files but the one to be taken
		return fmt.Errorf("%s: %w: a file beside it came, went or was written since it was asked about",
			seg.name, tier.ErrChanged)
	}
	if err := t.take(seg.name, target.File); err != nil {
		return errors.Join(err, t.putRight())
	}
	if err := t.finish(seg.name, seg.infos); err != nil {
		return errors.Join(err, t.putRight())
	}
	// The names are durably gone; an empty trash that stays is seen to by the next scan.
	_ = root.RemoveDir(t.bin())
	return nil
}

// Settle puts right what an interrupted Drop left of one log: dead files go, pending ones get their
// names back. An error means that it is not known what the log has.
func (s *Source) Settle(ctx context.Context, id tier.LogID) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	root, err := s.root()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	dir, infos, err := s.locate(root, id)
	if err != nil {
		return err
	}
	if _, trashed := infoOf(infos, trashName); !trashed {
		return nil
	}
	if reason := s.takeLock(); reason != nil || !s.mayDrop() {
		return fmt.Errorf("log %s: an interrupted deletion cannot be put right: tierd may not "+
			"delete from the source %s now", id, s.cfg.Name)
	}
	return s.sweep(root, dir)
}

// sweep puts right what an interrupted drop left in the directory.
func (s *Source) sweep(root vfs.Dir, dir string) error {
	defer s.locks.drop(dir)()
	return trash{root: root, dir: dir, layout: s.layout}.putRight()
}
