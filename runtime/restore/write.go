package restore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

const (
	markerName    = ".tierd-restore.json"
	partSuffix    = ".tierd-part"
	lostFound     = "lost+found" // of a file system's root
	markerVersion = 1
	// blockBytes is how much is read and written at once.
	blockBytes = 4 << 20
)

// ErrForeign is returned where a file or directory is not what a restore would have left there.
var ErrForeign = errors.New("not of this restore")

// Marker says what an unfinished directory is to become.
type Marker struct {
	Version  int         `json:"version"`
	LedgerID string      `json:"ledger_id"`
	Subject  string      `json:"subject"` // a log or a table
	From     tier.Offset `json:"from"`
	Until    tier.Time   `json:"until"` // nanoseconds since the Unix epoch; 0 is none
}

// Store is the object store, as far as restoring asks it. It is safe for concurrent use;
// tier.ErrVanished and tier.ErrDamaged are wrapped.
type Store interface {
	// ReadFile fills the buffers with the bytes from off on.
	ReadFile(ctx context.Context, k tier.ObjectKey, off int64, bufs ...[]byte) error
}

// Target is the directory that a restore goes into. It is safe for concurrent use, for different
// files.
type Target struct {
	Dir   vfs.Dir
	Store Store
	// SetTime gives a file below Dir its modification time.
	SetTime func(name string, t tier.Time) error
	// Done is told of bytes that need not be read any more. It may be nil.
	Done func(bytes int64)
}

// Begin makes sure that the directory is empty, or holds an unfinished restore with the same
// marker, and marks it. Resumed tells that it goes on. A directory that has all of the plan and
// nothing else is one that a kill left just before its restore could say that it was done: it goes
// on too, and File compares what is there.
func (t *Target) Begin(m Marker, p *Plan) (resumed bool, err error) {
	m.Version = markerVersion
	infos, err := t.Dir.List(".")
	if err != nil {
		return false, err
	}
	infos = slices.DeleteFunc(infos, func(i vfs.Info) bool {
		return i.Name == lostFound || i.Name == markerName+partSuffix
	})
	want, err := json.Marshal(m)
	if err != nil {
		return false, err
	}
	got, err := t.read(markerName)
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(infos) > 0:
		if whole, err := t.whole(p); whole || err != nil {
			return whole, err
		}
		return false, fmt.Errorf("the directory is not empty: %s is %w; give an empty one",
			infos[0].Name, ErrForeign)
	case errors.Is(err, fs.ErrNotExist):
		return false, t.text(markerName, want)
	case err != nil:
		return false, err
	case !bytes.Equal(want, got):
		return false, fmt.Errorf("the directory holds an unfinished restore of %s: this is %w (%s)",
			got, ErrForeign, want)
	}
	return true, nil
}

// whole reports whether every file of the plan has its name, and nothing else is there.
func (t *Target) whole(p *Plan) (bool, error) {
	names := map[string]bool{".": true}
	for _, f := range p.Files {
		names[f.Path] = true
	}
	for _, x := range p.Texts {
		names[x.Path] = true
	}
	for name := range maps.Clone(names) {
		for d := path.Dir(name); d != "."; d = path.Dir(d) {
			names[d] = true
		}
	}
	left := len(names) - 1
	var visit func(dir string) (bool, error)
	visit = func(dir string) (bool, error) {
		infos, err := t.Dir.List(dir)
		if err != nil {
			return false, err
		}
		for _, i := range infos {
			name := path.Join(dir, i.Name)
			if name == lostFound {
				continue
			}
			if !names[name] {
				return false, nil
			}
			left--
			if i.Mode.IsDir() {
				if same, err := visit(name); !same || err != nil {
					return false, err
				}
			}
		}
		return true, nil
	}
	same, err := visit(".")
	return same && left == 0, err
}

