package retry

import (
	"context"
	"errors"
	"io"

	thanos "github.com/thanos-io/objstore"
)

// Get implements thanos.Bucket.
func (b *Bucket) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	return b.open(ctx, key, 0, -1, func() (io.ReadCloser, error) { return b.Bucket.Get(ctx, key) })
}

// GetRange implements thanos.Bucket.
func (b *Bucket) GetRange(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	return b.open(ctx, key, off, n, func() (io.ReadCloser, error) {
		return b.Bucket.GetRange(ctx, key, off, n)
	})
}

func (b *Bucket) open(ctx context.Context, key string, off, n int64,
	open func() (io.ReadCloser, error)) (io.ReadCloser, error) {
	for t := b.tries(); ; {
		rc, err := open()
		if err == nil {
			s := &stream{tries: t, ctx: ctx, rc: rc, key: key, off: off, left: n, size: -1}
			if size, err := thanos.TryToGetSize(rc); err == nil {
				s.size, s.left = size, size
				if n >= 0 {
					s.left = min(n, size)
				}
			}
			return s, nil
		}
		if err := t.pause(ctx, err); err != nil {
			return nil, err
		}
	}
}

// stream is a read that goes on where it broke off. All its attempts count together with those of
// opening it, so that a store that gives a byte at a time cannot hold it for ever.
type stream struct {
	*tries
	ctx  context.Context // of the call that opened it
	rc   io.ReadCloser
	key  string
	off  int64 // of the next byte
	left int64 // bytes to come; -1 if not known
	size int64 // in bytes, as the store announced it; -1 if not known
	err  error // of rc, to be dealt with by the next Read
}

var errUnknownSize = errors.New("the store did not announce the size")

// ObjectSize implements thanos.ObjectSizer.
func (s *stream) ObjectSize() (int64, error) {
	if s.size < 0 {
		return 0, errUnknownSize
	}
	return s.size, nil
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	for {
		if s.err != nil {
			if err := s.reopen(); err != nil {
				return 0, err
			}
		}
		n, err := s.rc.Read(p)
		s.off += int64(n)
		if s.left >= 0 {
			s.left = max(s.left-int64(n), 0)
		}
		switch {
		case err == io.EOF:
			return n, err
		case n > 0 || err == nil:
			s.err = err
			return n, nil
		}
		s.err = err
	}
}

// reopen opens the object where s.err broke it off.
func (s *stream) reopen() error {
	if s.left == 0 {
		return io.EOF
	}
	for {
		if err := s.pause(s.ctx, s.err); err != nil {
			return err
		}
		rc, err := s.Bucket.Bucket.GetRange(s.ctx, s.key, s.off, s.left)
		if err == nil {
			// The old stream is broken: what closing it says is of no interest any more.
			_ = s.rc.Close()
			s.rc, s.err = rc, nil
			return nil
		}
		s.err = err
	}
}

// Close implements io.Closer.
func (s *stream) Close() error { return s.rc.Close() }
