package read

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/tier"
)

// Endings of the files of a Kafka segment; the first three also of Fluss's.
const (
	extLog       = ".log"
	extIndex     = ".index"
	extTimeIndex = ".timeindex"
	extTxnIndex  = ".txnindex"
)

// batchBytesMax is the largest batch that is given.
const batchBytesMax = 256 << 20

// segfile is the file with a segment's records, in whichever tier.
type segfile struct {
	r    *Reader
	ctx  context.Context
	id   fileID
	log  tier.LogID
	base tier.Offset
	size int64
	name string
	at   io.ReaderAt
	// format is that of its record batches, where it has such.
	format kbatch.Format
	// Of a local one.
	file File
	stat tier.Stat // when it was opened
	// Of a remote one.
	copy   tier.Copy
	object object
}

// fileID tells files apart, for what is remembered of them: by the position of a copy, or else by
// the inode of a local file.
type fileID struct {
	log    tier.LogID
	base   tier.Offset
	remote bool
	number uint64
}

// close gives the file back.
func (f *segfile) close() error {
	if f.file != nil {
		return f.file.Close()
	}
	return nil
}

// remoteAt reads an object through the cache.
type remoteAt struct{ f *segfile }

// ReadAt implements io.ReaderAt. What is not in the cache is read with a margin, so that the batch
// that begins there comes with it.
func (a remoteAt) ReadAt(p []byte, off int64) (int, error) {
	f, want := a.f, len(p)
	if off >= f.size {
		return 0, io.EOF
	}
	p = p[:min(int64(want), f.size-off)]
	if err := f.r.c.Cache.readAt(f.ctx, f.object, p, off, batchMargin); err != nil {
		return 0, err
	}
	if len(p) < want {
		return len(p), io.EOF
	}
	return len(p), nil
}