// Missing reports whether an error of File is about one object alone, which the store has lost,
// altered or does not give: the others can be restored all the same. The word says which.
func Missing(err error) (kind string, is bool) {
	switch {
	case errors.Is(err, tier.ErrUnread):
		return "unread", true
	case errors.Is(err, tier.ErrVanished):
		return "lost", true
	case errors.Is(err, tier.ErrDamaged):
		return "damaged", true
	}
	return "", false
}

// Sync makes everything durable that was written.
func (t *Target) Sync(p *Plan) error {
	dirs := map[string]bool{".": true}
	for _, f := range p.Files {
		for d := path.Dir(f.Path); d != "."; d = path.Dir(d) {
			dirs[d] = true
		}
	}
	for d := range dirs {
		if err := t.Dir.Sync(d); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err // one of which all is missing may not be there
		}
	}
	return nil
}

// End makes everything durable and takes the marker away.
func (t *Target) End(p *Plan) error {
	if err := t.Sync(p); err != nil {
		return err
	}
	if err := t.Dir.Remove(markerName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return t.Dir.Sync(".")
}

// Text writes a small file, unless it is there already.
func (t *Target) Text(x Text) error {
	got, err := t.read(x.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return t.text(x.Path, []byte(x.Content))
	case err != nil:
		return err
	case string(got) != x.Content:
		return fmt.Errorf("%s: %w", x.Path, ErrForeign)
	}
	return nil
}

func (t *Target) text(name string, content []byte) error {
	return t.write(name, func(f vfs.File) error {
		_, err := f.Write(content)
		return err
	})
}

// textBytesMax bounds what is read of a small file.
const textBytesMax = 16 << 20

func (t *Target) read(name string) (data []byte, err error) {
	f, err := t.Dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, textBytesMax))
}

// write fills a file under another name, syncs it, and gives it its name, which must be free.
func (t *Target) write(name string, fill func(vfs.File) error) error {
	if err := t.mkdir(path.Dir(name)); err != nil {
		return err
	}
	part := name + partSuffix
	if err := t.Dir.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := t.Dir.Create(part)
	if err != nil {
		return err
	}
	if err = fill(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = t.Dir.Rename(part, name)
	}
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("%s came meanwhile, and is %w", name, ErrForeign)
	}
	if err != nil {
		return errors.Join(err, t.Dir.Remove(part))
	}
	return nil
}

func (t *Target) mkdir(dir string) error {
	made := "."
	for step := range strings.SplitSeq(dir, "/") {
		made = path.Join(made, step)
		if err := t.Dir.Mkdir(made); err != nil && !errors.Is(err, fs.ErrExist) && made != "." {
			return err
		}
	}
	return nil
}

