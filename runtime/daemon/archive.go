package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/read"
	"github.com/tierd/tierd/runtime/tier"
)

var _ api.Archive = (*Daemon)(nil)

// copiesPage is how many manifest positions one answer of Copies has at most.
const copiesPage = 4096

// recordsMax is how many records one answer has at most: small ones of a well compressed batch can
// be very many. Large ones are bounded by what was asked for, as their batches are.
const recordsMax = 100_000

// Readable implements api.Archive.
func (d *Daemon) Readable(context.Context) (*api.ReadableLogs, error) {
	out := &api.ReadableLogs{}
	for _, id := range d.reader.Logs() {
		l, ok := d.reader.Log(id)
		if !ok {
			continue
		}
		x := api.ReadableLog{Log: id.String(), Layout: l.Layout, Start: l.Start, End: l.End}
		if l.Incarnation != "" {
			x.Incarnation = &l.Incarnation
		}
		out.Logs = append(out.Logs, x)
	}
	return out, nil
}

// Read implements api.Archive.
func (d *Daemon) Read(ctx context.Context, id tier.LogID, from api.Place, maxBytes int64) (
	*api.Piece, error) {
	o, err := d.offsetOf(ctx, id, from)
	if err != nil {
		return nil, readError(err)
	}
	c, err := d.reader.Read(ctx, id, o, maxBytes)
	if err != nil {
		return nil, readError(err)
	}
	l, _ := d.reader.Log(id)
	return &api.Piece{Bytes: c.Batches, Base: c.Base, Next: c.Next, Start: l.Start, End: l.End}, nil
}

// offsetOf is the offset of a place. Behind the last record it is the end.
func (d *Daemon) offsetOf(ctx context.Context, id tier.LogID, from api.Place) (tier.Offset, error) {
	l, ok := d.reader.Log(id)
	switch {
	case !ok:
		return 0, fmt.Errorf("log %s: %w", id, read.ErrUnknownLog)
	case from.Offset != nil:
		return *from.Offset, nil
	case from.Timestamp == nil:
		return l.Start, nil
	case l.Layout == tier.LayoutPlain:
		return 0, api.Errorf(api.CodeInvalid, "log %s: a %s log has no timestamps that tierd knows",
			id, l.Layout)
	}
	o, _, found, err := d.reader.ForTime(ctx, id, *from.Timestamp)
	if !found {
		o = l.End
	}
	return o, err
}

// Records implements api.Archive.
func (d *Daemon) Records(ctx context.Context, id tier.LogID, from api.Place, maxBytes int64) (
	*api.Records, error) {
	l, ok := d.reader.Log(id)
	if ok && l.Layout != tier.LayoutKafka {
		return nil, api.Errorf(api.CodeInvalid, "log %s: a %s log has no records that tierd knows; "+
			"read it raw", id, l.Layout)
	}
	o, err := d.offsetOf(ctx, id, from)
	if err != nil {
		return nil, readError(err)
	}
	c, err := d.reader.Read(ctx, id, o, maxBytes)
	if err != nil {
		return nil, readError(err)
	}
	l, _ = d.reader.Log(id) // as it is now: it may have grown
	out := &api.Records{Log: id.String(), Next: c.Next, Start: l.Start, End: l.End}
	decoded := int64(0)
	err = d.reader.Records(ctx, c.Batches, func(r *read.Record) error {
		if r.Offset < o {
			return nil
		}
		decoded += bytesOf(r)
		if n := len(out.Records); n == recordsMax || n > 0 && decoded > maxBytes {
			out.Next = r.Offset
			return io.EOF
		}
		x := api.Record{Offset: r.Offset, Timestamp: r.Timestamp, Key: api.BytesOf(r.Key),
			Value: api.BytesOf(r.Value), Control: r.Control}
		for _, h := range r.Headers {
			x.Headers = append(x.Headers, api.Field{Key: h.Key, Value: api.BytesOf(h.Value)})
		}
		out.Records = append(out.Records, x)
		return nil
	})
	switch n := len(out.Records); {
	case err == nil, err == io.EOF:
	case n > 0:
		out.Next = out.Records[n-1].Offset + 1 // what was wrong is told when its turn comes
	default:
		return nil, readError(fmt.Errorf("log %s: %w", id, err))
	}
	return out, nil
}

