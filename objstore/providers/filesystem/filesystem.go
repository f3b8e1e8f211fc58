package filesystem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/thanos-io/objstore"

	"github.com/tierd/tierd/runtime/vfs"
)

// tempDir is where temporary files are. No key begins with it.
const tempDir = ".tierd-tmp"

var (
	errKey     = errors.New("want steps separated by single slashes, and no step of dots alone")
	errTempKey = errors.New("keys that begin with " + tempDir + "/ are reserved")
)

// Bucket is a bucket in a directory. Its methods are safe for concurrent use.
type Bucket struct {
	dir     vfs.Dir
	name    string
	process string

	uploads   atomic.Uint64 // numbers the temporary files
	swept     sync.Once
	buffers   sync.Pool
	closeOnce sync.Once
	closeErr  error

	// tree is held shared while an upload makes directories and puts an object in them, and alone
	// while a deletion removes directories, so that neither works on what the other takes away.
	// Other processes may still do so; uploads notice and begin again.
	tree sync.RWMutex
	// durable has the inodes of directories whose names are known to be durable, up to the root,
	// so that their parents are not synced for every upload again. Changed under tree: a directory
	// leaves it when it is removed, for the next one may get its inode.
	durable sync.Map // path to uint64
}

var _ objstore.Bucket = (*Bucket)(nil)

// New returns the bucket in dir and takes dir over. The name is for people. The process is put into
// the names of temporary files; no other process that uses the directory may have the same, so it
// should be random.
func New(dir vfs.Dir, name, process string) *Bucket {
	b := &Bucket{dir: dir, name: name, process: process}
	b.buffers.New = func() any { return new([copyBytes]byte) }
	return b
}

// Provider implements objstore.Bucket.
func (b *Bucket) Provider() objstore.ObjProvider { return objstore.FILESYSTEM }

// Name is what New was given.
func (b *Bucket) Name() string { return b.name }

// Close gives the directory back. Readers stay usable.
func (b *Bucket) Close() error {
	b.closeOnce.Do(func() { b.closeErr = b.dir.Close() })
	return b.closeErr
}

// IsObjNotFoundErr implements objstore.Bucket.
func (b *Bucket) IsObjNotFoundErr(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// IsAccessDeniedErr implements objstore.Bucket.
func (b *Bucket) IsAccessDeniedErr(err error) bool { return errors.Is(err, fs.ErrPermission) }

// Exists reports whether there is an object with the key.
func (b *Bucket) Exists(ctx context.Context, key string) (bool, error) {
	_, err := b.stat(ctx, key)
	if err == nil || b.IsObjNotFoundErr(err) {
		return err == nil, nil
	}
	return false, err
}

// Attributes returns the size in bytes, and when the last byte was written.
func (b *Bucket) Attributes(ctx context.Context, key string) (objstore.ObjectAttributes, error) {
	info, err := b.stat(ctx, key)
	if err != nil {
		return objstore.ObjectAttributes{}, err
	}
	return objstore.ObjectAttributes{Size: info.Size, LastModified: info.ModTime.Std()}, nil
}

// Get returns a reader of the whole object.
func (b *Bucket) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	return b.GetRange(ctx, key, 0, -1)
}

// GetRange returns a reader of length bytes from off on, or of what there is of them; a length of
// -1 is all from off on. The reader knows its size.
func (b *Bucket) GetRange(
	ctx context.Context, key string, off, length int64,
) (io.ReadCloser, error) {
	if off < 0 || length < -1 {
		return nil, fmt.Errorf("get %s: %d bytes at %d: %w", key, length, off, fs.ErrInvalid)
	}
	f, size, err := b.open(ctx, key)
	if err != nil {
		return nil, err
	}
	n := max(0, size-off)
	if length >= 0 {
		n = min(n, length)
	}
	return objstore.ObjectSizerReadCloser{
		ReadCloser: rangeReader{io.NewSectionReader(f, off, n), f},
		Size:       func() (int64, error) { return n, nil },
	}, nil
}

type rangeReader struct {
	io.Reader
	io.Closer
}

func (b *Bucket) open(ctx context.Context, key string) (vfs.File, int64, error) {
	if err := errors.Join(ctx.Err(), checkKey(key)); err != nil {
		return nil, 0, err
	}
	f, err := b.dir.Open(key)
	if err != nil {
		return nil, 0, b.explain(key, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size, nil
}

func (b *Bucket) stat(ctx context.Context, key string) (vfs.Info, error) {
	if err := errors.Join(ctx.Err(), checkKey(key)); err != nil {
		return vfs.Info{}, err
	}
	info, err := b.dir.Stat(key)
	switch {
	case err != nil:
		return info, b.explain(key, err)
	case info.Mode.IsDir():
		return info, notFound(key)
	case !info.Regular():
		return info, &fs.PathError{Op: "stat", Path: key, Err: vfs.ErrNotRegular}
	}
	return info, nil
}

// explain turns what the file system says of a key that is a directory, or that lies below an
// object, into what an object store says: there is no such object.
func (b *Bucket) explain(key string, err error) error {
	if errors.Is(err, syscall.ENOTDIR) {
		return notFound(key)
	}
	if errors.Is(err, vfs.ErrNotRegular) {
		if info, statErr := b.dir.Stat(key); statErr == nil && info.Mode.IsDir() {
			return notFound(key)
		}
	}
	return err
}

func notFound(key string) error {
	return &fs.PathError{Op: "open", Path: key, Err: fs.ErrNotExist}
}

// checkKey refuses what is no key of this bucket.
func checkKey(key string) error {
	if !fs.ValidPath(key) || key == "." || strings.ContainsRune(key, 0) {
		return fmt.Errorf("key %q: %w", key, errKey)
	}
	if isTemp(key) {
		return fmt.Errorf("key %q: %w", key, errTempKey)
	}
	return nil
}

// isTemp reports whether the path is tempDir or below it. Some file systems ignore case.
func isTemp(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return strings.EqualFold(first, tempDir)
}

// Delete removes the object, durably, and the directories that are empty without it.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	_, absent := b.stat(ctx, key)
	if absent == nil {
		absent = b.dir.Remove(key)
	}
	if absent != nil && !b.IsObjNotFoundErr(absent) {
		return absent
	}
	// Go on where there is no such object: an earlier deletion may have removed it and failed to
	// make that durable.
	left, err := b.prune(path.Dir(key))
	if err == nil {
		err = errors.Join(left.Sync("."), left.Close())
	}
	if err != nil {
		return err
	}
	return absent
}

// prune removes dir and those above it, as far as they are empty, and returns the first that
// remains, opened while no other deletion can remove it.
func (b *Bucket) prune(dir string) (left vfs.Dir, err error) {
	b.tree.Lock()
	defer b.tree.Unlock()
	for ; dir != "."; dir = path.Dir(dir) {
		err := b.dir.RemoveDir(dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			b.durable.Delete(dir)
			continue
		}
		left, err := b.dir.Sub(dir)
		if err == nil {
			return left, nil
		}
		// No directory, or one that another process has just removed: the name above matters.
		if !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return b.dir.Sub(".")
}
