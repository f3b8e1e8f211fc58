package read

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sort"

	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/tier"
)

// ForTime finds the first record whose timestamp is at or after timestamp, which like the answer is
// in milliseconds since the Unix epoch; found is false where there is none, and in layouts whose
// batches tierd does not know. Transaction markers count, as they do for a broker. All records of a
// Fluss batch have its commit timestamp.
func (r *Reader) ForTime(ctx context.Context, id tier.LogID, timestamp int64) (o tier.Offset,
	at int64, found bool, err error) {
	v, err := r.view(id)
	if _, batches := kbatch.FormatOf(v.layout); err != nil || !batches {
		return 0, 0, false, err
	}
	err = r.each(ctx, &v, v.start, func(p place) (bool, error) {
		if late, known, err := r.latest(&v, p); err != nil || known && late < timestamp {
			return true, err
		}
		o, at, found, err = r.timeIn(ctx, &v, p, timestamp)
		return !found, err
	})
	return o, at, found, err
}

// each calls fn for the places of the log's offsets from o on, ascending, until it returns false.
func (r *Reader) each(ctx context.Context, v *view, o tier.Offset,
	fn func(place) (bool, error)) (err error) {
	for more := true; more && err == nil && o < v.end; {
		o, more, err = r.step(ctx, v, o, fn)
	}
	return err
}

// step calls fn for the place of the offset o, or the next one, and returns the offset behind it. A
// local segment that is gone by then is looked for in the other tier.
func (r *Reader) step(ctx context.Context, v *view, o tier.Offset, fn func(place) (bool, error)) (
	next tier.Offset, more bool, err error) {
	if err := ctx.Err(); err != nil {
		return o, false, err
	}
	p, ok, err := r.place(v, o, true, false)
	if err != nil || !ok {
		return o, false, err
	}
	more, err = fn(p)
	if err != nil && p.local && elsewhere(err) {
		other, ok, errPlace := r.place(v, o, false, true)
		if errPlace == nil && ok && other.Base <= max(o, p.Base) {
			p = other
			more, err = fn(p)
		}
	}
	return max(p.Next, o+1), more, err
}

// latest is the largest timestamp of the place, where a copy of it tells.
func (r *Reader) latest(v *view, p place) (ms int64, known bool, err error) {
	c := p.copy
	if p.local {
		spans, err := r.remote(v, false)
		if err != nil {
			return 0, false, err
		}
		s, ok := from(spans, p.segment.Base)
		if !ok || s.copy.Base != p.segment.Base || s.copy.Next < p.segment.Next {
			return 0, false, nil
		}
		c = s.copy
	}
	return int64(c.maxTime) / 1e6, true, nil
}

// timeIn finds the first record of the place at or after the timestamp.
func (r *Reader) timeIn(ctx context.Context, v *view, p place, timestamp int64) (o tier.Offset,
	at int64, found bool, err error) {
	f, err := r.openPlace(ctx, v, p)
	if err != nil {
		return 0, 0, false, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	b, err := f.seekTime(p.Base, timestamp)
	below := f.below(v, p)
	for ; err == nil && b.Last < below; b, err = f.next(b.Position + b.Size) {
		if b.MaxTimestamp < timestamp || b.Size > batchBytesMax {
			continue
		}
		buf := make([]byte, b.Size)
		if n, err := f.at.ReadAt(buf, b.Position); n < len(buf) {
			return 0, 0, false, f.named(err)
		}
		if err := b.Check(buf); err != nil {
			return 0, 0, false, f.named(err)
		}
		if first := max(b.Base, p.Base, v.start); f.format == kbatch.Fluss {
			if first <= b.Last {
				return first, b.MaxTimestamp, true, nil
			}
			continue
		}
		errFound := r.Records(ctx, buf, func(x *Record) error {
			if x.Timestamp < timestamp || x.Offset < p.Base || x.Offset < v.start {
				return nil
			}
			o, at, found = x.Offset, x.Timestamp, true
			return io.EOF
		})
		if found || errFound != nil {
			return o, at, found, eofIsNil(errFound)
		}
	}
	if err == io.EOF || p.growing() && errors.Is(err, tier.ErrDamaged) {
		err = nil
	}
	return 0, 0, false, err
}

// seekTime finds a batch at or above the offset o, before which none is as late as the timestamp.
func (f *segfile) seekTime(o tier.Offset, timestamp int64) (kbatch.Batch, error) {
	e, err := f.nearTime(timestamp)
	if err != nil {
		return kbatch.Batch{}, err
	}
	if e.offset > o {
		b, _, err := f.seek(e.offset)
		// A copy's index was compared with its log. A local one is a hint: where it names no batch
		// that is there the log decides.
		if f.file == nil || err == nil && b.MaxTimestamp == e.timestamp && b.Last >= e.offset &&
			(b.Base <= e.offset || b.Wrapper()) {
			return b, err
		}
	}
	b, _, err := f.seek(o)
	return b, err
}

func eofIsNil(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// timeEntry is an entry of a time index.
type timeEntry struct {
	timestamp int64
	offset    tier.Offset
}

// nearTime looks a timestamp up in the segment's time index: no batch that lies below the entry's
// offset is as late. It is the zero entry where the index does not help.
func (f *segfile) nearTime(timestamp int64) (found timeEntry, err error) {
	at, size, done, err := f.companion(extTimeIndex)
	if err != nil || at == nil {
		return found, err
	}
	defer func() { err = errors.Join(err, done()) }()
	sort.Search(int(size/timeIndexEntryBytes), func(i int) bool {
		var e [timeIndexEntryBytes]byte
		if _, err := at.ReadAt(e[:], int64(i)*timeIndexEntryBytes); err != nil {
			return true
		}
		t := int64(binary.BigEndian.Uint64(e[:]))
		if t == 0 || t >= timestamp { // an index that is being written ends in zeros
			return true
		}
		if o := f.base + tier.Offset(binary.BigEndian.Uint32(e[8:])); o >= found.offset {
			found = timeEntry{t, o}
		}
		return false
	})
	return found, nil
}
