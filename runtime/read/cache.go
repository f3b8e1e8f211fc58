package read

import (
	"container/list"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// Sizes in bytes.
const (
	// ChunkBytes is the size of a chunk: enough that a request to a store costs little beside it.
	ChunkBytes = 4 << 20
	// batchMargin is how much is read at once from where a batch may begin: what Kafka takes for a
	// batch unless told otherwise, and the way from an index entry to the batch.
	batchMargin = 1<<20 + 64<<10
	// wholeBytesMax is the largest file that is read by one request: an index has at most 10 MiB.
	wholeBytesMax = 16 << 20
)

// Store is the object store, as far as reading asks it. Methods are safe for concurrent use.
type Store interface {
	// ReadFile fills the buffers, one after the other, with the bytes from off on, by one request.
	// tier.ErrVanished and tier.ErrDamaged are wrapped.
	ReadFile(ctx context.Context, k tier.ObjectKey, off int64, bufs ...[]byte) error
}

// CacheConfig bounds a Cache. Dir may be nil: then chunks are kept in memory alone.
type CacheConfig struct {
	Store       Store
	Dir         vfs.Dir   // of the cache alone, which owns it
	MemoryBytes int64     // of chunks in memory
	DiskBytes   int64     // of chunks on disk
	Age         tier.Time // how long a chunk is kept, nanoseconds; 0 is as long as there is room
	Fetches     int       // requests to the store at one time; 0 is 8
	Now         func() tier.Time
}

// Cache reads objects and keeps what it read, in chunks. It is safe for concurrent use.
type Cache struct {
	c     CacheConfig
	slots chan struct{}
	stats cacheStats

	mu      sync.Mutex
	memory  lru // of chunks, by name
	disk    lru // of their files
	flights map[string]*flight
}

// CacheStats counts what a cache did since it was made, and what it holds.
type CacheStats struct {
	Hits, DiskHits, Fetches   int64 // chunks from memory and from disk; requests to the store
	FetchedBytes              int64
	MemoryBytes, DiskBytes    int64
	FetchFailures, DiskErrors int64
}

type cacheStats struct {
	hits, diskHits, fetches, fetchedBytes, failures, diskErrors atomic.Int64
}

// flight is a chunk that somebody is reading.
type flight struct {
	done chan struct{}
	data []byte
	err  error
}

// lru is a set of things with sizes, the one used last in front.
type lru struct {
	order list.List // of *kept
	named map[string]*list.Element
	bytes int64
}

type kept struct {
	name string
	size int64
	at   tier.Time // when it was read from the store
	data []byte    // in memory alone
}

func (l *lru) get(name string) *kept {
	e := l.named[name]
	if e == nil {
		return nil
	}
	l.order.MoveToFront(e)
	return e.Value.(*kept)
}

func (l *lru) add(k *kept) {
	if l.named == nil {
		l.named = map[string]*list.Element{}
	}
	l.remove(k.name)
	l.named[k.name] = l.order.PushFront(k)
	l.bytes += k.size
}

func (l *lru) remove(name string) bool {
	e := l.named[name]
	if e == nil {
		return false
	}
	l.bytes -= e.Value.(*kept).size
	l.order.Remove(e)
	delete(l.named, name)
	return true
}

// excess removes what is beyond bytesMax or older than limit, and returns the names.
func (l *lru) excess(bytesMax int64, limit tier.Time) []string {
	var out []string
	for e := l.order.Back(); e != nil; {
		k, before := e.Value.(*kept), e.Prev()
		if l.bytes > bytesMax || k.at < limit {
			l.remove(k.name)
			out = append(out, k.name)
		}
		e = before
	}
	return out
}

// NewCache returns a cache of what the directory holds of an earlier one.
func NewCache(c CacheConfig) (*Cache, error) {
	if c.Fetches == 0 {
		c.Fetches = 8
	}
	x := &Cache{c: c, slots: make(chan struct{}, c.Fetches), flights: map[string]*flight{}}
	if c.Dir != nil {
		if err := x.openDisk(); err != nil {
			return nil, fmt.Errorf("read cache: %w", err)
		}
	}
	return x, nil
}

// Close gives the directory back.
func (x *Cache) Close() error {
	if x.c.Dir == nil {
		return nil
	}
	return x.c.Dir.Close()
}

// Stats tells what the cache did.
func (x *Cache) Stats() CacheStats {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := &x.stats
	return CacheStats{Hits: s.hits.Load(), DiskHits: s.diskHits.Load(), Fetches: s.fetches.Load(),
		FetchedBytes: s.fetchedBytes.Load(), FetchFailures: s.failures.Load(),
		DiskErrors: s.diskErrors.Load(), MemoryBytes: x.memory.bytes, DiskBytes: x.disk.bytes}
}

// Tend lets go of what is too old.
func (x *Cache) Tend() {
	limit := x.oldest()
	x.mu.Lock()
	x.memory.excess(x.c.MemoryBytes, limit)
	gone := x.disk.excess(x.c.DiskBytes, limit)
	x.mu.Unlock()
	x.removeFiles(gone)
}

// oldest is when a chunk must have been read to count.
func (x *Cache) oldest() tier.Time {
	if x.c.Age == 0 {
		return 0
	}
	return x.c.Now() - x.c.Age
}

// object is one object of the store: a file of a segment.
type object struct {
	key   tier.ObjectKey
	size  int64 // bytes
	chunk int64 // bytes of a chunk
}

// chunked is the object in chunks of the usual size.
func chunked(key tier.ObjectKey, size int64) object { return object{key, size, ChunkBytes} }

func (o *object) chunks() int64 { return (o.size + o.chunk - 1) / o.chunk }

// bytesOf is the size of chunk n, of which the last is shorter.
func (o *object) bytesOf(n int64) int64 { return min(o.chunk, o.size-n*o.chunk) }

// name is the name of chunk n, in memory and on disk.
func (o *object) name(n int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %d %d %s %q %d %d", o.key.Log.String(), o.key.Epoch,
		o.key.Base, o.key.Attempt, o.key.Name, o.chunk, n))
	return fmt.Sprintf("%x%s", sum[:16], chunkSuffix)
}

