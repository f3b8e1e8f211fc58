// Package retry repeats calls on a bucket that may succeed the next time.
//
// Only what is safe to repeat is repeated: reads, and uploads of a body that can be read twice,
// since tierd's objects are immutable and their keys unique. Deletions are not: tierd's tombstones
// repeat those. An upload past its deadline is not: its outcome is unknown, and is resolved by
// looking. A listing that has delivered names is not: the caller would see them twice. "Not found"
// and "access denied" are answers, not failures.
//
// A stream that breaks off is opened again where it broke off.
package retry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	thanos "github.com/thanos-io/objstore"

	"github.com/tierd/tierd/objstore/body"
)

// Options bound the repetitions. All fields are needed.
type Options struct {
	Attempts int           // calls at most, the first one included
	Base     time.Duration // upper bound of the first pause; it doubles with each attempt
	Max      time.Duration // upper bound of any pause
	Total    time.Duration // no call begins later than this after the first one

	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error // returns ctx.Err() if ctx ends first
	Rand  func() float64                                   // in [0, 1); never called concurrently
}

func (o Options) validate() error {
	switch {
	case o.Attempts < 1:
		return fmt.Errorf("retry: %d attempts: want at least 1", o.Attempts)
	case o.Base <= 0 || o.Max < o.Base:
		return fmt.Errorf("retry: pauses from %s to %s: want 0 < base <= max", o.Base, o.Max)
	case o.Total <= 0:
		return fmt.Errorf("retry: total time %s: want more than 0", o.Total)
	case o.Now == nil || o.Sleep == nil || o.Rand == nil:
		return errors.New("retry: Now, Sleep and Rand must be set")
	}
	return nil
}

// Sleep waits for d on the real clock, or until ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Bucket repeats what fails. It is safe for concurrent use if the inner bucket is.
type Bucket struct {
	thanos.Bucket
	opts Options
	mu   sync.Mutex // of opts.Rand
}

var _ thanos.Bucket = (*Bucket)(nil)

// Wrap returns inner with its failures repeated.
func Wrap(inner thanos.Bucket, opts Options) (*Bucket, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	return &Bucket{Bucket: inner, opts: opts}, nil
}

// tries counts the attempts of one call.
type tries struct {
	*Bucket
	began time.Time
	n     int // attempts that have failed
}

func (b *Bucket) tries() *tries { return &tries{Bucket: b, began: b.opts.Now()} }

// pause returns nil when it is time for the next attempt after err, and the error to report if
// there is none. The pause is drawn evenly from everything up to its bound, so that clients that
// failed together do not come back together.
func (t *tries) pause(ctx context.Context, err error) error {
	t.n++
	if t.final(err) || ctx.Err() != nil {
		return err
	}
	bound := t.opts.Max
	if shift := t.n - 1; shift < 30 && t.opts.Base<<shift < bound && t.opts.Base<<shift > 0 {
		bound = t.opts.Base << shift
	}
	t.mu.Lock()
	wait := time.Duration(t.opts.Rand() * float64(bound))
	t.mu.Unlock()
	spent := t.opts.Now().Sub(t.began)
	if t.n >= t.opts.Attempts || spent+wait > t.opts.Total {
		return fmt.Errorf("given up after %d attempts in %s: %w", t.n, spent, err)
	}
	if sleepErr := t.opts.Sleep(ctx, wait); sleepErr != nil {
		return fmt.Errorf("%w while waiting after %d attempts: %w", sleepErr, t.n, err)
	}
	return nil
}

// final tells whether trying again is no use, or no right, whatever the call was.
func (b *Bucket) final(err error) bool {
	return b.IsObjNotFoundErr(err) || b.IsAccessDeniedErr(err) ||
		errors.Is(err, context.Canceled) || errors.Is(err, thanos.ErrOptionNotSupported)
}

// Upload implements thanos.Bucket.
func (b *Bucket) Upload(ctx context.Context, key string, r io.Reader,
	opts ...thanos.ObjectUploadOption) error {
	whole, ok := body.Of(r)
	if !ok {
		return b.Bucket.Upload(ctx, key, r, opts...)
	}
	for t := b.tries(); ; {
		attempt := whole.Again()
		err := attempt.Blame(b.Bucket.Upload(ctx, key, attempt, opts...))
		switch {
		case err == nil:
			return nil
		case errors.Is(err, context.DeadlineExceeded):
			return err // of unknown outcome
		case attempt.Err() != nil:
			return err // reading our own file will not get better
		}
		if err := t.pause(ctx, err); err != nil {
			return err
		}
	}
}

// Attributes implements thanos.Bucket.
func (b *Bucket) Attributes(ctx context.Context, key string) (thanos.ObjectAttributes, error) {
	for t := b.tries(); ; {
		a, err := b.Bucket.Attributes(ctx, key)
		if err == nil {
			return a, nil
		}
		if err := t.pause(ctx, err); err != nil {
			return thanos.ObjectAttributes{}, err
		}
	}
}

// Exists implements thanos.Bucket.
func (b *Bucket) Exists(ctx context.Context, key string) (bool, error) {
	for t := b.tries(); ; {
		ok, err := b.Bucket.Exists(ctx, key)
		if err == nil {
			return ok, nil
		}
		if err := t.pause(ctx, err); err != nil {
			return false, err
		}
	}
}

// Iter implements thanos.Bucket.
func (b *Bucket) Iter(ctx context.Context, dir string, f func(string) error,
	opts ...thanos.IterOption) error {
	delivered := false
	for t := b.tries(); ; {
		err := b.Bucket.Iter(ctx, dir, func(name string) error {
			delivered = true
			return f(name)
		}, opts...)
		if err == nil || delivered {
			return err
		}
		if err := t.pause(ctx, err); err != nil {
			return err
		}
	}
}

// IterWithAttributes implements thanos.Bucket.
func (b *Bucket) IterWithAttributes(ctx context.Context, dir string,
	f func(thanos.IterObjectAttributes) error, opts ...thanos.IterOption) error {
	delivered := false
	for t := b.tries(); ; {
		err := b.Bucket.IterWithAttributes(ctx, dir, func(a thanos.IterObjectAttributes) error {
			delivered = true
			return f(a)
		}, opts...)
		if err == nil || delivered {
			return err
		}
		if err := t.pause(ctx, err); err != nil {
			return err
		}
	}
}

// IsObjNotFoundErr implements thanos.Bucket. Providers know only their own, unwrapped errors.
func (b *Bucket) IsObjNotFoundErr(err error) bool {
	return err != nil && b.Bucket.IsObjNotFoundErr(err)
}

// IsAccessDeniedErr implements thanos.Bucket.
func (b *Bucket) IsAccessDeniedErr(err error) bool {
	return err != nil && b.Bucket.IsAccessDeniedErr(err)
}
