package logdir

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/tierd/tierd/runtime/planted"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// The trash lies in the directory of the log, and is there only while something is in it.
const (
	trashName     = ".tierd-trash"
	pendingSuffix = ".pending" // moved away, not yet shown to be the file that is meant
	deadSuffix    = ".dead"    // shown to be; its deletion is decided and has to be finished
)

// trash removes files of one directory. Its caller excludes everybody else from the directory.
type trash struct {
	root   vfs.Dir
	dir    string // of the log, below root
	layout layout
}

func (t trash) bin() string           { return path.Join(t.dir, trashName) }
func (t trash) at(name string) string { return path.Join(t.dir, name) }
func (t trash) in(name string) string { return path.Join(t.dir, trashName, name) }

func (t trash) sync(names string) error {
	if planted.Is(planted.NoDirectorySync) {
		return nil
	}
	return t.root.Sync(names)
}

// take moves the file out of reach and shows that it is the file that is meant. It returns
// tier.ErrChanged or tier.ErrVanished, wrapped, if it is not; then the file is back in its place.
// After any other error, put right says how it ended.
func (t trash) take(name string, want tier.Stat) error {
	if err := t.check(t.at(name), want); err != nil {
		return err
	}
	switch err := t.root.Mkdir(t.bin()); {
	case err == nil:
		// The trash must be durable before a file is in it and nowhere else.
		if err := t.sync(t.dir); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	pending := t.in(name + pendingSuffix)
	if err := t.root.Rename(t.at(name), pending); err != nil {
		return gone(err)
	}
	// The new name first: a crash may leave the file two names, and never none.
	if err := t.sync(t.bin()); err != nil {
		return err
	}
	if err := t.sync(t.dir); err != nil {
		return err
	}
	if err := t.check(pending, want); err != nil {
		if !errors.Is(err, tier.ErrChanged) {
			return err
		}
		if kept, errBack := t.putBack(name); errBack != nil || kept {
			return fmt.Errorf("%s stays in the trash: %w", pending, errors.Join(err, errBack))
		}
		return err
	}
	if err := t.root.Rename(pending, t.in(name+deadSuffix)); err != nil {
		return err
	}
	return t.sync(t.bin())
}

// check returns an error unless name is the regular file that is meant.
func (t trash) check(name string, want tier.Stat) error {
	info, err := t.root.Stat(name)
	switch {
	case err != nil:
		return gone(err)
	case !info.Regular() || info.Stat != want:
		return fmt.Errorf("%s: %w: want inode %d, %d bytes, %s; found inode %d, %d bytes, %s",
			name, tier.ErrChanged, want.Inode, want.Size, want.ModTime,
			info.Inode, info.Size, info.ModTime)
	}
	return nil
}

// putBack gives a pending file its name back. Kept is true if another file has that name now: then
// nothing is replaced, and both stay.
func (t trash) putBack(name string) (kept bool, err error) {
	pending := t.in(name + pendingSuffix)
	lost, err := t.root.Stat(pending)
	if err != nil {
		return false, err
	}
	switch there, err := t.root.Stat(t.at(name)); {
	case errors.Is(err, fs.ErrNotExist):
		err := t.root.Rename(pending, t.at(name))
		if errors.Is(err, fs.ErrExist) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	case err != nil:
		return false, err
	case there.Inode != lost.Inode:
		return true, nil
	}
	// Its own name must be durable before the one in the trash goes. Where a crash left both, the
	// latter is still to go.
	if err := t.sync(t.dir); err != nil {
		return false, err
	}
	if err := t.root.Remove(pending); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return false, t.sync(t.bin())
}

// finish removes a dead file and what belongs to it. The dead file goes last: as long as it is
// there, a crash leaves it known that the others have to go. Where its name was given to a new
// file, the others may be that one's and stay. So does what is not as it was in before, the listing
// by which the deletion was decided: nobody has copied it. After a crash there is no such listing,
// before is nil, and all go.
func (t trash) finish(name string, before []vfs.Info) error {
	names, err := t.root.Names(t.dir)
	if err != nil {
		return err
	}
	infos, err := describe(t.root, t.dir, t.layout, names, name)
	if err != nil {
		return err
	}
	removed := false
	if _, reused := infoOf(infos, name); !reused {
		for _, i := range t.layout.companions(infos, name) {
			if before != nil && !slices.Contains(before, i) {
				continue
			}
			if err := t.root.Remove(t.at(i.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			removed = true
		}
	}
	// Take has synced the directory; of what went before a crash or a failure that is not known.
	if removed || before == nil {
		if err := t.sync(t.dir); err != nil {
			return err
		}
	}
	if err := t.root.Remove(t.in(name + deadSuffix)); err != nil {
		return err
	}
	return t.sync(t.bin())
}

// putRight ends what was interrupted: dead files go, pending ones get their names back, and the
// trash goes when it is empty. What cannot be put right stays and is seen by the next scan.
func (t trash) putRight() error {
	infos, err := t.root.List(t.bin())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	// What is called dead here may not be so on the disk yet: a drop may have failed just there.
	// Nothing that belongs to a segment goes before its own end is durable.
	if err := t.sync(t.bin()); err != nil {
		return err
	}
	var errs error
	left := 0
	for _, i := range infos {
		if name, ok := strings.CutSuffix(i.Name, deadSuffix); ok && i.Regular() {
			errs = errors.Join(errs, t.finish(name, nil))
		} else if name, ok := strings.CutSuffix(i.Name, pendingSuffix); ok && i.Regular() {
			kept, err := t.putBack(name)
			if kept {
				left++
			}
			errs = errors.Join(errs, err)
		} else {
			left++
		}
	}
	if errs != nil || left > 0 {
		return errs
	}
	// What an earlier call did and could not sync must be durable before the trash goes: a crash
	// that keeps only the latter would take a file with it.
	if err := t.sync(t.dir); err != nil {
		return err
	}
	if err := t.sync(t.bin()); err != nil {
		return err
	}
	return t.root.RemoveDir(t.bin()) // that it is gone need not be durable: it is empty
}

// inspectTrash reports what lies in the trash of a directory. A file that was not shown to be the
// one that was meant is missing from its log: nothing of the log is decided before it is back.
func inspectTrash(root vfs.Dir, dir string, l *listing) {
	infos, err := root.List(path.Join(dir, trashName))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		l.hide(trashName, tier.CodeUnreadable, "%v", err)
		return
	}
	for _, i := range infos {
		at := path.Join(trashName, i.Name)
		switch {
		case strings.HasSuffix(i.Name, pendingSuffix):
			l.hide(at, tier.CodeRetry, "an interrupted deletion left it here: it is to go back to "+
				"%s, unless another file has that name now; then move it away yourself",
				strings.TrimSuffix(i.Name, pendingSuffix))
		case strings.HasSuffix(i.Name, deadSuffix):
			l.problem(at, tier.CodeRetry, "a deletion is not finished: it goes on at the next "+
				"scan that may delete from this source")
		default:
			l.problem(at, tier.CodeBadName, "not a file of tierd's: it is left alone")
		}
	}
}
