package logdir

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"
	"path"
	"slices"
	"sync"

	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

const (
	// readBytes is how much is read at once.
	readBytes = 1 << 20
	// cacheBytes is how much goes through all checksums at once: it stays in the processor's cache.
	cacheBytes = 64 << 10
	// keptBytes is the largest file that stays in the page cache after it was read: its upload reads
	// it again at once, and drops it then. Of a larger one each piece is dropped behind the read, so
	// that the cache stays the broker's.
	keptBytes = 16 << 20
	// epochChangesMax bounds the lineage that a damaged or hostile segment can claim.
	epochChangesMax = 1 << 16
	// millisMax is the latest time in milliseconds that nanoseconds can hold.
	millisMax = math.MaxInt64 / 1_000_000
)

// buffers are of *[readBytes]byte: a buffer for each read would be most of the garbage. All sources
// of a process share them.
var buffers = sync.Pool{New: func() any { return new([readBytes]byte) }}

// castagnoli never changes; making it once lets the hardware instruction be used.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Read passes once over the files of the segment in order, checks every batch, and returns digests
// and facts; the first file holds the records. An error wraps tier.ErrDamaged, tier.ErrVanished or
// tier.ErrChanged where it is that. A file that grew, shrank or was replaced while it was read is
// changed, whatever else was found in it.
//
// An index that does not fit the log is left out and reported in Problems: the log is the truth,
// and whoever needs the index can make it anew.
func (s *Source) Read(ctx context.Context, id tier.LogID, r tier.Range) (c tier.Content,
	err error) {
	if r.Empty() {
		return tier.Content{}, fmt.Errorf("read %s %s: the range is empty", id, r)
	}
	root, err := s.root()
	if err != nil {
		return tier.Content{}, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	dir, names, err := s.names(root, id)
	if err != nil {
		return tier.Content{}, err
	}
	// What was read is what the engine will know. The next scan must not say something older.
	defer s.distrust(dir)
	seg, err := s.segment(root, dir, names, r)
	if err != nil {
		return tier.Content{}, fmt.Errorf("log %s: %w", id, err)
	}
	buf := buffers.Get().(*[readBytes]byte)
	defer buffers.Put(buf)
	p := &pass{ctx: ctx, root: root, dir: dir, next: seg.next, buf: buf[:],
		content: tier.Content{Range: r, LastNext: r.Next}}
	defer func() { err = errors.Join(err, p.close()) }()
	err = p.openAll(seg.name, s.layout.companions(seg.infos, seg.name))
	if format, ok := kbatch.FormatOf(s.cfg.Layout); err == nil && ok {
		err = p.readBatches(format)
	} else if err == nil {
		err = p.readBytes()
	}
	if err != nil {
		return tier.Content{}, fmt.Errorf("segment %s: %w", seg.name, p.why(err))
	}
	return p.content, nil
}

// pass is one read of one segment.
type pass struct {
	ctx     context.Context
	root    vfs.Dir
	dir     string
	next    tier.Offset // where the next segment begins
	files   []*passFile // the one with the records first
	buf     []byte
	content tier.Content
}

// passFile is one file of a segment while it is read.
type passFile struct {
	vfs.File
	name   string
	before tier.Stat
	sha    hash.Hash
	crc    uint32
	check  *indexCheck // of an index that is compared with the log; nil otherwise
}

// Write takes the next bytes of the file into its digest.
func (f *passFile) Write(p []byte) (int, error) {
	f.crc = crc32.Update(f.crc, castagnoli, p)
	return f.sha.Write(p)
}

// dropCache lets go of bytes that were read, but of a small file.
func (f *passFile) dropCache(off, n int64) {
	if f.before.Size > keptBytes {
		f.DropCache(off, n)
	}
}

// openAll opens the files of the segment and notes their identities.
func (p *pass) openAll(records string, companions []vfs.Info) error {
	names := []string{records}
	for _, c := range companions {
		names = append(names, c.Name)
	}
	for _, name := range names {
		f, err := p.root.Open(path.Join(p.dir, name))
		if err != nil {
			return gone(err)
		}
		info, err := f.Stat()
		if err != nil {
			return errors.Join(err, f.Close())
		}
		file := &passFile{File: f, name: name, before: info.Stat, sha: sha256.New()}
		p.files = append(p.files, file)
	}
	return nil
}

func (p *pass) close() error {
	var err error
	for _, f := range p.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

// readBytes reads a segment whose content is not understood.
func (p *pass) readBytes() error {
	for _, f := range p.files {
		if err := p.stream(f, nil); err != nil {
			return err
		}
		if err := p.done(f); err != nil {
			return err
		}
	}
	return nil
}

// readBatches reads a segment of record batches: the log with its indexes beside it, then what is
// left.
func (p *pass) readBatches(format kbatch.Format) error {
	log := p.files[0]
	seen := &seenBatches{base: p.content.Range.Base, next: p.content.Range.Base,
		maxTime: kbatch.NoTimestamp}
	for _, f := range p.files[1:] {
		in := io.TeeReader(io.NewSectionReader(f, 0, f.before.Size), f)
		f.check = newIndexCheck(path.Ext(f.name), in)
	}
	order := kbatch.NewOrder(tier.Range{Base: p.content.Range.Base, Next: p.next})
	walker := format.NewWalker(log.before.Size, func(b kbatch.Batch) error {
		if err := order.Add(&b); err != nil {
			return err
		}
		seen.see(&b)
		for _, f := range p.files {
			if f.check != nil {
				f.check.advance(seen)
			}
		}
		return p.note(&b)
	})
	err := p.stream(log, walker)
	if err == nil {
		err = walker.Close()
	}
	if err != nil {
		return err
	}
	if p.content.LastNext = order.Next(); p.content.LastNext > p.content.Range.Next {
		return fmt.Errorf("%w: it has offsets up to %d now", tier.ErrChanged, p.content.LastNext-1)
	}
	if err := p.done(log); err != nil {
		return err
	}
	seen.pass()
	for _, f := range p.files[1:] {
		if err := p.readCompanion(f, seen); err != nil {
			return err
		}
	}
	p.compareEpochs()
	return nil
}

// readCompanion reads the rest of a file that belongs to a segment of record batches.
func (p *pass) readCompanion(f *passFile, seen *seenBatches) error {
	if f.check == nil {
		if err := p.stream(f, nil); err != nil {
			return err
		}
		return p.done(f)
	}
	mismatch := f.check.end(seen)
	if err := p.unchanged(f); err != nil {
		return err
	}
	if errors.Is(mismatch, tier.ErrDamaged) {
		p.problem(f.name, tier.CodeIndexMismatch, fmt.Sprintf("the index does not fit its log "+
			"and is not copied: %v", mismatch))
		return nil
	}
	if mismatch != nil {
		return mismatch
	}
	f.dropCache(0, f.before.Size)
	return p.done(f)
}

// note adds what the batch says to the content.
func (p *pass) note(b *kbatch.Batch) error {
	c := &p.content
	c.Batches++
	if b.MaxTimestamp > 0 {
		// What overflows is as far in the future as can be said: seen to be unusable, not hidden.
		c.MaxTime = max(c.MaxTime, tier.Time(min(b.MaxTimestamp, millisMax)*1e6))
	}
	before := tier.NoLeaderEpoch
	if n := len(c.Lineage); n > 0 {
		before = c.Lineage[n-1].Epoch
	}
	if b.Epoch == before {
		return nil
	}
	if len(c.Lineage) == epochChangesMax {
		return fmt.Errorf("byte %d: the leader epoch changes more than %d times: %w", b.Position,
			epochChangesMax, tier.ErrDamaged)
	}
	c.Lineage = append(c.Lineage, tier.EpochStart{Epoch: b.Epoch, Start: b.Base})
	return nil
}

// compareEpochs reports where the partition's own checkpoint names another leader epoch than the
// batches do. The batches are what is copied; the checkpoint is only a witness, and keeps silent
// about offsets below its first entry.
func (p *pass) compareEpochs() {
	epochs, err := readEpochs(p.root, p.dir)
	if err != nil {
		p.problem(fileLeaderEpochs, tier.CodeUnreadable, err.Error())
		return
	}
	for _, e := range p.content.Lineage {
		want, known := tier.EpochAt(epochs, e.Start)
		if known && e.Epoch != tier.NoLeaderEpoch && want != e.Epoch {
			p.problem(fileLeaderEpochs, tier.CodeLineage, fmt.Sprintf("the batch at offset %d is "+
				"of leader epoch %d, and the checkpoint says %d", e.Start, e.Epoch, want))
		}
	}
}

func (p *pass) problem(name string, code tier.Code, text string) {
	p.content.Problems = append(p.content.Problems, problem(path.Join(p.dir, name), code, text))
}

// stream reads as many bytes as the file had, through its digest and to also, if that is not nil.
func (p *pass) stream(f *passFile, also io.Writer) error {
	for pos := int64(0); pos < f.before.Size; {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		want := min(int64(len(p.buf)), f.before.Size-pos)
		n, err := f.ReadAt(p.buf[:want], pos)
		if err == io.EOF && int64(n) < want {
			return fmt.Errorf("%s: %w: it was cut to %d bytes", f.name, tier.ErrChanged,
				pos+int64(n))
		}
		if err != nil && err != io.EOF {
			return err
		}
		for chunk := range slices.Chunk(p.buf[:n], cacheBytes) {
			if _, err := f.Write(chunk); err != nil {
				return err
			}
			if also == nil {
				continue
			}
			if _, err := also.Write(chunk); err != nil {
				return err
			}
		}
		f.dropCache(pos, int64(n))
		pos += int64(n)
	}
	return nil
}

// why gives the reason of a failed read: whatever was found in a file that went away or changed
// meanwhile says nothing.
func (p *pass) why(err error) error {
	for _, f := range p.files {
		if changed := p.unchanged(f); changed != nil {
			return changed
		}
	}
	return err
}

// unchanged returns an error unless the name still stands for the file that was opened, and that
// is as it was then. As long as it is open, no other file has its inode.
func (p *pass) unchanged(f *passFile) error {
	named, err := p.root.Stat(path.Join(p.dir, f.name))
	switch {
	case err != nil:
		return gone(err)
	case named.Stat != f.before:
		return fmt.Errorf("%s: %w while it was read", f.name, tier.ErrChanged)
	}
	return nil
}

// done adds a file that was read whole to the content.
func (p *pass) done(f *passFile) error {
	if err := p.unchanged(f); err != nil {
		return err
	}
	d := tier.FileDigest{Name: f.name, Size: f.before.Size, CRC32C: f.crc}
	f.sha.Sum(d.SHA256[:0])
	p.content.Files = append(p.content.Files, tier.SourceFile{FileDigest: d, Stat: f.before})
	return nil
}
