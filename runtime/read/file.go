package read

import (
	"context"
	"errors"
	"fmt"

	"github.com/tierd/tierd/runtime/tier"
)

// ErrNoCopy is returned where no copy of the segment counts, or it has no such file.
var ErrNoCopy = errors.New("no copy")

// CopiedFile is one file of a copy, as the store has it. It reads through the cache, whole chunks
// at a time; nothing of it is checked but its size, since a range has no checksum of its own.
type CopiedFile struct {
	tier.FileDigest
	remoteAt
}

// File opens one file of the newest copy whose segment begins at base; an empty name is the file
// with the records. Errors: ErrUnknownLog, *OutOfRange for a segment that has left the log,
// ErrNoCopy.
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
			f.name, f.size, f.object = file.Name, file.Size, chunked(f.key(file.Name), file.Size)
			return &CopiedFile{file.FileDigest, remoteAt{f}}, nil
		}
	}
	return nil, fmt.Errorf("log %s: segment %d: a file %q: %w", id, base, name, ErrNoCopy)
}

// Counted is a range of offsets with the position of the copy that holds them.
type Counted struct {
	tier.Range
	Position tier.Position
}

// Counted returns which copies of the log count for which offsets, ascending; those below the log
// start, which wait for their removal, do not.
func (r *Reader) Counted(id tier.LogID) ([]Counted, error) {
	v, err := r.view(id)
	if err != nil {
		return nil, err
	}
	spans, err := r.remote(&v, true)
	if err != nil {
		return nil, err
	}
	out := make([]Counted, 0, len(spans))
	for _, s := range spans {
		if s.Next > v.start {
			out = append(out, Counted{s.Range, s.copy.position})
		}
	}
	return out, nil
}