// bytesOf is how much the content of a record has.
func bytesOf(r *read.Record) int64 {
	n := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return int64(n)
}

// File implements api.Archive.
func (d *Daemon) File(ctx context.Context, id tier.LogID, base tier.Offset, name string) (
	*api.File, error) {
	f, err := d.reader.File(ctx, id, base, name)
	if err != nil {
		return nil, readError(err)
	}
	return &api.File{Name: f.Name, Size: f.Size, SHA256: f.SHA256, ReadSeeker: f,
		Closer: io.NopCloser(nil)}, nil
}

// readError gives an error of the reader its code.
func readError(err error) error {
	var out *read.OutOfRange
	code := api.CodeInternal
	switch {
	case errors.As(err, new(*api.Error)):
		return err
	case errors.Is(err, read.ErrUnknownLog):
		return api.Errorf(api.CodeNotFound, "%v", err)
	case errors.Is(err, read.ErrGone):
		code = api.CodeGone
	case errors.As(err, &out):
		e := api.Errorf(api.CodeOutOfRange, "%v", err)
		e.Start, e.End = &out.Start, &out.End
		return e
	case errors.Is(err, read.ErrNoCopy):
		code = api.CodeNotFound
	case errors.Is(err, read.ErrIndivisible):
		return api.Errorf(api.CodeInvalid, "%v; read its file in ranges: GET .../segment?base=N", err)
	case errors.Is(err, tier.ErrDamaged), errors.Is(err, tier.ErrVanished):
		code = api.CodeDamaged
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.Is(err, read.ErrAway):
		code = api.CodeUnavailable
	}
	return api.Errorf(code, "%v", err)
}

// Copies implements api.Backend.
func (d *Daemon) Copies(_ context.Context, id tier.LogID, from tier.Position) (*api.Copies, error) {
	s, ok := d.ledger.Log(id)
	if !ok {
		return nil, api.Errorf(api.CodeNotFound, "log %q: the ledger does not have it", id)
	}
	out := &api.Copies{Log: id.String(), LedgerID: d.ledger.ID(), Layout: s.Layout,
		Incarnation: s.Incarnation, Source: s.Source, LogStart: s.LogStart, CopiedOffset: s.Copied,
		Positions: s.Next, Next: max(min(from+copiesPage, s.Next), from),
		Unpublished: s.Unpublished, Checkpoints: s.Checkpoints}
	if t := d.ledger.Table(id.Table); t.Leaves() || s.Epoch < t.Fresh {
		out.CopiedOffset = s.LogStart
	}
	for _, h := range s.Holes {
		out.Holes = append(out.Holes, api.Hole{Base: h.Base, Next: h.Next, Cause: h.Cause,
			At: api.Time(h.At)})
	}
	facts, err := d.ledger.Facts(id, from, out.Next)
	if err != nil {
		return nil, err
	}
	out.Facts = facts
	counted, err := d.reader.Counted(id)
	if err != nil {
		return nil, readError(err)
	}
	for _, c := range counted {
		if c.Position >= from && c.Position < out.Next {
			out.Counted = append(out.Counted, api.Counted{Base: c.Base, Next: c.Next,
				Position: c.Position})
		}
	}
	tombstones, err := d.ledger.Tombstones(id)
	if err != nil {
		return nil, err
	}
	for _, t := range tombstones {
		out.Attempts = append(out.Attempts, t.ID)
	}
	known := func(f tier.Fact, pos tier.Position) int { return int(int64(f.Position) - int64(pos)) }
	for pos := from; pos < out.Next; pos++ {
		if _, is := slices.BinarySearchFunc(facts, pos, known); is {
			continue
		}
		a, err := d.ledger.Attempt(id, pos)
		if errors.Is(err, tier.ErrVanished) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out.Attempts = append(out.Attempts, a.ID)
	}
	return out, nil
}
