// Package body is what an upload reads: a file of known size, from the beginning, as often as it
// has to.
//
// The clients behind thanos' Bucket find the size of a reader by a type switch that
// io.SectionReader does not pass. Where they cannot find it, S3 buffers a part of at least 64 MiB
// for each upload, Swift takes the detour over large objects, and OSS, COS and OBS refuse. GCS and
// Azure never look at it, and store a shortened file without a word. Hence a type of our own: it
// answers ObjectSize; it can be read at offsets, which lets S3 send parts without a buffer; and a
// file that ends early is an error, not an end.
package body

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	thanos "github.com/thanos-io/objstore"

	"github.com/tierd/tierd/runtime/tier"
)

// Body reads size bytes of an io.ReaderAt. ReadAt is safe for concurrent use, Read and Seek are
// not.
type Body struct {
	src  io.ReaderAt
	size int64
	pos  int64
	err  atomic.Pointer[failure]
}

type failure struct{ err error }

var (
	_ io.ReadSeeker      = (*Body)(nil)
	_ io.ReaderAt        = (*Body)(nil)
	_ thanos.ObjectSizer = (*Body)(nil)
)

// New returns a Body of the bytes [0, size) of src.
func New(src io.ReaderAt, size int64) *Body { return &Body{src: src, size: size} }

// Of returns a Body of what r has not given yet. It is false for a reader that cannot be read
// twice.
func Of(r io.Reader) (*Body, bool) {
	at, isReaderAt := r.(io.ReaderAt)
	seeker, isSeeker := r.(io.Seeker)
	if !isReaderAt || !isSeeker {
		return nil, false
	}
	start, err := seeker.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, false
	}
	end, err := seeker.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, false
	}
	if _, err := seeker.Seek(start, io.SeekStart); err != nil || end < start {
		return nil, false
	}
	if start > 0 {
		at = io.NewSectionReader(at, start, end-start)
	}
	return New(at, end-start), true
}

// Again returns a Body of the same bytes that stands at the beginning and shares nothing with b: an
// upload that was given up may still be reading b.
func (b *Body) Again() *Body { return New(b.src, b.size) }

// Source is what b reads from, at the same offsets.
func (b *Body) Source() io.ReaderAt { return b.src }

// ObjectSize tells thanos' clients the size in bytes.
func (b *Body) ObjectSize() (int64, error) { return b.size, nil }

// Err is the first error that reading the source gave; nil if the source is not to blame.
func (b *Body) Err() error {
	if f := b.err.Load(); f != nil {
		return f.err
	}
	return nil
}

// Blame returns err, which an upload of b gave, with the error of the source where there was one:
// clients wrap it beyond recognition, or take it for the end.
func (b *Body) Blame(err error) error {
	cause := b.Err()
	switch {
	case cause == nil || errors.Is(err, cause):
		return err
	case err == nil:
		return cause
	}
	return fmt.Errorf("%w: %w", cause, err)
}

// ReadAt implements io.ReaderAt. A source that ends before size gives tier.ErrChanged: the file is
// not what it was when its size was taken.
func (b *Body) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read at %d: negative offset", off)
	}
	if off >= b.size {
		return 0, io.EOF
	}
	want := min(int64(len(p)), b.size-off)
	n, err := b.src.ReadAt(p[:want], off)
	switch {
	case int64(n) < want && (err == nil || errors.Is(err, io.EOF)):
		err = fmt.Errorf("ends at byte %d of %d: %w", off+int64(n), b.size, tier.ErrChanged)
	case int64(n) == want && want < int64(len(p)):
		return n, io.EOF
	case int64(n) == want:
		return n, nil
	}
	b.err.CompareAndSwap(nil, &failure{err})
	return n, err
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	if b.pos >= b.size {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	n, err := b.ReadAt(p[:min(int64(len(p)), b.size-b.pos)], b.pos)
	b.pos += int64(n)
	return n, err
}

// Seek implements io.Seeker.
func (b *Body) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += b.pos
	case io.SeekEnd:
		offset += b.size
	default:
		return 0, fmt.Errorf("seek: whence %d", whence)
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek to %d: before the beginning", offset)
	}
	b.pos = offset
	return offset, nil
}
