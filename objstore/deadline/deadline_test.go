package deadline

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	thanos "github.com/thanos-io/objstore"

	"github.com/tierd/tierd/objstore/body"
	"github.com/tierd/tierd/objstore/fault"
)

func wrap(t *testing.T, inner thanos.Bucket, opts Options) *Bucket {
	t.Helper()
	b, err := Wrap(inner, opts)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAcceptance(t *testing.T) {
	t.Parallel()
	mem := fault.NewMem(func() time.Time { return time.Unix(1, 0) })
	thanos.AcceptanceTest(t, wrap(t, mem, Options{Call: time.Hour, BytesPerSecond: 1}))
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for _, opts := range []Options{{}, {Call: -1}, {Call: 1, BytesPerSecond: -1}} {
		if _, err := Wrap(thanos.NewInMemBucket(), opts); err == nil {
			t.Errorf("%+v: no error", opts)
		}
	}
}

// errVague is what clients make of a context that is over.
var errVague = errors.New("request canceled")

// hanging is a bucket of which nothing comes back before the context ends.
type hanging struct{ thanos.Bucket }

func hang(ctx context.Context) error {
	<-ctx.Done()
	return errVague
}

func (hanging) Upload(ctx context.Context, _ string, _ io.Reader,
	_ ...thanos.ObjectUploadOption) error {
	return hang(ctx)
}
func (hanging) Delete(ctx context.Context, _ string) error         { return hang(ctx) }
func (hanging) Exists(ctx context.Context, _ string) (bool, error) { return false, hang(ctx) }
func (hanging) Attributes(ctx context.Context, _ string) (thanos.ObjectAttributes, error) {
	return thanos.ObjectAttributes{}, hang(ctx)
}
func (hanging) Iter(ctx context.Context, _ string, _ func(string) error,
	_ ...thanos.IterOption) error {
	return hang(ctx)
}
func (hanging) IterWithAttributes(ctx context.Context, _ string,
	_ func(thanos.IterObjectAttributes) error, _ ...thanos.IterOption) error {
	return hang(ctx)
}
func (hanging) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	if key == "opens" {
		return stalled{ctx}, nil
	}
	return nil, hang(ctx)
}
func (h hanging) GetRange(ctx context.Context, key string, _, _ int64) (io.ReadCloser, error) {
	return h.Get(ctx, key)
}

// stalled is an open object of which no byte comes.
type stalled struct{ ctx context.Context }

func (s stalled) Read([]byte) (int, error) { return 0, hang(s.ctx) }
func (s stalled) Close() error             { return nil }

func read(r io.ReadCloser, err error) error {
	if err != nil {
		return err
	}
	_, err = io.ReadAll(r)
	return errors.Join(err, r.Close())
}

func TestEachCallHasADeadline(t *testing.T) {
	t.Parallel()
	const call, rate = 10 * time.Second, 100
	tests := []struct {
		name string
		call func(context.Context, *Bucket) error
		want time.Duration
	}{
		{"upload", func(ctx context.Context, b *Bucket) error {
			return b.Upload(ctx, "k", body.New(strings.NewReader(""), 1000))
		}, 21 * time.Second},
		{"delete", func(ctx context.Context, b *Bucket) error { return b.Delete(ctx, "k") }, call},
		{"exists", func(ctx context.Context, b *Bucket) error {
			_, err := b.Exists(ctx, "k")
			return err
		}, call},
		{"attributes", func(ctx context.Context, b *Bucket) error {
			_, err := b.Attributes(ctx, "k")
			return err
		}, call},
		{"iter", func(ctx context.Context, b *Bucket) error { return b.Iter(ctx, "", nil) }, call},
		{"iter with attributes", func(ctx context.Context, b *Bucket) error {
			return b.IterWithAttributes(ctx, "", nil)
		}, call},
		{"get", func(ctx context.Context, b *Bucket) error { return read(b.Get(ctx, "k")) }, call},
		{"get, then read", func(ctx context.Context, b *Bucket) error {
			return read(b.Get(ctx, "opens"))
		}, call},
		{"get range", func(ctx context.Context, b *Bucket) error {
			return read(b.GetRange(ctx, "k", 0, 199))
		}, 12 * time.Second},
		{"get range, then read", func(ctx context.Context, b *Bucket) error {
			return read(b.GetRange(ctx, "opens", 0, 1<<62))
		}, call + 365*24*time.Hour},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := wrap(t, hanging{}, Options{Call: call, BytesPerSecond: rate})
				began := time.Now()
				err := test.call(t.Context(), b)
				if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errVague) {
					t.Errorf("error %v: want the deadline and what the client said", err)
				}
				// The clock is synctest's.
				if took := time.Since(began); took != test.want {
					t.Errorf("took %s, want %s", took, test.want)
				}
			})
		})
	}
}

func TestTheCallersContextCounts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := wrap(t, hanging{}, Options{Call: time.Hour})
	if err := b.Delete(ctx, "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want Canceled", err)
	}
}

func TestUploadOfUnknownSize(t *testing.T) {
	t.Parallel()
	b := wrap(t, thanos.NewInMemBucket(), Options{Call: time.Hour})
	if err := b.Upload(t.Context(), "k", io.MultiReader(strings.NewReader("x"))); err == nil {
		t.Error("no error")
	}
}

func TestTheContextEndsWithTheCall(t *testing.T) {
	t.Parallel()
	var seen context.Context
	b := wrap(t, spy{thanos.NewInMemBucket(), &seen}, Options{Call: time.Hour})
	if err := b.Upload(t.Context(), "k", strings.NewReader("x")); err != nil || seen.Err() == nil {
		t.Errorf("after the upload: %v, context %v", err, seen.Err())
	}
	r, err := b.Get(t.Context(), "k")
	if err != nil || seen.Err() != nil {
		t.Fatalf("while the object is open: %v, context %v", err, seen.Err())
	}
	if err := r.Close(); err != nil || seen.Err() == nil {
		t.Errorf("after closing: %v, context %v", err, seen.Err())
	}
}

type spy struct {
	thanos.Bucket
	seen *context.Context
}

func (s spy) Upload(ctx context.Context, key string, r io.Reader,
	opts ...thanos.ObjectUploadOption) error {
	*s.seen = ctx
	return s.Bucket.Upload(ctx, key, r, opts...)
}

func (s spy) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	*s.seen = ctx
	return s.Bucket.Get(ctx, key)
}
