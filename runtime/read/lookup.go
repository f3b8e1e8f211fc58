package read

import (
	"encoding/binary"
	"io"
	"sort"
	"sync"

	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/tier"
)

// Sizes of the entries of Kafka's indexes, in bytes; relative offsets count from the segment's
// base.
//
//	.index     i32 relative offset, i32 position of a batch: all batches before it lie below
//	.timeindex i64 timestamp, i32 relative offset: no batch that lies below it is later
//	.txnindex  i16 version 0, i64 producer id, i64 first offset, i64 last offset, i64 last stable
const (
	indexEntryBytes     = 8
	timeIndexEntryBytes = 12
	txnIndexEntryBytes  = 34
)

// seek finds the first batch that ends at or above the offset; io.EOF if the file has none.
// Sequential tells that a reader came from just before.
func (f *segfile) seek(o tier.Offset) (b kbatch.Batch, sequential bool, err error) {
	if o <= f.base {
		b, err := f.walk(0, o)
		return b, true, err
	}
	if pos, ok := f.r.hints.get(f.id, o); ok {
		b, err := f.walk(pos, o)
		// A local file may have been written anew since: what lies there may be what follows.
		if err == nil && (f.file == nil || b.Base <= o) || err == io.EOF && f.file == nil {
			return b, true, err
		}
	}
	pos, err := f.near(o)
	if err != nil {
		return kbatch.Batch{}, false, err
	}
	if pos > 0 {
		b, err = f.walk(pos, o)
		// An index is a hint: where it does not lead to the offset itself the log decides.
		if err == nil && (b.Base <= o || b.Wrapper() || b.Position > pos || f.file == nil) {
			return b, false, nil
		}
		if err == io.EOF && f.file == nil {
			return b, false, err
		}
	}
	b, err = f.walkAll(o)
	return b, false, err
}

// walk goes from batch to batch, from the byte pos on, up to the first that ends at or above the
// offset.
func (f *segfile) walk(pos int64, o tier.Offset) (kbatch.Batch, error) {
	for {
		if err := f.ctx.Err(); err != nil {
			return kbatch.Batch{}, err
		}
		b, err := f.next(pos)
		if err != nil || b.Last >= o {
			return b, err
		}
		pos += b.Size
	}
}

// next reads the header of the batch at the byte pos. An object that has batches of other offsets
// than were copied is damaged: its batches may be sound, and must not pass for a gap.
func (f *segfile) next(pos int64) (kbatch.Batch, error) {
	b, err := f.format.Next(f.at, pos, f.size)
	if err == nil {
		err = f.within(&b)
	}
	return b, err
}

// within checks that a batch of a copy lies in the range that the copy is of.
func (f *segfile) within(b *kbatch.Batch) error {
	if f.file != nil {
		return nil
	}
	return kbatch.NewOrder(f.copy.Content.Range).Add(b)
}

// walkAll is walk from the beginning; of an object from what an earlier one has learnt.
func (f *segfile) walkAll(o tier.Offset) (kbatch.Batch, error) {
	if f.file != nil {
		return f.walk(0, o)
	}
	index := f.r.rebuilt.of(f.id)
	pos := index.near(o)
	for {
		if err := f.ctx.Err(); err != nil {
			return kbatch.Batch{}, err
		}
		b, err := f.next(pos)
		if err != nil || b.Last >= o {
			return b, err
		}
		pos += b.Size
		index.add(b.Next(), pos)
	}
}

// near looks an offset up in the segment's index: the byte where a batch begins, before which all
// batches lie below the offset; 0 where the index does not help.
func (f *segfile) near(o tier.Offset) (int64, error) {
	index, size, done, err := f.companion(extIndex)
	if err != nil || index == nil {
		return 0, err
	}
	pos := searchIndex(index, size, f.base, o)
	if err := done(); err != nil {
		return 0, err
	}
	if f.file == nil {
		return pos, nil // it was compared with its log
	}
	if b, err := f.next(pos); err != nil || b.Base < f.base || b.Base > o {
		return 0, nil
	}
	return pos, nil
}

// searchIndex finds the position of the last entry at or below the offset; 0 if there is none. An
// index that is being written is preallocated: entries, then zeros.
func searchIndex(at io.ReaderAt, size int64, base, o tier.Offset) int64 {
	n, pos := size/indexEntryBytes, int64(0)
	sort.Search(int(n), func(i int) bool {
		var e [indexEntryBytes]byte
		if _, err := at.ReadAt(e[:], int64(i)*indexEntryBytes); err != nil {
			return true
		}
		p := int64(binary.BigEndian.Uint32(e[4:]))
		if p == 0 || base+tier.Offset(binary.BigEndian.Uint32(e[:])) > o {
			return true
		}
		pos = max(pos, p)
		return false
	})
	return pos
}

// rebuilt holds what was learnt of objects whose index does not help.
type rebuilt struct {
	mu    sync.Mutex
	files map[fileID]*sparse
	order []fileID
}

// rebuiltMax bounds how many objects are remembered.
const rebuiltMax = 64

func (r *rebuilt) of(id fileID) *sparse {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.files[id]; s != nil {
		return s
	}
	if r.files == nil {
		r.files = map[fileID]*sparse{}
	}
	if len(r.order) == rebuiltMax {
		delete(r.files, r.order[0])
		r.order = r.order[1:]
	}
	s := &sparse{}
	r.files[id], r.order = s, append(r.order, id)
	return s
}

// sparseStep is how far apart the entries of a sparse index are at least, in bytes.
const sparseStep = 64 << 10

// sparse is an index made from a walk: entries ascend in both.
type sparse struct {
	mu      sync.Mutex
	entries []sparseEntry
}

type sparseEntry struct {
	next tier.Offset // all batches before pos lie below it
	pos  int64
}

func (s *sparse) near(o tier.Offset) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := sort.Search(len(s.entries), func(i int) bool { return s.entries[i].next > o })
	if i == 0 {
		return 0
	}
	return s.entries[i-1].pos
}

func (s *sparse) add(next tier.Offset, pos int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.entries); n == 0 && pos >= sparseStep ||
		n > 0 && pos >= s.entries[n-1].pos+sparseStep {
		s.entries = append(s.entries, sparseEntry{next, pos})
	}
}