// File writes one file, unless it is there already: then it is compared. Kept tells that it was
// there. An error that wraps tier.ErrDamaged or tier.ErrVanished says that the store does not have
// what was copied; nothing is left of the file then.
func (t *Target) File(ctx context.Context, f *File) (kept bool, err error) {
	info, err := t.Dir.Stat(f.Path)
	switch {
	case err == nil && f.Cut == nil:
		return true, t.compare(ctx, f, info)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	there := err == nil
	at := tier.Range{Next: tier.Offset(f.Digest.Size)} // bytes
	if f.Cut != nil {
		if at, err = t.cut(ctx, f); err != nil {
			return false, err
		}
	}
	if there {
		err = t.compareCut(ctx, f, at)
	} else {
		err = t.write(f.Path, func(out vfs.File) error {
			if f.Cut != nil {
				return t.copyRange(ctx, f, at, out)
			}
			return t.stream(ctx, f, out, nil)
		})
	}
	if err == nil {
		err = t.SetTime(f.Path, f.ModTime)
	}
	return there, err
}

// compareCut compares a file that is there with a part of an object, which has no digest.
func (t *Target) compareCut(ctx context.Context, f *File, at tier.Range) (err error) {
	want, got := sha256.New(), sha256.New()
	if err := t.copyRange(ctx, f, at, want); err != nil {
		return err
	}
	in, err := t.Dir.Open(f.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if _, err := io.Copy(got, contextual{ctx, in}); err != nil {
		return err
	}
	if !bytes.Equal(want.Sum(nil), got.Sum(nil)) {
		return fmt.Errorf("%s: %w", f.Path, ErrForeign)
	}
	return nil
}

// compare reads a file that is there.
func (t *Target) compare(ctx context.Context, f *File, info vfs.Info) (err error) {
	if !info.Regular() || info.Size != f.Digest.Size {
		return fmt.Errorf("%s: %d bytes, want %d: %w", f.Path, info.Size, f.Digest.Size, ErrForeign)
	}
	in, err := t.Dir.Open(f.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	sum := sha256.New()
	if _, err := io.CopyBuffer(sum, contextual{ctx, in}, make([]byte, blockBytes)); err != nil {
		return err
	}
	if got := tier.SHA256(sum.Sum(nil)); got != f.Digest.SHA256 {
		return fmt.Errorf("%s: sha256 %s, want %s: %w", f.Path, got, f.Digest.SHA256, ErrForeign)
	}
	t.done(f.Digest.Size)
	return t.SetTime(f.Path, f.ModTime) // it may have been killed before it did that
}

type contextual struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (c contextual) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

func (t *Target) done(n int64) {
	if t.Done != nil {
		t.Done(n)
	}
}

// stream reads the object from end to end, checks it, and writes it to out, if that is not nil.
// Visit is called for each batch, if it is not nil.
func (t *Target) stream(ctx context.Context, f *File, out io.Writer,
	visit func(kbatch.Batch) error) error {
	if visit == nil {
		visit = func(kbatch.Batch) error { return nil }
	}
	var walker *kbatch.Walker
	if f.Batches {
		order := kbatch.NewOrder(f.Range)
		walker = f.Format.NewWalker(f.Digest.Size, func(b kbatch.Batch) error {
			return errors.Join(order.Add(&b), visit(b))
		})
	}
	sum := sha256.New()
	buf := make([]byte, min(blockBytes, max(f.Digest.Size, 1)))
	for off := int64(0); off < f.Digest.Size; {
		block := buf[:min(int64(len(buf)), f.Digest.Size-off)]
		if err := t.Store.ReadFile(ctx, f.Key, off, block); err != nil {
			return err
		}
		sum.Write(block)
		if walker != nil {
			if _, err := walker.Write(block); err != nil {
				return fmt.Errorf("%s: %w", f.Path, err)
			}
		}
		if out != nil {
			if _, err := out.Write(block); err != nil {
				return err
			}
		}
		off += int64(len(block))
		t.done(int64(len(block)))
	}
	if walker != nil {
		if err := walker.Close(); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	if got := tier.SHA256(sum.Sum(nil)); got != f.Digest.SHA256 {
		return fmt.Errorf("%s: sha256 of the object %s, want %s: %w", f.Path, got, f.Digest.SHA256,
			tier.ErrDamaged)
	}
	return nil
}

// cut checks the object and returns the bytes of the batches that are to be kept.
func (t *Target) cut(ctx context.Context, f *File) (tier.Range, error) {
	var at tier.Range
	err := t.stream(ctx, f, nil, func(b kbatch.Batch) error {
		if b.Base < f.Cut.Base || b.Last >= f.Cut.Next {
			return nil
		}
		if at.Empty() {
			at.Base = tier.Offset(b.Position)
		}
		at.Next = tier.Offset(b.Position + b.Size)
		return nil
	})
	return at, err
}

func (t *Target) copyRange(ctx context.Context, f *File, at tier.Range, out io.Writer) error {
	buf := make([]byte, blockBytes)
	for off := at.Base; off < at.Next; {
		block := buf[:min(int64(len(buf)), int64(at.Next-off))]
		if err := t.Store.ReadFile(ctx, f.Key, int64(off), block); err != nil {
			return err
		}
		if _, err := out.Write(block); err != nil {
			return err
		}
		off += tier.Offset(len(block))
	}
	return nil
}
