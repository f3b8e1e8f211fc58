// Package fault has the object store that tests and the simulator run against: Mem, a bucket in
// memory, and Bucket, which puts faults before any bucket. Both are deterministic: what happens
// depends on the calls and on the hook alone.
//
// A hook sees each call before it happens and says what becomes of it. The faults are those of real
// stores: an error without and with effect, an upload cut short or rotten, one or a deletion that
// takes effect long after it was given up, or at once and then once more, reads that are short,
// long, wrong or broken off, and listings that lag behind.
package fault

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	thanos "github.com/thanos-io/objstore"
)

// OpKind names a call for the hook.
type OpKind string

// The calls that the hook sees.
const (
	OpUpload     OpKind = "upload"
	OpDelete     OpKind = "delete"
	OpGet        OpKind = "get"
	OpGetRange   OpKind = "get range"
	OpAttributes OpKind = "attributes"
	OpExists     OpKind = "exists"
	OpIter       OpKind = "iter"
)

// Op is one call that is about to be made.
type Op struct {
	Kind  OpKind
	Key   string // of the object, or the directory of an OpIter
	Off   int64  // of an OpGetRange, bytes
	Len   int64  // of an OpGetRange, bytes; -1 is to the end
	Count int    // calls before this one
}

// Effect says what becomes of a call. The zero Effect is: what should.
type Effect struct {
	// Err is what the caller is told. By itself nothing else happens; an upload reads some of its
	// body before.
	Err error
	// Applied: although the caller is told Err, the upload or the deletion took effect.
	Applied bool
	// Late: the upload or the deletion takes effect only when Land is called. Without Err it looks
	// like a success.
	Late bool
	// Twice: an upload or a deletion that takes effect now does so once more when Land is called, as
	// where a client or a proxy asks again and the first request was only slow. It means nothing
	// where Late is set, or Err without Applied.
	Twice bool
	// Mangle changes bytes: of an upload those that are stored, also if Err is set; of a read those
	// that are returned, and then Err, if it is set, in place of the end.
	Mangle func([]byte) []byte
	// Hide leaves names out of an iteration, which then ends with Err, if it is set.
	Hide func(name string) bool
}

// Hook decides about each call. It is called with no lock held.
type Hook func(Op) Effect

// Bucket puts faults before another bucket. All methods are safe for concurrent use.
type Bucket struct {
	thanos.Bucket
	mu    sync.Mutex
	hook  Hook
	calls int
	late  []Late
}

// Late is an upload or a deletion that is still under way after its caller had an answer.
type Late struct {
	Kind  OpKind // OpUpload or OpDelete
	Key   string
	Data  []byte // of an upload
	Again bool   // it took effect once already
}

var _ thanos.Bucket = (*Bucket)(nil)

// Wrap returns inner with the faults of hook, which may be nil.
func Wrap(inner thanos.Bucket, hook Hook) *Bucket { return &Bucket{Bucket: inner, hook: hook} }

// SetHook replaces the hook; nil takes it away.
func (b *Bucket) SetHook(hook Hook) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hook = hook
}

// Calls is the number of calls so far.
func (b *Bucket) Calls() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

// Late returns the uploads and deletions that have not landed yet, oldest first.
func (b *Bucket) Late() []Late {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.late)
}

// Land lets the i-th late call take effect. A deletion of what is not there is none.
func (b *Bucket) Land(ctx context.Context, i int) error {
	b.mu.Lock()
	if i < 0 || i >= len(b.late) {
		defer b.mu.Unlock()
		return fmt.Errorf("late call %d of %d: no such", i, len(b.late))
	}
	l := b.late[i]
	b.late = slices.Delete(b.late, i, i+1)
	b.mu.Unlock()
	if l.Kind == OpUpload {
		return b.Bucket.Upload(ctx, l.Key, bytes.NewReader(l.Data))
	}
	if err := b.Bucket.Delete(ctx, l.Key); err != nil && !b.IsObjNotFoundErr(err) {
		return err
	}
	return nil
}

func (b *Bucket) lands(l Late) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.late = append(b.late, l)
}

func (b *Bucket) ask(op Op) Effect {
	b.mu.Lock()
	op.Count = b.calls
	b.calls++
	hook := b.hook
	b.mu.Unlock()
	if hook == nil {
		return Effect{}
	}
	return hook(op)
}

// both joins a real and an injected error. A single one stays as it is: the inner bucket has to
// know its own errors again.
func both(err, injected error) error {
	if err == nil || injected == nil {
		return cmp.Or(err, injected)
	}
	return fmt.Errorf("%w: %w", injected, err)
}

