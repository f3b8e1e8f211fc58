package logdir

import (
	"encoding/binary"
	"errors"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/planted"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// Endings of a segment's files that Kafka and Fluss share. All have the base offset in 20 digits
// before them.
const (
	extLog       = ".log"
	extIndex     = ".index"
	extTimeIndex = ".timeindex"
	extSwap      = ".swap" // of files that the broker is putting in the place of others
	baseDigits   = 20
)

// rolled is what the layouts have in common whose program begins a new segment when one is full:
// where it begins is known by its name, and where it ends by that of the next.
type rolled struct {
	log, name string   // what it calls a log, and what it is called
	beside    []string // endings of the files beside that with the records
}

// The programs of the layouts.
const (
	kafkaProgram = "broker"
	flussProgram = "tablet server"
)

// program implements layout.
func (r *rolled) program() string { return r.name }

// segmentName splits the name of a segment's file into base and ending.
func segmentName(name string) (base tier.Offset, ext string, ok bool) {
	if len(name) <= baseDigits || name[baseDigits] != '.' {
		return 0, "", false
	}
	n, err := strconv.ParseUint(name[:baseDigits], 10, 63)
	return tier.Offset(n), name[baseDigits:], err == nil
}

// group implements layout. Files of one segment are neighbours in a listing.
func (r *rolled) group(infos []vfs.Info) listing {
	l := listing{whole: true}
	var before tier.Offset // base of the companions counted in bytes, which come before the log
	var bytes int64
	var rest tier.Mark
	for _, i := range infos {
		if i.Name == trashName {
			l.trashed = true
			continue
		}
		base, ext, ok := segmentName(i.Name)
		switch {
		case strings.HasSuffix(i.Name, extSwap):
			l.hide(i.Name, tier.CodeRetry, "the %s is replacing segments", r.name)
		case !ok:
			if strings.HasSuffix(i.Name, extLog) {
				l.problem(i.Name, tier.CodeBadName, "no segment: want a base offset in 20 digits")
			}
		case ext == extLog && !i.Regular():
			l.hide(i.Name, tier.CodeNotRegular, "not a regular file: links are not followed")
		case ext == extLog:
			if before != base {
				bytes, rest = 0, 0
			}
			l.segments = append(l.segments, segmentFile{base: base, bytes: bytes + i.Size,
				rest: rest, stat: i.Stat, name: i.Name})
		case slices.Contains(r.beside, ext) && i.Regular():
			if n := len(l.segments); n > 0 && l.segments[n-1].base == base {
				l.segments[n-1].bytes += i.Size
				l.segments[n-1].rest ^= tier.MarkOf(i.Name, i.Stat)
				continue
			}
			if before != base {
				before, bytes, rest = base, 0, 0
			}
			bytes += i.Size
			rest ^= tier.MarkOf(i.Name, i.Stat)
		}
	}
	if len(l.segments) == 0 && l.whole {
		l.hide(".", tier.CodeSourceVanished, "a %s without any segment", r.log)
	}
	return l
}

// outline implements layout.
func (*rolled) outline(names []string) listing {
	l := listing{whole: true}
	for _, name := range names {
		if base, ext, ok := segmentName(name); ok && ext == extLog {
			l.segments = append(l.segments, segmentFile{base: base, name: name})
		}
	}
	return l
}

// stem implements layout.
func (*rolled) stem(records string) string { return strings.TrimSuffix(records, extLog) }

// companions implements layout.
func (r *rolled) companions(infos []vfs.Info, records string) []vfs.Info {
	var out []vfs.Info
	stem := strings.TrimSuffix(records, extLog)
	for _, i := range infos {
		if ext, ok := strings.CutPrefix(i.Name, stem); ok && slices.Contains(r.beside, ext) &&
			i.Regular() {
			out = append(out, i)
		}
	}
	return out
}

// end implements layout.
func (*rolled) end(l *listing, i int) (tier.Offset, bool) { return l.next(i) }

// exact implements layout.
func (*rolled) exact() bool { return false }

// giveEnds adds the folder's segments to the scan, with their ends and what they wait for: to be
// rolled, replicated up to the scan's high watermark, and synced up to the recovery point.
func (f *folder) giveEnds(scan *tier.Scan, at judging, recoveryPoint tier.Offset) {
	if len(f.segments) == 0 {
		return
	}
	scan.SourceStart = max(scan.SourceStart, f.segments[0].base)
	scan.Segments = make([]tier.LocalSegment, len(f.segments))
	for i, s := range f.segments {
		seg := tier.LocalSegment{Bytes: s.bytes, Log: s.stat, Rest: s.rest}
		seg.Base = s.base
		next, rolled := f.next(i)
		if !rolled {
			next = f.partition.end(f, s, at.root, scan)
			scan.LocalEnd = next
		}
		seg.Next = next
		switch {
		case !rolled:
			seg.Waits = tier.WaitsForRoll
		case scan.HighWatermark < next && !planted.Is(planted.WatermarkIgnored):
			seg.Waits = tier.WaitsForHighWatermark
		case recoveryPoint < next:
			seg.Waits = tier.WaitsForRecoveryPoint
		default:
			seg.Waits = tier.WaitsForNothing
		}
		scan.Segments[i] = seg
	}
}

// partition is what is particular to the folder of a Kafka partition, or of a Fluss bucket.
type partition struct {
	format      kbatch.Format
	incarnation string
	lineage     []tier.EpochStart
	tail        tail
	changelog   bool // Fluss: of a table with a primary key
}

// tail is how far the active segment was walked through: what is before pos need not be read again,
// as long as the last batch before it is still there.
type tail struct {
	file tier.Stat
	pos  int64
	end  tier.Offset  // one past the last offset before pos
	last kbatch.Batch // before pos; its Size is 0 where none was read
}

// end returns where the active segment ends: one past its last whole batch. Checksums are not
// looked at; nothing is decided by it.
func (p *partition) end(f *folder, s segmentFile, root vfs.Dir, scan *tier.Scan) tier.Offset {
	if p.tail.file == s.stat {
		return p.tail.end
	}
	t := p.tail
	if t.file.Inode != s.stat.Inode || t.pos > s.stat.Size {
		t = tail{}
	}
	t.file = s.stat
	err := t.walk(root, p.format, path.Join(f.dir, s.name), s.base)
	if err != nil {
		scan.Whole = false
		scan.Problems = append(slices.Clip(scan.Problems),
			problem(path.Join(f.dir, s.name), tier.CodeUnreadable, err.Error()))
		return s.base
	}
	p.tail = t
	return t.end
}

// walk goes from batch to batch up to the last one that is whole.
func (t *tail) walk(root vfs.Dir, format kbatch.Format, name string, base tier.Offset) (
	err error) {
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if b, err := format.Next(file, t.last.Position, t.file.Size); err != nil || b != t.last {
		// Nothing was read yet, or another leader has cut the file off and written it anew.
		t.pos, t.end, t.last = 0, base, kbatch.Batch{}
		t.jump(root, format, file, name, base)
	}
	// Every step goes forward by at least the smallest batch.
	for t.pos < t.file.Size {
		b, err := format.Next(file, t.pos, t.file.Size)
		if errors.Is(err, tier.ErrDamaged) || err == nil && b.Base < t.end {
			return nil // a batch that is being written, or preallocated zeros: the log ends here
		}
		if err != nil {
			return err
		}
		t.pos, t.end, t.last = t.pos+b.Size, b.Next(), b
	}
	return nil
}

// jump begins the walk at the last entry of the segment's index, if that leads to a batch. The
// index of an active segment is preallocated: entries, then zeros.
func (t *tail) jump(root vfs.Dir, format kbatch.Format, log vfs.File, name string,
	base tier.Offset) {
	file, err := root.Open(strings.TrimSuffix(name, extLog) + extIndex)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }() // only read, and only for a hint
	info, err := file.Stat()
	if err != nil {
		return
	}
	entry := func(i int64) (offset tier.Offset, pos int64, ok bool) {
		var e [indexEntryBytes]byte
		if _, err := file.ReadAt(e[:], i*indexEntryBytes); err != nil && err != io.EOF {
			return 0, 0, false
		}
		offset = base + tier.Offset(binary.BigEndian.Uint32(e[:]))
		pos = int64(binary.BigEndian.Uint32(e[4:]))
		return offset, pos, pos > 0
	}
	low, high := int64(-1), info.Size/indexEntryBytes // entries up to low are set, from high on not
	for high-low > 1 {
		mid := low + (high-low)/2
		if _, _, ok := entry(mid); ok {
			low = mid
		} else {
			high = mid
		}
	}
	if low < 0 {
		return
	}
	offset, pos, _ := entry(low)
	b, err := format.Next(log, pos, t.file.Size)
	if err == nil && b.Base >= base && b.Base <= offset {
		t.pos, t.end = pos, b.Base
	}
}
