// Package limit bounds how many bytes a second uploads read, all of them together, and so how much
// disk and network they take from the broker beside them. The rate can be changed while they run.
package limit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	thanos "github.com/thanos-io/objstore"
	"golang.org/x/time/rate"

	"github.com/tierd/tierd/objstore/body"
)

// The burst is what a tenth of a second gives, within these bounds in bytes. It is also the largest
// piece that is read at once, so that a change of the rate is soon felt.
const (
	burstMin  = 4 << 10
	burstMax  = 16 << 20
	burstPart = 10
)

// Limiter is a rate that readers share. It is safe for concurrent use.
type Limiter struct {
	rate  *rate.Limiter
	now   func() time.Time
	sleep func(ctx context.Context, d time.Duration) error
}

// New returns a limiter of bytesPerSecond; 0 is no limit. sleep returns ctx.Err() if ctx ends
// first.
func New(bytesPerSecond int64, now func() time.Time,
	sleep func(ctx context.Context, d time.Duration) error) (*Limiter, error) {
	if now == nil || sleep == nil {
		return nil, errors.New("limit: now and sleep must be set")
	}
	l := &Limiter{rate: rate.NewLimiter(rate.Inf, burstMax), now: now, sleep: sleep}
	return l, l.SetLimit(bytesPerSecond)
}

// SetLimit changes the rate, in bytes a second; 0 is no limit. A reader that waits already takes
// the piece that it waits for at the old rate.
func (l *Limiter) SetLimit(bytesPerSecond int64) error {
	if bytesPerSecond < 0 {
		return fmt.Errorf("limit: %d bytes a second: want 0 (no limit) or more", bytesPerSecond)
	}
	now := l.now()
	if bytesPerSecond == 0 {
		l.rate.SetBurstAt(now, burstMax)
		l.rate.SetLimitAt(now, rate.Inf)
		return nil
	}
	l.rate.SetBurstAt(now, int(min(max(bytesPerSecond/burstPart, burstMin), burstMax)))
	l.rate.SetLimitAt(now, rate.Limit(bytesPerSecond))
	return nil
}

// take waits until some bytes may be read, at most n, and returns how many.
func (l *Limiter) take(ctx context.Context, n int) (int, error) {
	for {
		n := min(n, l.rate.Burst())
		now := l.now()
		r := l.rate.ReserveN(now, n)
		if !r.OK() {
			continue // the burst was made smaller just now
		}
		d := r.DelayFrom(now)
		if d == 0 {
			return n, ctx.Err()
		}
		if err := l.sleep(ctx, d); err != nil {
			r.CancelAt(l.now())
			return 0, err
		}
		return n, nil
	}
}

// Reader returns a reader of r that keeps to the limit. Reads end with ctx.
func (l *Limiter) Reader(ctx context.Context, r io.ReaderAt) io.ReaderAt {
	return &reader{ctx, l, r}
}

type reader struct {
	ctx     context.Context // of the upload that reads
	limiter *Limiter
	src     io.ReaderAt
}

// ReadAt implements io.ReaderAt.
func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		n, err := r.limiter.take(r.ctx, len(p)-done)
		if err != nil {
			return done, err
		}
		n, err = r.src.ReadAt(p[done:done+n], off+int64(done))
		done += n
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// Bucket keeps the uploads to a bucket to the limit.
type Bucket struct {
	thanos.Bucket
	limiter *Limiter
}

var _ thanos.Bucket = (*Bucket)(nil)

// Wrap returns inner with its uploads limited by l.
func Wrap(inner thanos.Bucket, l *Limiter) *Bucket { return &Bucket{inner, l} }

// Upload implements thanos.Bucket. The body must be an io.ReaderAt and io.Seeker.
func (b *Bucket) Upload(ctx context.Context, key string, r io.Reader,
	opts ...thanos.ObjectUploadOption) error {
	whole, ok := body.Of(r)
	if !ok {
		return fmt.Errorf("upload: a %T cannot be read at offsets", r)
	}
	size, err := whole.ObjectSize()
	if err != nil {
		return err
	}
	limited := body.New(b.limiter.Reader(ctx, whole.Source()), size)
	return limited.Blame(b.Bucket.Upload(ctx, key, limited, opts...))
}