// readAt fills p with the bytes of the object from off on, which must be there. Chunks that nobody
// has are read together with those behind them that cover at least [off, off+least).
func (x *Cache) readAt(ctx context.Context, o object, p []byte, off, least int64) error {
	if off < 0 || off+int64(len(p)) > o.size {
		return fmt.Errorf("bytes [%d, %d) of %s, which has %d", off, off+int64(len(p)), o.key.Name,
			o.size)
	}
	last := (min(off+max(int64(len(p)), least), o.size) - 1) / o.chunk
	for len(p) > 0 {
		n := off / o.chunk
		data, err := x.get(ctx, o, n, last)
		if err != nil {
			return err
		}
		k := copy(p, data[off-n*o.chunk:])
		p, off = p[k:], off+int64(k)
	}
	return nil
}

// from gives what the chunk with the byte off has from there on, without a copy: nobody changes it.
// Where nobody has the chunk it is read together with those behind it that cover [off, off+least).
func (x *Cache) from(ctx context.Context, o object, off, least int64) ([]byte, error) {
	n := off / o.chunk
	data, err := x.get(ctx, o, n, (min(off+least, o.size)-1)/o.chunk)
	if err != nil {
		return nil, err
	}
	return data[off-n*o.chunk:], nil
}

// loaded is how many bytes from off on are in memory, without a gap.
func (x *Cache) loaded(o object, off int64) int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	end := off
	for n := off / o.chunk; n < o.chunks(); n++ {
		if x.memory.named[o.name(n)] == nil {
			break
		}
		end = n*o.chunk + o.bytesOf(n)
	}
	return end - off
}

// forget drops what is kept of the object.
func (x *Cache) forget(o object) {
	x.mu.Lock()
	var gone []string
	for n := range o.chunks() {
		name := o.name(n)
		x.memory.remove(name)
		if x.disk.remove(name) {
			gone = append(gone, name)
		}
	}
	x.mu.Unlock()
	x.removeFiles(gone)
}

