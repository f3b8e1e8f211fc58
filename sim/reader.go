package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tierd/tierd/runtime/read"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/sim/choose"
)

// readBytesMax is how much one read asks for: two segments or so.
const readBytesMax = 200

// cacheBytes is so little that most of what a reader wants is not in its cache.
const cacheBytes = 1 << 10

// locally is the source as the reader over both tiers asks it, as the daemon has it.
type locally struct{ w *World }

var _ read.Local = locally{}

// Logs implements read.Local.
func (l locally) Logs() []tier.LogID { return l.w.process.engine.Logs() }

// Log implements read.Local.
func (l locally) Log(id tier.LogID) (tier.LocalLog, bool) {
	return l.w.process.engine.Readable(id)
}

// From implements read.Local.
func (l locally) From(id tier.LogID, o tier.Offset) (tier.LocalSegment, bool) {
	return l.w.process.engine.LocalFrom(id, o)
}

// Open implements read.Local.
func (l locally) Open(ctx context.Context, id tier.LogID, name string) (read.File, error) {
	return l.w.process.source.Open(ctx, id, name)
}

// LogFile implements read.Local.
func (l locally) LogFile(ctx context.Context, id tier.LogID, base tier.Offset) (string, error) {
	return l.w.process.source.LogFile(ctx, id, base)
}

// CountsBytes implements read.Local.
func (l locally) CountsBytes(tier.LogID) bool { return l.w.process.source.CountsBytes() }

// reader is the process's own, over both tiers.
func (w *World) reader() *read.Reader {
	p := w.process
	if p.reader == nil {
		cache, err := read.NewCache(read.CacheConfig{Store: p.store, MemoryBytes: cacheBytes,
			Now: w.now})
		must(err)
		p.reader = read.New(read.Config{Ledger: p.ledger, Local: locally{w}, Cache: cache, Now: w.now,
			Grace: func() tier.Time { return tier.Time(w.Config.Grace) }})
	}
	return p.reader
}

// Read plays a consumer that reads a log from the offset on. ended is why the process ended
// meanwhile, if it did; err what the consumer was told.
func (w *World) Read(id tier.LogID, from tier.Offset) (c read.Chunk, err, ended error) {
	ended = w.act(func() error {
		c, err = w.reader().Read(context.Background(), id, from, readBytesMax)
		return nil
	})
	if err == nil && ended == nil && w.oracle != nil {
		w.oracle.readBack(id, from, c)
	}
	return c, err, ended
}

// readBack (S11): what a reader is given are bytes that the owner of the log wrote there, or it is
// an error.
func (o *Oracle) readBack(id tier.LogID, from tier.Offset, c read.Chunk) {
	if c.Next < from || len(c.Batches) > 0 && c.Next <= from {
		o.misread(id, from, fmt.Sprintf("is told to go on at %d", c.Next))
		return
	}
	if len(c.Batches) == 0 {
		return // a hole, or the end
	}
	l := o.record(id)
	for _, s := range l.segments {
		if s.wrote(c) {
			return
		}
	}
	for _, s := range l.dead {
		if s.wrote(c) {
			return // the change of leader was not noticed yet; current judges whether it ever is
		}
	}
	o.misread(id, from, fmt.Sprintf("gets %d bytes from %d to %d that its owner never wrote there",
		len(c.Batches), c.Base, c.Next))
}

// wrote reports whether the owner ever wrote these bytes in this segment.
func (s *segmentRecord) wrote(c read.Chunk) bool {
	if c.Base < s.Base || s.closed && c.Base >= s.Next {
		return false
	}
	for _, f := range s.files {
		if !f.records {
			continue
		}
		for _, v := range f.versions {
			if bytes.Contains(v.data, c.Batches) {
				return true
			}
		}
	}
	return false
}

// readable (S11): when nothing fails any more the whole log can be read, but for what the store
// lost, and what blocks it once more.
func (o *Oracle) readable(l *logRecord) {
	x, ok := o.w.reader().Log(l.id)
	if !ok || o.lostSome(l.id) {
		return
	}
	for at := x.Start; at < x.End; {
		c, err, ended := o.w.Read(l.id, at)
		if next, ok := o.blocked(l, at); ok && errors.Is(err, tier.ErrDamaged) {
			at = next
			continue
		}
		if err != nil || ended != nil {
			o.misread(l.id, at, fmt.Sprintf("gets an error, and nothing fails any more: %v",
				errors.Join(err, ended)))
			return
		}
		if c.Next <= at {
			return // readBack says so, or it is the end
		}
		at = c.Next
	}
}

// blocked reports whether what is read at the offset is the very file that an operator gave up, in
// a tier epoch that is over, and the log has nothing else there: no copy that counts, and no hole.
// Then nobody has what a reader wants, and an error is the truth. So it is where the file was given
// up while there was a copy, which made a hole needless, and all copies were told to leave since.
// next is where it goes on.
func (o *Oracle) blocked(l *logRecord, at tier.Offset) (next tier.Offset, ok bool) {
	ledger, err := o.w.ledgerNow()
	if err != nil {
		return 0, false // rest says so
	}
	known, t := ledger.log(l.id), ledger.table(l.id.Table)
	if known == nil || slices.ContainsFunc(known.facts, func(f tier.Fact) bool {
		return f.Add != nil && known.counts(f.Add, t) &&
			known.clip(f.Position, f.Add.Content.Range).Contains(at)
	}) || slices.ContainsFunc(known.state.Holes, func(h tier.Hole) bool { return h.Contains(at) }) {
		return 0, false
	}
	for _, x := range liveRecords(o.w.files(l.id)) {
		s := l.segment(x.base)
		if s != nil && s.closed && s.Contains(at) && o.givenUp(&x) && (!o.passes(&x) || leaves(t)) {
			return s.Next, true
		}
	}
	return 0, false
}

func (o *Oracle) misread(id tier.LogID, from tier.Offset, why string) {
	o.violateAt(ReadBack, id, from, "who reads %s from %d on %s", id, from, why)
}

// readerActs are what consumers do.
func (h *play) readerActs() []act {
	return []act{{kindReader, "reads a log", 1, func() {
		id := h.log()
		x, ok := h.w.reader().Log(id)
		if !ok || x.Start >= x.End {
			return
		}
		tenth := choose.Number(h.c, "tenths of the log before", 0, 9)
		at := x.Start + (x.End-x.Start)*tier.Offset(tenth)/10
		c, err, ended := h.w.Read(id, at)
		h.mix("read", fmt.Sprint(c.Base, c.Next, len(c.Batches), err != nil))
		if err != nil {
			h.line(LaneStore, "a reader of %s from %d on gets an error: %v", id, at, err)
		} else {
			h.line(LaneStore, "a reader of %s from %d on gets %d bytes, up to %d", id, at,
				len(c.Batches), c.Next)
		}
		h.alive(ended)
	}}}
}
