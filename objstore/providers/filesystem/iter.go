package filesystem

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/thanos-io/objstore"

	"github.com/tierd/tierd/runtime/vfs"
)

// SupportedIterOptions implements objstore.Bucket.
func (b *Bucket) SupportedIterOptions() []objstore.IterOptionType {
	return []objstore.IterOptionType{objstore.Recursive, objstore.UpdatedAt}
}

// Iter calls f with the keys below dir, in the order of their bytes. Unless asked to recurse, it
// goes one level down, and a key that ends in "/" stands for all that begin with it. A listing is
// no snapshot: what is uploaded or deleted meanwhile may be in it or not.
func (b *Bucket) Iter(
	ctx context.Context, dir string, f func(string) error, options ...objstore.IterOption,
) error {
	return b.IterWithAttributes(ctx, dir, func(attrs objstore.IterObjectAttributes) error {
		return f(attrs.Name)
	}, options...)
}

// IterWithAttributes does as Iter, and also gives the time of each object if asked for it.
func (b *Bucket) IterWithAttributes(
	ctx context.Context, dir string, f func(objstore.IterObjectAttributes) error,
	options ...objstore.IterOption,
) error {
	if err := objstore.ValidateIterOptions(b.SupportedIterOptions(), options...); err != nil {
		return err
	}
	dir = strings.TrimRight(dir, objstore.DirDelim)
	if dir == "" {
		dir = "."
	} else if err := checkKey(dir); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	w := walk{b.dir, objstore.ApplyIterOptions(options...), f}
	return w.dir(ctx, dir)
}

type walk struct {
	root   vfs.Dir
	params objstore.IterParams
	emit   func(objstore.IterObjectAttributes) error
}

func (w *walk) dir(ctx context.Context, dir string) error {
	entries, err := list(w.root, dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		key := path.Join(dir, e.Name)
		if e.Mode.IsDir() {
			err = w.subdir(ctx, key)
		} else {
			err = w.object(key, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) subdir(ctx context.Context, dir string) error {
	if w.params.Recursive {
		return w.dir(ctx, dir)
	}
	some, err := holdsObject(ctx, w.root, dir)
	if err != nil || !some {
		return err
	}
	return w.emit(objstore.IterObjectAttributes{Name: dir + objstore.DirDelim})
}

func (w *walk) object(key string, info vfs.Info) error {
	attrs := objstore.IterObjectAttributes{Name: key}
	if w.params.LastModified {
		attrs.SetLastModified(info.ModTime.Std())
	}
	return w.emit(attrs)
}

// holdsObject reports whether there is an object below dir. There is none where an upload or a
// deletion was cut off.
func holdsObject(ctx context.Context, root vfs.Dir, dir string) (bool, error) {
	entries, err := list(root, dir)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(entries, vfs.Info.Regular) {
		return true, nil
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if some, err := holdsObject(ctx, root, path.Join(dir, e.Name)); some || err != nil {
			return some, err
		}
	}
	return false, nil
}

// list returns the objects and directories in dir, ordered as their keys are: a directory as if it
// ended in "/". A directory that is not there holds nothing.
func list(root vfs.Dir, dir string) ([]vfs.Info, error) {
	infos, err := root.List(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	infos = slices.DeleteFunc(infos, func(i vfs.Info) bool {
		return !i.Regular() && !i.Mode.IsDir() || dir == "." && isTemp(i.Name)
	})
	slices.SortFunc(infos, func(a, b vfs.Info) int {
		return strings.Compare(sortKey(a), sortKey(b))
	})
	return infos, nil
}

func sortKey(i vfs.Info) string {
	if i.Mode.IsDir() {
		return i.Name + objstore.DirDelim
	}
	return i.Name
}
