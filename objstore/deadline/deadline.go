// Package deadline gives each call on a bucket a deadline of its own.
//
// A client may ignore its context, and some of thanos' do (OSS, Swift): such a call returns when it
// likes, and until then holds whatever slot its caller holds. The deadline of an upload leaves its
// outcome unknown; nothing here undoes or repeats it.
package deadline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	thanos "github.com/thanos-io/objstore"
)

// Options say how long a call may take: Call, and for those that transfer a known number of bytes
// also what these take at the slowest rate that is put up with.
type Options struct {
	Call           time.Duration
	BytesPerSecond int64 // 0: the size makes no difference
}

// Bucket bounds the duration of calls. It is safe for concurrent use if the inner bucket is.
type Bucket struct {
	thanos.Bucket
	opts Options
}

var _ thanos.Bucket = (*Bucket)(nil)

// Wrap returns inner with deadlines.
func Wrap(inner thanos.Bucket, opts Options) (*Bucket, error) {
	if opts.Call <= 0 || opts.BytesPerSecond < 0 {
		return nil, fmt.Errorf("deadline: %s a call, %d bytes a second: want more than 0s, and 0 or more",
			opts.Call, opts.BytesPerSecond)
	}
	return &Bucket{inner, opts}, nil
}

// with returns the context of one call that transfers size bytes.
func (b *Bucket) with(ctx context.Context, size int64) (context.Context, context.CancelFunc) {
	d := b.opts.Call
	if b.opts.BytesPerSecond > 0 && size > 0 {
		// In seconds first: nanoseconds would overflow, for sizes that only a wrong caller names.
		seconds := min(size/b.opts.BytesPerSecond+1, int64(365*24*time.Hour/time.Second))
		d += time.Duration(seconds) * time.Second
	}
	return context.WithTimeout(ctx, d)
}

// explain makes sure that an error after the end of ctx says so: clients report it in many ways.
func explain(ctx context.Context, err error) error {
	if cause := ctx.Err(); err != nil && cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// Upload implements thanos.Bucket. Its context always ends with it: a client of GCS that gives up
// in the middle leaves its connection open until then.
func (b *Bucket) Upload(ctx context.Context, key string, r io.Reader,
	opts ...thanos.ObjectUploadOption) error {
	size, err := thanos.TryToGetSize(r)
	if err != nil {
		return fmt.Errorf("upload: the size is not known: %w", err)
	}
	ctx, cancel := b.with(ctx, size)
	defer cancel()
	return explain(ctx, b.Bucket.Upload(ctx, key, r, opts...))
}

// Delete implements thanos.Bucket.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	ctx, cancel := b.with(ctx, 0)
	defer cancel()
	return explain(ctx, b.Bucket.Delete(ctx, key))
}

// Attributes implements thanos.Bucket.
func (b *Bucket) Attributes(ctx context.Context, key string) (thanos.ObjectAttributes, error) {
	ctx, cancel := b.with(ctx, 0)
	defer cancel()
	a, err := b.Bucket.Attributes(ctx, key)
	return a, explain(ctx, err)
}

// Exists implements thanos.Bucket.
func (b *Bucket) Exists(ctx context.Context, key string) (bool, error) {
	ctx, cancel := b.with(ctx, 0)
	defer cancel()
	ok, err := b.Bucket.Exists(ctx, key)
	return ok, explain(ctx, err)
}

// Iter implements thanos.Bucket. The deadline includes what f takes.
func (b *Bucket) Iter(ctx context.Context, dir string, f func(string) error,
	opts ...thanos.IterOption) error {
	ctx, cancel := b.with(ctx, 0)
	defer cancel()
	return explain(ctx, b.Bucket.Iter(ctx, dir, f, opts...))
}

// IterWithAttributes implements thanos.Bucket. The deadline includes what f takes.
func (b *Bucket) IterWithAttributes(ctx context.Context, dir string,
	f func(thanos.IterObjectAttributes) error, opts ...thanos.IterOption) error {
	ctx, cancel := b.with(ctx, 0)
	defer cancel()
	return explain(ctx, b.Bucket.IterWithAttributes(ctx, dir, f, opts...))
}

// Get implements thanos.Bucket. The deadline holds until the reader is closed, whatever the size.
func (b *Bucket) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	ctx, cancel := b.with(ctx, 0)
	r, err := b.Bucket.Get(ctx, key)
	return open(ctx, cancel, r, err)
}

// GetRange implements thanos.Bucket. The deadline holds until the reader is closed.
func (b *Bucket) GetRange(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	ctx, cancel := b.with(ctx, n)
	r, err := b.Bucket.GetRange(ctx, key, off, n)
	return open(ctx, cancel, r, err)
}

func open(ctx context.Context, cancel context.CancelFunc, r io.ReadCloser, err error) (
	io.ReadCloser, error) {
	if err != nil {
		err = explain(ctx, err)
		cancel()
		return nil, err
	}
	return &reader{r, ctx, cancel}, nil
}

type reader struct {
	io.ReadCloser
	ctx    context.Context // of the call that opened it
	cancel context.CancelFunc
}

// ObjectSize implements thanos.ObjectSizer.
func (r *reader) ObjectSize() (int64, error) { return thanos.TryToGetSize(r.ReadCloser) }

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = explain(r.ctx, err)
	}
	return n, err
}

// Close implements io.Closer.
func (r *reader) Close() error {
	defer r.cancel()
	return r.ReadCloser.Close()
}