// openPlace opens the file with the records of a place.
func (r *Reader) openPlace(ctx context.Context, v *view, p place) (*segfile, error) {
	format, batches := kbatch.FormatOf(v.layout)
	f := &segfile{r: r, ctx: ctx, log: v.id, format: format}
	if !p.local {
		return f, f.openRemote(v.id, p.copy.position)
	}
	f.base = p.segment.Base
	name := fmt.Sprintf("%020d%s", f.base, extLog)
	if !batches {
		var err error
		if name, err = r.c.Local.LogFile(ctx, v.id, f.base); err != nil {
			return nil, err
		}
	}
	file, err := r.c.Local.Open(ctx, v.id, name)
	if err != nil {
		return nil, err
	}
	stat, err := file.Stat()
	if err == nil && !seen(&p.segment, stat, batches) {
		err = fmt.Errorf("log %s: %s: %w since it was scanned", v.id, name, tier.ErrChanged)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	f.file, f.at, f.size, f.name, f.stat = file, file, stat.Size, name, stat
	f.id = fileID{log: v.id, base: f.base, number: stat.Inode}
	return f, nil
}

// seen reports whether the file is the one that a scan saw: a topic that was made anew under its
// old name has others by the same names, and their batches are as sound. Those with batches may be
// touched, since each has its checksum.
func seen(s *tier.LocalSegment, now tier.Stat, batches bool) bool {
	switch {
	case now.Inode != s.Log.Inode:
		return false
	case !s.Closed():
		return true // it may grow, and be cut
	case batches:
		return now.Size == s.Log.Size
	}
	return now == s.Log
}

// openRemote opens the object with the records of the copy at the position.
func (f *segfile) openRemote(id tier.LogID, pos tier.Position) error {
	facts, err := f.r.c.Ledger.Facts(id, pos, pos+1)
	if err != nil {
		return err
	}
	if len(facts) == 0 || facts[0].Add == nil || len(facts[0].Add.Content.Files) == 0 {
		return fmt.Errorf("log %s: the copy at position %d: %w", id, pos, tier.ErrVanished)
	}
	f.copy = *facts[0].Add
	records := f.copy.Content.Files[0]
	f.base, f.size, f.name = f.copy.Content.Range.Base, records.Size, records.Name
	f.object = chunked(f.copy.Object(id, records.Name), records.Size)
	f.at = remoteAt{f}
	f.id = fileID{log: id, base: f.base, remote: true, number: uint64(pos)}
	return nil
}

// digest finds another file of the copy by its ending.
func (f *segfile) digest(ext string) (tier.FileDigest, bool) {
	i := slices.IndexFunc(f.copy.Content.Files, func(s tier.SourceFile) bool {
		return strings.HasSuffix(s.Name, ext)
	})
	if i < 0 {
		return tier.FileDigest{}, false
	}
	return f.copy.Content.Files[i].FileDigest, true
}

// readPlace reads what the place has from the offset on.
func (r *Reader) readPlace(ctx context.Context, v *view, p place, from tier.Offset,
	maxBytes int64) (chunk Chunk, err error) {
	f, err := r.openPlace(ctx, v, p)
	if err != nil {
		return Chunk{}, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	if _, batches := kbatch.FormatOf(v.layout); !batches {
		return f.readPlain(v, p, from, maxBytes)
	}
	chunk, err = f.readBatches(v, p, from, maxBytes)
	if !p.local && errors.Is(err, tier.ErrDamaged) {
		// What was kept, or what the store gave once, may be wrong and the object not.
		r.c.Cache.forget(f.object)
		r.hints.forget(f.id)
		chunk, err = f.readBatches(v, p, from, maxBytes)
	}
	return chunk, err
}

// readBatches reads whole batches, at least one where there is one.
func (f *segfile) readBatches(v *view, p place, from tier.Offset, maxBytes int64) (Chunk, error) {
	b, sequential, err := f.seek(from)
	if err == io.EOF && p.local && f.size < p.segment.Log.Size {
		return Chunk{}, f.named(fmt.Errorf("it was cut: %w", tier.ErrChanged))
	}
	if err == io.EOF || p.growing() && errors.Is(err, tier.ErrDamaged) {
		// No batch is left, or none is whole yet.
		return Chunk{Base: from, Next: f.after(v, p, from)}, nil
	}
	if err != nil {
		return Chunk{}, f.named(err)
	}
	below := f.below(v, p)
	if b.Last >= below || b.Base >= p.Next {
		return Chunk{Base: from, Next: f.after(v, p, from)}, nil
	}
	if b.Size > batchBytesMax {
		return Chunk{}, fmt.Errorf("log %s: %s: the batch at offset %d has %d bytes, more than %d: %w",
			f.log, f.name, b.Base, b.Size, batchBytesMax, ErrIndivisible)
	}
	buf, err := f.window(&b, maxBytes)
	if err != nil {
		return Chunk{}, f.named(err)
	}
	chunk := Chunk{Base: b.Base, Next: from}
	pos, next := int64(0), b.Base
	for pos < int64(len(buf)) {
		b, err := f.format.Parse(buf[pos:], b.Position+pos, int64(len(buf))-pos)
		if errors.Is(err, kbatch.ErrTorn) && pos > 0 {
			break // the rest of it is for the next chunk
		}
		if err == nil {
			err = f.within(&b)
		}
		if err == nil && (b.Last >= below || b.Base >= p.Next) {
			break
		}
		if err == nil && b.Base < next {
			err = fmt.Errorf("batch at offset %d: the one before it ends at %d: %w", b.Base, next-1,
				tier.ErrDamaged)
		}
		if err == nil {
			err = b.Check(buf[pos:])
		}
		if err != nil && pos > 0 {
			break // what lies before it is right; it is told when its turn comes
		}
		if err != nil {
			return Chunk{}, f.named(err)
		}
		pos, next = pos+b.Size, b.Next()
	}
	chunk.Batches, chunk.Next = buf[:pos:pos], max(next, from)
	f.r.hints.set(f.id, chunk.Next, b.Position+pos)
	if sequential {
		f.readAhead(b.Position + pos)
	}
	return chunk, nil
}

// below is the offset that no batch may reach: a clip, or the high watermark.
func (f *segfile) below(v *view, p place) tier.Offset {
	if p.local {
		return v.end
	}
	return min(p.copy.Next, v.end)
}

// after is where to read on when the file has nothing more.
func (f *segfile) after(v *view, p place, from tier.Offset) tier.Offset {
	if p.local && !p.segment.Closed() && p.Next >= v.end {
		return from // it is still being written
	}
	return min(p.Next, v.end)
}

// window gives the bytes from the batch on, up to maxBytes, and all of the batch. They may be those
// of the cache, and are not changed.
func (f *segfile) window(b *kbatch.Batch, maxBytes int64) ([]byte, error) {
	n := min(max(f.ready(b.Position, maxBytes), b.Size), f.size-b.Position)
	if f.file == nil {
		// Most of a chunk is handed out as it is. A little of it would keep all of it in memory.
		data, err := f.r.c.Cache.from(f.ctx, f.object, b.Position, batchMargin)
		if err != nil {
			return nil, err
		}
		if data = data[:min(n, int64(len(data)))]; int64(len(data)) >= max(b.Size, f.object.chunk/2) {
			return data, nil
		}
	}
	buf := make([]byte, n)
	got, err := f.at.ReadAt(buf, b.Position)
	switch {
	case got == len(buf):
		return buf, nil
	case err == io.EOF:
		return nil, fmt.Errorf("it was cut: %w", tier.ErrChanged)
	}
	return nil, err
}

// ready is how much of what is asked for costs no further request.
func (f *segfile) ready(pos, maxBytes int64) int64 {
	if f.file != nil {
		return maxBytes
	}
	return min(maxBytes, max(f.r.c.Cache.loaded(f.object, pos), batchMargin))
}

func (f *segfile) named(err error) error {
	return fmt.Errorf("log %s: %s: %w", f.log, f.name, err)
}

// readPlain reads a segment whose content tierd does not know: exactly the bytes where offsets
// count bytes, else all of it.
func (f *segfile) readPlain(v *view, p place, from tier.Offset, maxBytes int64) (Chunk, error) {
	whole := p.Range
	if !p.local {
		whole = f.copy.Content.Range
	}
	off, n := int64(0), f.size
	size := f.size
	growing := p.local && !p.segment.Closed()
	if growing {
		size = p.segment.Log.Size
	}
	counted := int64(whole.Next-whole.Base) == size && f.r.c.Local.CountsBytes(f.log)
	if growing && !counted {
		return Chunk{Base: from, Next: from}, nil
	}
	if counted {
		off = int64(from - f.base)
		n = min(maxBytes, int64(min(p.Next, v.end)-from), f.size-off)
	}
	chunk := Chunk{Base: f.base + tier.Offset(off), Next: from + tier.Offset(n)}
	switch {
	case !counted && n > SegmentBytesMax:
		return Chunk{}, fmt.Errorf("log %s: segment %s has %d bytes, more than %d: %w", f.log, whole, n,
			SegmentBytesMax, ErrIndivisible)
	case !counted:
		chunk.Next = p.Next
	case n <= 0:
		return Chunk{Base: from, Next: from}, nil
	}
	chunk.Batches = make([]byte, n)
	if n == f.size && !p.local && n <= wholeBytesMax {
		data, err := f.r.c.Cache.whole(f.ctx, f.object.key, f.copy.Content.Files[0].FileDigest)
		copy(chunk.Batches, data)
		return chunk, err
	}
	if got, err := f.at.ReadAt(chunk.Batches, off); int64(got) < n {
		if err == io.EOF {
			err = fmt.Errorf("it was cut: %w", tier.ErrChanged)
		}
		return Chunk{}, f.named(err)
	}
	if n == f.size && !p.local {
		want := f.copy.Content.Files[0].SHA256
		if got := tier.SHA256(sha256.Sum256(chunk.Batches)); got != want {
			return Chunk{}, f.altered(got, want)
		}
	}
	if counted {
		_, sequential := f.r.hints.get(f.id, from)
		f.r.hints.set(f.id, chunk.Next, off+n)
		if sequential || off == 0 {
			f.readAhead(off + n)
		}
	}
	return chunk, nil
}

// altered says that an object is not what was copied, and forgets what was kept of it.
func (f *segfile) altered(got, want tier.SHA256) error {
	f.r.c.Cache.forget(f.object)
	return f.named(fmt.Errorf("object of attempt %s: sha256 %s, want %s: %w", f.copy.Attempt, got,
		want, tier.ErrDamaged))
}

// hints remembers where in a file a reader stopped, so that it need not be looked up again.
type hints struct {
	mu    sync.Mutex
	known map[hintKey]int64
	order []hintKey // a ring, the oldest at next
	next  int
}

type hintKey struct {
	file fileID
	from tier.Offset
}

// hintsMax bounds how many readers are remembered.
const hintsMax = 4096

func (h *hints) get(f fileID, from tier.Offset) (int64, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	pos, ok := h.known[hintKey{f, from}]
	return pos, ok
}

func (h *hints) set(f fileID, from tier.Offset, pos int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := hintKey{f, from}
	if h.known == nil {
		h.known = map[hintKey]int64{}
	}
	if _, old := h.known[k]; !old {
		if len(h.order) < hintsMax {
			h.order = append(h.order, k)
		} else {
			delete(h.known, h.order[h.next])
			h.order[h.next] = k
			h.next = (h.next + 1) % hintsMax
		}
	}
	h.known[k] = pos
}

// forget drops what is known of the file; its places in the ring stay until their turn.
func (h *hints) forget(f fileID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for k := range h.known {
		if k.file == f {
			delete(h.known, k)
		}
	}
}
