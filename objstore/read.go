package objstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// ReadFile reads the bytes from off on of one file of a segment into the buffers, one after the
// other until all are full, by one request. A missing object is tier.ErrVanished; one that ends
// before, or gives more than was asked for, is tier.ErrDamaged. A store that does not give all of
// it within the time of a request is os.ErrDeadlineExceeded, whatever time ctx leaves. Nothing of
// the buffers counts after an error.
func (s *Store) ReadFile(ctx context.Context, k tier.ObjectKey, off int64, bufs ...[]byte) error {
	key, err := s.keys.File(k)
	if err != nil {
		return err
	}
	size := int64(0)
	for _, b := range bufs {
		size += int64(len(b))
	}
	if off < 0 {
		return fmt.Errorf("get %s: from byte %d", key, off)
	}
	if size == 0 {
		return nil // stores refuse the empty range
	}
	bounded, cancel := context.WithTimeout(ctx, s.readTimeout)
	defer cancel()
	err = s.readRange(bounded, key, off, size, bufs)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("get %s: %d bytes from byte %d on did not come within %s: %w", key, size, off,
			s.readTimeout, os.ErrDeadlineExceeded)
	}
	return err
}

// readTimeout is how long a store may take for one request of ReadFile, of some megabytes. Who
// reads for others has no end of its own, and a store that takes a request and never answers would
// hold its place for ever.
const readTimeout = time.Minute

func (s *Store) readRange(ctx context.Context, key string, off, size int64, bufs [][]byte) error {
	rc, err := s.bucket.GetRange(ctx, key, off, size)
	if err != nil {
		return s.missing(ctx, "get", key, err)
	}
	err = fill(rc, size, bufs)
	closeErr := rc.Close()
	switch {
	case errors.Is(err, tier.ErrDamaged):
		return fmt.Errorf("get %s: %w", key, err)
	case err != nil || closeErr != nil:
		return s.missing(ctx, "get", key, join(err, closeErr))
	}
	return nil
}

// fill reads the buffers full, want bytes in all, and sees that nothing follows.
func fill(r io.Reader, want int64, bufs [][]byte) error {
	done := int64(0)
	var over [1]byte
	for _, b := range append(slices.Clip(bufs), over[:]) {
		for empty := 0; len(b) > 0; {
			n, err := r.Read(b)
			if b, done = b[n:], done+int64(n); n > 0 {
				empty = 0
			} else if empty++; empty > 100 {
				return io.ErrNoProgress
			}
			switch {
			case done > want:
				return fmt.Errorf("the store gives more than the %d bytes asked for: %w", want,
					tier.ErrDamaged)
			case err == io.EOF && done < want:
				return fmt.Errorf("the store gives %d of %d bytes: %w", done, want, tier.ErrDamaged)
			case err == io.EOF:
				return nil
			case err != nil:
				return err
			}
		}
	}
	return nil
}
