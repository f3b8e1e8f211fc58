package read

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/tierd/tierd/runtime/tier"
)

// ErrNoCopy is returned where no copy of the segment counts, or it has no such file.
var ErrNoCopy = errors.New("no copy")

// CopiedFile is one file of a copy, as the store has it. It reads through the cache, whole chunks
// at a time. It belongs to one goroutine, and need not be closed.
//
// A range has no checksum of its own, so of a range nothing is checked but that it is there.
// Whoever reads the file from its beginning to its end gets the last bytes only if all of it has
// the SHA-256 of the copy, and tier.ErrDamaged in their place where it has not.
type CopiedFile struct {
	tier.FileDigest
	f   *segfile
	at  io.ReaderAt
	off int64
	sum hash.Hash // of the bytes [0, off); nil where not all of them were read, or all are checked
}

var _ io.ReadSeeker = (*CopiedFile)(nil)

// Read implements io.Reader.
func (c *CopiedFile) Read(p []byte) (int, error) {
	if c.off >= c.Size {
		return 0, io.EOF
	}
	n, err := c.at.ReadAt(p, c.off)
	if err != nil && err != io.EOF {
		return 0, c.f.named(err)
	}
	c.off += int64(n)
	if c.sum == nil {
		return n, nil
	}
	if c.sum.Write(p[:n]); c.off < c.Size {
		return n, nil
	}
	if got := tier.SHA256(c.sum.Sum(nil)); got != c.SHA256 {
		err := c.f.altered(got, c.SHA256)
		c.f.suspect(err)
		return 0, err
	}
	return n, nil
}

// Seek implements io.Seeker.
func (c *CopiedFile) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.off
	case io.SeekEnd:
		offset += c.Size
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek to %d in %s", offset, c.Name)
	}
	if c.sum = nil; offset == 0 && c.Size > ChunkBytes {
		c.sum = sha256.New()
	}
	c.off = offset
	return offset, nil
}

// File opens one file of the newest copy whose segment begins at base; an empty name is the file
// with the records. One that fits a chunk is read and compared with its SHA-256 at once. Errors:
// ErrUnknownLog, *OutOfRange for a segment that has left the log, ErrNoCopy; tier.ErrDamaged and
// tier.ErrVanished.
func (r *Reader) File(ctx context.Context, id tier.LogID, base tier.Offset, name string) (
	*CopiedFile, error) {
	v, err := r.view(id)
	if err != nil {
		return nil, err
	}
	spans, err := r.remote(&v, true)
	if err != nil {
		return nil, err
	}
	s, ok := from(spans, base)
	if ok && s.copy.Next <= v.start {
		return nil, &OutOfRange{id, base, v.start, v.end}
	}
	if !ok || s.copy.Base != base {
		return nil, fmt.Errorf("log %s: a segment with the base %d: %w", id, base, ErrNoCopy)
	}
	f := &segfile{r: r, ctx: ctx, log: id}
	if err := f.openRemote(id, s.copy.position); err != nil {
		return nil, err
	}
	for _, file := range f.copy.Content.Files {
		if name == "" || file.Name == name {
			return f.whole(file.FileDigest)
		}
	}
	return nil, fmt.Errorf("log %s: segment %d: a file %q: %w", id, base, name, ErrNoCopy)
}

// whole opens a file of the copy, checked as far as that costs nothing.
func (f *segfile) whole(d tier.FileDigest) (*CopiedFile, error) {
	key := f.copy.Object(f.log, d.Name)
	f.name, f.size, f.object = d.Name, d.Size, chunked(key, d.Size)
	if d.Size > ChunkBytes {
		return &CopiedFile{FileDigest: d, f: f, at: remoteAt{f}, sum: sha256.New()}, nil
	}
	data, err := f.r.c.Cache.whole(f.ctx, key, d)
	if useless(err) {
		f.suspect(err)
	}
	return &CopiedFile{FileDigest: d, f: f, at: bytesAt(data)}, err
}

// Counted returns which copies of the log count for which offsets, ascending; those below the log
// start, which wait for their removal, do not.
func (r *Reader) Counted(id tier.LogID) ([]tier.Counted, error) {
	v, err := r.view(id)
	if err != nil {
		return nil, err
	}
	spans, err := r.remote(&v, true)
	if err != nil {
		return nil, err
	}
	out := make([]tier.Counted, 0, len(spans))
	for _, s := range spans {
		if s.Next > v.start {
			out = append(out, tier.Counted{Range: s.Range, Position: s.copy.position})
		}
	}
	return out, nil
}
