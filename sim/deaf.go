package sim

import (
	"context"
	"io"

	thanos "github.com/thanos-io/objstore"
)

// deaf is a store whose client does not look at the context, as the worst of them do: a call that
// was given up goes on to its end.
type deaf struct{ thanos.Bucket }

// Upload implements thanos.Bucket.
func (d deaf) Upload(ctx context.Context, key string, r io.Reader,
	opts ...thanos.ObjectUploadOption) error {
	return d.Bucket.Upload(context.WithoutCancel(ctx), key, r, opts...)
}

// Delete implements thanos.Bucket.
func (d deaf) Delete(ctx context.Context, key string) error {
	return d.Bucket.Delete(context.WithoutCancel(ctx), key)
}

// Get implements thanos.Bucket.
func (d deaf) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	return d.Bucket.Get(context.WithoutCancel(ctx), key)
}

// GetRange implements thanos.Bucket.
func (d deaf) GetRange(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	return d.Bucket.GetRange(context.WithoutCancel(ctx), key, off, n)
}

// Attributes implements thanos.Bucket.
func (d deaf) Attributes(ctx context.Context, key string) (thanos.ObjectAttributes, error) {
	return d.Bucket.Attributes(context.WithoutCancel(ctx), key)
}

// Iter implements thanos.Bucket.
func (d deaf) Iter(ctx context.Context, dir string, f func(string) error,
	opts ...thanos.IterOption) error {
	return d.Bucket.Iter(context.WithoutCancel(ctx), dir, f, opts...)
}
