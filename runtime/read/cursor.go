package read

import (
	"context"
	"errors"
	"fmt"

	"github.com/tierd/tierd/runtime/tier"
)

// stepsMax bounds how many segments without a batch one call steps over.
const stepsMax = 4096

// SegmentBytesMax is the largest segment of a plain log that is given whole, in bytes.
const SegmentBytesMax = 64 << 20

// chunkBytesMax bounds what one call gives, whatever it is asked for: but for one batch.
const chunkBytesMax = 64 << 20

// Cursor reads a log from an offset on. It belongs to one goroutine. It need not be closed.
type Cursor struct {
	r     *Reader
	id    tier.LogID
	next  tier.Offset
	start tier.Offset // of the log when the cursor was made
}

// Open returns a cursor that stands at the offset. What was in the log then it may read until the
// grace is over, though the log start moves. Errors are *OutOfRange, ErrAway and ErrUnknownLog.
func (r *Reader) Open(id tier.LogID, from tier.Offset) (*Cursor, error) {
	v, err := r.view(id)
	if err != nil {
		return nil, err
	}
	if from < v.start || from > v.end {
		return nil, v.outside(from)
	}
	return &Cursor{r: r, id: id, next: from, start: v.start}, nil
}

// Offset is where the cursor stands.
func (c *Cursor) Offset() tier.Offset { return c.next }

// check says whether the cursor may read on where it stands.
func (c *Cursor) check(v *view) error {
	switch {
	case c.next > v.end, c.next < v.start && c.next < c.start:
		return v.outside(c.next)
	case c.next >= v.start:
		return nil
	}
	for _, m := range v.state.Moves {
		if m.Start > c.next && c.r.c.Now() < m.At+c.r.c.Grace() {
			return nil
		} else if m.Start > c.next {
			break
		}
	}
	return fmt.Errorf("log %s: offset %d: %w: it begins at %d now (%w)", c.id, c.next, ErrGone,
		v.start, &OutOfRange{c.id, c.next, v.start, v.end})
}

// outside is the error of an offset that the log does not have.
func (v *view) outside(o tier.Offset) error {
	if o > v.end && v.local.Away {
		return fmt.Errorf("log %s: offset %d: %w; in the store are [%d, %d)", v.id, o, ErrAway, v.start,
			v.end)
	}
	return &OutOfRange{v.id, o, v.start, v.end}
}

// place is where offsets are read from: the source's segment, or else a copy.
type place struct {
	tier.Range // the offsets that are read there
	local      bool
	segment    tier.LocalSegment
	copy       *remoteCopy
}

// growing reports whether the place may end in a batch that is still being written.
func (p *place) growing() bool { return p.local && p.segment.Waits == tier.WaitsForRoll }

// Next reads on; see Reader.Read. At the end of the log the chunk is empty, and it may be called
// again later.
func (c *Cursor) Next(ctx context.Context, maxBytes int64) (Chunk, error) {
	maxBytes = min(max(maxBytes, 1), chunkBytesMax)
	var lost error // why the source, which has what is next, cannot give it
	for range stepsMax {
		if err := ctx.Err(); err != nil {
			return Chunk{}, err
		}
		v, err := c.r.view(c.id)
		if err == nil {
			err = c.check(&v)
		}
		if err != nil {
			return Chunk{}, err
		}
		if c.next == v.end {
			break
		}
		p, ok, err := c.r.place(&v, c.next, lost == nil, lost != nil)
		if err != nil {
			return Chunk{}, err
		}
		if !ok || p.Base > c.next { // neither tier has what is next
			over := v.end
			if ok {
				over = min(p.Base, v.end)
			}
			if lost != nil {
				recorded := false
				if over, recorded = holeEnd(v.state.Holes, c.next, over); !recorded {
					return Chunk{}, lost
				}
			}
			c.next, lost = over, nil
			continue
		}
		chunk, err := c.r.readPlace(ctx, &v, p, c.next, maxBytes)
		switch {
		case err != nil && p.local && lost == nil && elsewhere(err):
			lost = err // it went away between looking and reading: the other tier
		case err != nil:
			return Chunk{}, c.explain(ctx, p, err)
		case len(chunk.Batches) == 0 && chunk.Next == c.next:
			return chunk, nil // the end of what is there yet
		default:
			c.next, lost = chunk.Next, nil
			if len(chunk.Batches) > 0 {
				return chunk, nil
			}
		}
	}
	return Chunk{Base: c.next, Next: c.next}, nil
}

// holeEnd is where the recorded hole that has the offset ends, at most at the one that is given.
func holeEnd(holes []tier.Hole, o, most tier.Offset) (end tier.Offset, ok bool) {
	for _, h := range holes {
		if h.Contains(o) {
			return min(h.Next, most), true
		}
	}
	return o, false
}

// elsewhere reports whether the error of a local read is a reason to look into the other tier.
func elsewhere(err error) bool {
	return errors.Is(err, tier.ErrVanished) || errors.Is(err, tier.ErrChanged) ||
		errors.Is(err, tier.ErrDamaged)
}

// explain finds out what the error of a read means: where the offsets have left the log meanwhile,
// that; where a copy is not what it should be, that is told to whoever tends them.
func (c *Cursor) explain(ctx context.Context, p place, err error) error {
	if ctx.Err() != nil || p.local {
		return err
	}
	if !errors.Is(err, tier.ErrVanished) && !errors.Is(err, tier.ErrDamaged) {
		return err
	}
	v, errView := c.r.view(c.id)
	if errView != nil {
		return errView
	}
	if errCheck := c.check(&v); errCheck != nil {
		return errCheck
	}
	if c.next < v.start {
		return fmt.Errorf("log %s: offset %d: %w: %w", c.id, c.next, ErrGone, err)
	}
	if c.r.c.Suspect != nil {
		c.r.c.Suspect(c.id, p.copy.position, err)
	}
	return err
}

// place finds where the offset is read from, or the next one that can be. Local may be false where
// the source was found not to have what it seemed to.
func (r *Reader) place(v *view, o tier.Offset, local, again bool) (place, bool, error) {
	var best place
	found := false
	if v.local.Usable && local {
		var err error
		if best, found, err = r.localPlace(v, o); err != nil || found && best.Base <= o {
			return best, found, err
		}
	}
	for look := again; ; look = true {
		spans, err := r.remote(v, look)
		if err != nil {
			return place{}, false, err
		}
		if s, ok := from(spans, o); ok && (!found || s.Base < best.Base) {
			best, found = place{Range: s.Range, copy: s.copy}, true
		}
		if found && best.Base <= o || look {
			return best, found, nil
		}
	}
}

// localPlace is the source's segment that has the offset, or the first one above it.
func (r *Reader) localPlace(v *view, o tier.Offset) (place, bool, error) {
	s, ok := r.c.Local.From(v.id, max(o, v.local.SourceStart))
	if ok && openEnded(v) {
		next := s.Next
		has, err := r.shorten(v, &s, o)
		if err != nil {
			return place{}, false, err
		}
		if !has {
			s, ok = r.c.Local.From(v.id, next)
		}
	}
	return place{Range: tier.Range{Base: max(s.Base, v.local.SourceStart), Next: s.Next},
		local: true, segment: s}, ok, nil
}
