package kbatch

import (
	"hash/crc32"

	"github.com/tierd/tierd/runtime/tier"
)

// Walker decodes and checks the batches of a log file whose bytes stream through Write, in order
// and in pieces of any size. It keeps one header, whatever the size of the batches.
type Walker struct {
	format Format
	visit  func(Batch) error
	size   int64 // of the whole file
	pos    int64 // of the next byte that Write takes

	head  [HeaderMax]byte
	have  int // bytes in head
	batch Batch
	left  int64 // bytes of batch that are still to come; 0 between batches
	sum   uint32
	table *crc32.Table
	err   error // the first error; nothing is taken after it
}

// NewWalker is Format.NewWalker of Kafka.
func NewWalker(size int64, visit func(Batch) error) *Walker { return Kafka.NewWalker(size, visit) }

// NewWalker returns a walker for a file of size bytes. It calls visit for each batch once all its
// bytes were seen and its checksum is right; an error of visit ends the walk.
func (f Format) NewWalker(size int64, visit func(Batch) error) *Walker {
	return &Walker{format: f, visit: visit, size: size}
}

// Write takes the next bytes of the file. An error wraps tier.ErrDamaged, or is that of visit; it
// names the byte and the batch.
func (w *Walker) Write(p []byte) (int, error) {
	total := len(p)
	for len(p) > 0 && w.err == nil {
		var n int
		if w.left == 0 {
			n = w.takeHead(p)
		} else {
			n = w.takeBody(p)
		}
		w.pos += int64(n)
		p = p[n:]
	}
	return total - len(p), w.err
}

// takeHead collects the header of the next batch. It takes just the header's bytes: what magic 0
// needs may be less than what is left of the file.
func (w *Walker) takeHead(p []byte) int {
	prefix := w.format.prefix()
	need := prefix
	if w.have >= prefix {
		need = w.format.headerSize(int8(w.head[prefix-1]))
	}
	n := copy(w.head[w.have:need], p)
	w.have += n
	if w.have < need {
		return n
	}
	if need == prefix && w.format.headerSize(int8(w.head[prefix-1])) > 0 {
		return n // the rest of the header is still to come
	}
	start := w.pos + int64(n) - int64(w.have)
	w.batch, w.err = w.format.Parse(w.head[:w.have], start, w.size-start)
	if w.err != nil {
		return n
	}
	table, from := w.batch.checksum()
	w.table, w.sum = table, crc32.Update(0, table, w.head[from:w.have])
	w.left = w.batch.Size - int64(w.have)
	w.have = 0
	w.finish()
	return n
}

func (w *Walker) takeBody(p []byte) int {
	n := int(min(int64(len(p)), w.left))
	w.sum = crc32.Update(w.sum, w.table, p[:n])
	w.left -= int64(n)
	w.finish()
	return n
}

// finish hands the batch over if all of it was seen.
func (w *Walker) finish() {
	switch {
	case w.left > 0:
	case w.sum != w.batch.CRC:
		w.err = damaged(&w.batch, "crc 0x%08x computed, 0x%08x stored", w.sum, w.batch.CRC)
	default:
		w.err = w.visit(w.batch)
	}
}

// Close ends the walk: the last batch must be whole. It returns the first error of the walk.
func (w *Walker) Close() error {
	switch {
	case w.err != nil:
	case w.left > 0:
		w.err = tornBatch(&w.batch, "%d of its %d bytes are missing", w.left, w.batch.Size)
	case w.have > 0:
		w.err = torn(w.pos-int64(w.have), int64(w.have))
	}
	return w.err
}

// Order checks that batches ascend and lie within a range of offsets. The zero value is not
// usable; NewOrder makes one.
type Order struct {
	bounds tier.Range
	next   tier.Offset // one past the last offset seen
}

// NewOrder returns a check for the batches of a segment [bounds.Base, bounds.Next).
func NewOrder(bounds tier.Range) *Order { return &Order{bounds: bounds, next: bounds.Base} }

// Next is one past the last offset seen; the segment's base before the first batch.
func (o *Order) Next() tier.Offset { return o.next }

// Add checks the next batch. Gaps are right: compaction leaves them. An error wraps
// tier.ErrDamaged.
func (o *Order) Add(b *Batch) error {
	first := b.Base // of a wrapper, the last offset, which must ascend all the same
	switch {
	case first < o.bounds.Base:
		return damaged(b, "below the segment's base %d", o.bounds.Base)
	case first < o.next:
		return damaged(b, "the batch before it ends at offset %d", o.next-1)
	case b.Last >= o.bounds.Next:
		return damaged(b, "it ends at offset %d, and the next segment begins at %d", b.Last,
			o.bounds.Next)
	}
	o.next = b.Next()
	return nil
}