// get returns chunk n. Where it has to be read, those behind it up to last are read by the same
// request.
func (x *Cache) get(ctx context.Context, o object, n, last int64) ([]byte, error) {
	name := o.name(n)
	for {
		x.mu.Lock()
		if k := x.memory.get(name); k != nil {
			x.mu.Unlock()
			x.stats.hits.Add(1)
			return k.data, nil
		}
		if f := x.flights[name]; f != nil {
			x.mu.Unlock()
			select {
			case <-f.done:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			if f.err == nil {
				return f.data, nil
			}
			if given := errors.Is(f.err, context.Canceled) ||
				errors.Is(f.err, context.DeadlineExceeded); !given || ctx.Err() != nil {
				return nil, f.err
			}
			continue // whoever read it has left; it is our turn
		}
		run := x.begin(o, n, last)
		x.mu.Unlock()
		return x.load(ctx, o, n, run)
	}
}

// begin claims chunk n and those behind it, up to last, that nobody has. The caller holds the lock.
func (x *Cache) begin(o object, n, last int64) []*flight {
	var run []*flight
	for i := n; i <= last; i++ {
		name := o.name(i)
		if i > n && (x.flights[name] != nil || x.memory.named[name] != nil ||
			x.disk.named[name] != nil) {
			break
		}
		f := &flight{done: make(chan struct{})}
		x.flights[name] = f
		run = append(run, f)
		if x.disk.named[name] != nil {
			break // it is read from there, alone
		}
	}
	return run
}

// load reads the chunks of the run, from n on, and hands them to whoever waits.
func (x *Cache) load(ctx context.Context, o object, n int64, run []*flight) ([]byte, error) {
	at, onDisk := x.fromDisk(o, n, run[0])
	err := error(nil)
	if !onDisk {
		at, err = x.c.Now(), x.fetch(ctx, o, n, run)
	}
	var evicted []string
	x.mu.Lock()
	for i, f := range run {
		name := o.name(n + int64(i))
		delete(x.flights, name)
		if f.err = err; err == nil {
			x.memory.add(&kept{name: name, size: int64(len(f.data)), at: at, data: f.data})
		}
		close(f.done)
	}
	x.memory.excess(x.c.MemoryBytes, 0)
	x.mu.Unlock()
	if err == nil && !onDisk {
		evicted = x.toDisk(o, n, run, at)
	}
	x.removeFiles(evicted)
	return run[0].data, err
}

// fetch reads the chunks of the run by one request.
func (x *Cache) fetch(ctx context.Context, o object, n int64, run []*flight) error {
	select {
	case x.slots <- struct{}{}:
		defer func() { <-x.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	bufs := make([][]byte, len(run))
	total := int64(0)
	for i := range run {
		bufs[i] = unzeroed(o.bytesOf(n + int64(i)))
		total += int64(len(bufs[i]))
	}
	x.stats.fetches.Add(1)
	if err := x.c.Store.ReadFile(ctx, o.key, n*o.chunk, bufs...); err != nil {
		x.stats.failures.Add(1)
		return err // and nothing of the buffers is given to anybody
	}
	for i, f := range run {
		f.data = bufs[i]
	}
	x.stats.fetchedBytes.Add(total)
	return nil
}

// whole reads a file by one request and checks it by its digest. An error wraps tier.ErrDamaged
// where the store has other bytes; nothing of them is kept then.
func (x *Cache) whole(ctx context.Context, key tier.ObjectKey, d tier.FileDigest) ([]byte, error) {
	if d.Size > wholeBytesMax {
		return nil, fmt.Errorf("%s has %d bytes, more than %d: %w", d.Name, d.Size, wholeBytesMax,
			ErrIndivisible)
	}
	if d.Size == 0 {
		return nil, nil
	}
	key.Name = d.Name
	o := object{key, d.Size, d.Size}
	data, err := x.get(ctx, o, 0, 0)
	if err != nil {
		return nil, err
	}
	if got := tier.SHA256(sha256.Sum256(data)); got != d.SHA256 {
		x.forget(o)
		return nil, fmt.Errorf("log %s: object %s of attempt %s: sha256 %s, want %s: %w", key.Log,
			d.Name, key.Attempt, got, d.SHA256, tier.ErrDamaged)
	}
	return data, nil
}
