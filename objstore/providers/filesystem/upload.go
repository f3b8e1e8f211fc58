package filesystem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"syscall"
	"time"

	"github.com/thanos-io/objstore"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

const (
	// copyBytes is the buffer of one upload, in bytes.
	copyBytes = 1 << 20
	// abandonedAfter is how long nothing was written to a temporary file that is swept. Should its
	// upload be alive all the same, it fails; it cannot put anything else under its key.
	abandonedAfter = time.Hour
	// publishAttemptsMax bounds how often an upload begins again because another process removed
	// the directory that it had just made.
	publishAttemptsMax = 100
)

// Upload stores what r gives, until io.EOF, as the object with the key. Options are of no use to a
// file and ignored. After an error the object may be there, whole.
func (b *Bucket) Upload(
	ctx context.Context, key string, r io.Reader, _ ...objstore.ObjectUploadOption,
) error {
	err := b.upload(ctx, key, r)
	if vfs.IsFull(err) {
		err = fmt.Errorf("%w; the disk of the bucket's directory is full: make room on it", err)
	}
	if err != nil {
		return fmt.Errorf("upload %s: %w", key, err)
	}
	return nil
}

func (b *Bucket) upload(ctx context.Context, key string, r io.Reader) error {
	if err := errors.Join(ctx.Err(), checkKey(key)); err != nil {
		return err
	}
	temp := fmt.Sprintf("%s/%s-%d", tempDir, b.process, b.uploads.Add(1))
	err := b.writeTemp(ctx, temp, r)
	if err == nil {
		err = b.publish(temp, key)
	}
	if err != nil {
		// It may have got its key all the same, or never have been made; what remains is swept.
		_ = b.dir.Remove(temp)
	}
	return err
}

// writeTemp makes the file temp with the content of r, durably.
func (b *Bucket) writeTemp(ctx context.Context, temp string, r io.Reader) error {
	f, err := b.createTemp(temp)
	if err != nil {
		return err
	}
	n, err := b.copy(ctx, f, r)
	if err == nil {
		err = f.Sync()
	}
	// Nobody reads it soon; the memory is better used for what is read.
	f.DropCache(0, n)
	return errors.Join(err, f.Close())
}

func (b *Bucket) createTemp(temp string) (vfs.File, error) {
	f, err := b.dir.Create(temp)
	if errors.Is(err, fs.ErrNotExist) {
		if err := b.dir.Mkdir(tempDir); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		f, err = b.dir.Create(temp)
	}
	if err != nil {
		return nil, err
	}
	b.swept.Do(func() {
		// The new file's time is now, by the clock that the others' times are by.
		if info, err := f.Stat(); err == nil {
			b.sweep(info.ModTime)
		}
	})
	return f, nil
}

// sweep removes temporary files of uploads that were cut off, of any process. It is housekeeping:
// what cannot be removed now is met again by the next process.
func (b *Bucket) sweep(now tier.Time) {
	infos, err := b.dir.List(tempDir)
	if err != nil {
		return
	}
	for _, info := range infos {
		if now.Sub(info.ModTime) >= abandonedAfter {
			_ = b.dir.Remove(path.Join(tempDir, info.Name))
		}
	}
}

// copy writes what r gives to w, by whole buffers, and returns the number of bytes written.
func (b *Bucket) copy(ctx context.Context, w io.Writer, r io.Reader) (n int64, err error) {
	buf := b.buffers.Get().(*[copyBytes]byte)
	defer b.buffers.Put(buf)
	for err == nil {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		var filled int
		filled, err = fill(buf[:], r)
		written, writeErr := w.Write(buf[:filled])
		n += int64(written)
		if writeErr != nil {
			return n, writeErr
		}
	}
	if err == io.EOF {
		return n, nil
	}
	return n, err
}

// emptyReadsMax bounds how often a reader may give neither bytes nor an error.
const emptyReadsMax = 100

// fill reads until buf is full or r gives an error, and returns the very error: unlike
// io.ReadFull, which makes a reader's io.ErrUnexpectedEOF look like a short last buffer.
func fill(buf []byte, r io.Reader) (n int, err error) {
	for empty := 0; n < len(buf) && err == nil; {
		var read int
		read, err = r.Read(buf[n:])
		n += read
		if read > 0 {
			empty = 0
		} else if empty++; empty == emptyReadsMax && err == nil {
			err = io.ErrNoProgress
		}
	}
	return n, err
}

// publish gives the file temp its key, durably.
func (b *Bucket) publish(temp, key string) error {
	b.tree.RLock()
	defer b.tree.RUnlock()
	for range publishAttemptsMax {
		unsynced, err := b.makeParents(key)
		if err == nil {
			err = b.dir.Replace(temp, key)
		}
		if errors.Is(err, fs.ErrNotExist) {
			if _, err := b.dir.Stat(temp); err != nil {
				return err
			}
			continue // the file is there, so it is a directory that went
		}
		if errors.Is(err, syscall.EISDIR) {
			return fmt.Errorf("there are objects with keys that begin with %s/: %w", key, err)
		}
		if err != nil {
			return err
		}
		return b.syncParents(key, unsynced)
	}
	return fmt.Errorf("directory removed %d times by another process: %w",
		publishAttemptsMax, fs.ErrNotExist)
}

// parent is a directory above a key.
type parent struct {
	path  string
	inode uint64
}

// makeParents makes the directories above the key that are missing, and returns those whose names
// are not known to be durable, outermost first.
func (b *Bucket) makeParents(key string) (unsynced []parent, err error) {
	for i, c := range key {
		if c != '/' {
			continue
		}
		dir := key[:i]
		info, err := b.dir.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			if err := b.dir.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, err
			}
			info, err = b.dir.Stat(dir)
		}
		if err != nil {
			return nil, err
		}
		if info.Regular() {
			return nil, fmt.Errorf("%s is an object, so no key can begin with %s/: %w",
				dir, dir, syscall.ENOTDIR)
		}
		if inode, ok := b.durable.Load(dir); !ok || inode != info.Inode {
			unsynced = append(unsynced, parent{dir, info.Inode})
		}
	}
	return unsynced, nil
}

// syncParents makes durable the object's name and those of the directories above it.
func (b *Bucket) syncParents(key string, unsynced []parent) error {
	if err := b.dir.Sync(path.Dir(key)); err != nil {
		return err
	}
	for _, p := range unsynced {
		if err := b.dir.Sync(path.Dir(p.path)); err != nil {
			return err
		}
	}
	for _, p := range unsynced {
		b.durable.Store(p.path, p.inode)
	}
	return nil
}