// Upload implements thanos.Bucket.
func (b *Bucket) Upload(ctx context.Context, key string, r io.Reader,
	opts ...thanos.ObjectUploadOption) error {
	e := b.ask(Op{Kind: OpUpload, Key: key})
	twice := e.Twice && (e.Err == nil || e.Applied)
	if e.Mangle == nil && !e.Late && !twice {
		if e.Err == nil || e.Applied {
			return both(b.Bucket.Upload(ctx, key, r, opts...), e.Err)
		}
		if size, err := thanos.TryToGetSize(r); err == nil {
			if _, err := io.CopyN(io.Discard, r, (size+1)/2); err != nil {
				return both(err, e.Err)
			}
		}
		return e.Err
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return both(err, e.Err)
	}
	if e.Mangle != nil {
		data = e.Mangle(data)
	}
	if e.Late {
		b.lands(Late{Kind: OpUpload, Key: key, Data: data})
		return e.Err
	}
	if twice {
		b.lands(Late{Kind: OpUpload, Key: key, Data: data, Again: true})
	}
	return both(b.Bucket.Upload(ctx, key, bytes.NewReader(data), opts...), e.Err)
}

// Delete implements thanos.Bucket.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	e := b.ask(Op{Kind: OpDelete, Key: key})
	if e.Late {
		b.lands(Late{Kind: OpDelete, Key: key})
		return e.Err
	}
	if e.Err != nil && !e.Applied {
		return e.Err
	}
	if e.Twice {
		b.lands(Late{Kind: OpDelete, Key: key, Again: true})
	}
	return both(b.Bucket.Delete(ctx, key), e.Err)
}

// Get implements thanos.Bucket.
func (b *Bucket) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	e := b.ask(Op{Kind: OpGet, Key: key})
	return e.read(func() (io.ReadCloser, error) { return b.Bucket.Get(ctx, key) })
}

// GetRange implements thanos.Bucket.
func (b *Bucket) GetRange(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	e := b.ask(Op{Kind: OpGetRange, Key: key, Off: off, Len: n})
	return e.read(func() (io.ReadCloser, error) { return b.Bucket.GetRange(ctx, key, off, n) })
}

func (e Effect) read(open func() (io.ReadCloser, error)) (io.ReadCloser, error) {
	if e.Err != nil && e.Mangle == nil {
		return nil, e.Err
	}
	r, err := open()
	if err != nil || e.Mangle == nil {
		return r, err
	}
	size, sizeErr := thanos.TryToGetSize(r)
	data, err := io.ReadAll(r)
	if err := cmp.Or(err, r.Close()); err != nil {
		return nil, err
	}
	var mangled io.Reader = bytes.NewReader(e.Mangle(bytes.Clone(data)))
	if e.Err != nil {
		mangled = io.MultiReader(mangled, broken{e.Err})
	}
	return thanos.ObjectSizerReadCloser{
		ReadCloser: io.NopCloser(mangled),
		Size:       func() (int64, error) { return size, sizeErr },
	}, nil
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// Attributes implements thanos.Bucket.
func (b *Bucket) Attributes(ctx context.Context, key string) (thanos.ObjectAttributes, error) {
	if e := b.ask(Op{Kind: OpAttributes, Key: key}); e.Err != nil {
		return thanos.ObjectAttributes{}, e.Err
	}
	return b.Bucket.Attributes(ctx, key)
}

// Exists implements thanos.Bucket.
func (b *Bucket) Exists(ctx context.Context, key string) (bool, error) {
	if e := b.ask(Op{Kind: OpExists, Key: key}); e.Err != nil {
		return false, e.Err
	}
	return b.Bucket.Exists(ctx, key)
}

// Iter implements thanos.Bucket.
func (b *Bucket) Iter(ctx context.Context, dir string, f func(string) error,
	opts ...thanos.IterOption) error {
	e := b.ask(Op{Kind: OpIter, Key: dir})
	if e.Err != nil && e.Hide == nil {
		return e.Err
	}
	err := b.Bucket.Iter(ctx, dir, func(name string) error {
		if e.hides(name) {
			return nil
		}
		return f(name)
	}, opts...)
	return both(err, e.Err)
}

// IterWithAttributes implements thanos.Bucket.
func (b *Bucket) IterWithAttributes(ctx context.Context, dir string,
	f func(thanos.IterObjectAttributes) error, opts ...thanos.IterOption) error {
	e := b.ask(Op{Kind: OpIter, Key: dir})
	if e.Err != nil && e.Hide == nil {
		return e.Err
	}
	err := b.Bucket.IterWithAttributes(ctx, dir, func(a thanos.IterObjectAttributes) error {
		if e.hides(a.Name) {
			return nil
		}
		return f(a)
	}, opts...)
	return both(err, e.Err)
}

func (e Effect) hides(name string) bool { return e.Hide != nil && e.Hide(name) }

// IsObjNotFoundErr implements thanos.Bucket. It knows ErrNotFound beside the inner bucket's errors.
func (b *Bucket) IsObjNotFoundErr(err error) bool {
	return errors.Is(err, ErrNotFound) || b.Bucket.IsObjNotFoundErr(err)
}

// IsAccessDeniedErr implements thanos.Bucket. It knows ErrDenied beside the inner bucket's errors.
func (b *Bucket) IsAccessDeniedErr(err error) bool {
	return errors.Is(err, ErrDenied) || b.Bucket.IsAccessDeniedErr(err)
}
