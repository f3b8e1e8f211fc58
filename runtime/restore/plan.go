package restore

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/verify"
)

// Options say which part of a log is restored. Segments are restored whole.
type Options struct {
	// From is the first offset that is needed; segments that end at or below it are left out.
	From tier.Offset
	// Until leaves out the segments behind the first one whose newest record is at or after it; 0
	// leaves out none. Where a segment's records have no usable time, its mtime counts.
	Until tier.Time
}

// Source is a log to restore: what the ledger holds of it, and the identity of its generation.
type Source struct {
	*verify.Log
	Incarnation string // Kafka: the topic's id; Fluss: the ids of table and partition
}

// File is one file to write.
type File struct {
	Path    string // below the target, slash-separated
	Key     tier.ObjectKey
	Digest  tier.FileDigest // of the object
	ModTime tier.Time
	// Batches: it holds record batches of the format, whose checksums are compared too.
	Batches bool
	Format  kbatch.Format
	Range   tier.Range // of the copy
	// Cut is what of the offsets is to be kept; nil is all, byte for byte.
	Cut *tier.Range
}

// Text is a small file that is made, and not copied.
type Text struct{ Path, Content string }

// Log is what a plan restores of a log.
type Log struct {
	ID    tier.LogID
	Range tier.Range
	// Segments, Files and Bytes are what is copied from the store.
	Segments, Files, Bytes int64
	Holes                  []tier.Range // within Range
}

// Plan is everything that a restore writes.
type Plan struct {
	Logs  []Log
	Files []File
	Texts []Text
}

// Bytes is how much is read from the store.
func (p *Plan) Bytes() int64 {
	n := int64(0)
	for _, l := range p.Logs {
		n += l.Bytes
	}
	return n
}

// Without is the plan's texts while some of its files cannot be had: a log that lacks one does not
// get what says that it can be opened, and what is of all logs has to wait for it.
func (p *Plan) Without(missing []*File) []Text {
	if len(missing) == 0 {
		return p.Texts
	}
	dirs := map[string]bool{".": true}
	for _, f := range missing {
		dirs[path.Dir(f.Path)] = true
	}
	return slices.DeleteFunc(slices.Clone(p.Texts), func(x Text) bool {
		return dirs[path.Dir(x.Path)]
	})
}

// Names of the files that a Kafka broker keeps beside its segments, and of those of a Fluss tablet
// server.
const (
	nameEpochs        = "leader-epoch-checkpoint"
	nameMetadata      = "partition.metadata"
	nameLogStart      = "log-start-offset-checkpoint"
	nameRecovery      = "recovery-point-offset-checkpoint"
	nameHighWatermark = "replication-offset-checkpoint"
	nameTabletMark    = "high-watermark-checkpoint"
)

// Make plans the restore of the logs. An error says which log cannot be restored as asked.
func Make(logs []Source, o Options) (*Plan, error) {
	p := &Plan{}
	var starts, ends, marks []string
	for _, l := range logs {
		pieces := pieces(l.Log, o)
		if len(pieces) == 0 {
			continue
		}
		r := tier.Range{Base: max(pieces[0].Base, l.Start, o.From), Next: pieces[len(pieces)-1].Next}
		r.Base = min(r.Base, r.Next)
		first := len(p.Files)
		dir, err := directory(l)
		if err != nil {
			return nil, err
		}
		for _, x := range pieces {
			if err := p.add(dir, l.Log, x); err != nil {
				return nil, err
			}
		}
		done := Log{ID: l.ID, Range: r, Segments: int64(len(pieces)),
			Files: int64(len(p.Files) - first), Holes: holes(pieces, r)}
		for _, f := range p.Files[first:] {
			done.Bytes += f.Digest.Size
		}
		p.Logs = append(p.Logs, done)
		if l.Layout == tier.LayoutFluss {
			line, err := bucketLine(l, r.Next)
			if err != nil {
				return nil, err
			}
			marks = append(marks, line)
		}
		if l.Layout != tier.LayoutKafka {
			continue
		}
		line := l.ID.Table + " " + l.ID.Name + " "
		ends = append(ends, line+strconv.FormatInt(int64(r.Next), 10))
		if r.Base > pieces[0].Base {
			starts = append(starts, line+strconv.FormatInt(int64(r.Base), 10))
		}
		p.partition(dir, l, pieces)
	}
	if len(ends) > 0 {
		p.Texts = append(p.Texts, Text{nameLogStart, checkpoint(starts)},
			Text{nameRecovery, checkpoint(ends)}, Text{nameHighWatermark, checkpoint(ends)})
	}
	if len(marks) > 0 {
		p.Texts = append(p.Texts, Text{nameRecovery, checkpoint(marks)},
			Text{nameTabletMark, checkpoint(marks)})
	}
	return p, nil
}

// directory is where the source's program keeps the log, below its own directory.
func directory(l Source) (string, error) {
	switch l.Layout {
	case tier.LayoutKafka:
		return l.ID.Table + "-" + l.ID.Name, nil
	case tier.LayoutFluss:
		b, ids, err := bucketOf(l)
		if err != nil {
			return "", err
		}
		return b.Dir(ids), nil
	}
	return l.ID.String(), nil
}

// bucketOf is the Fluss bucket that the log is.
func bucketOf(l Source) (tier.FlussBucket, tier.FlussIDs, error) {
	b, ok := tier.FlussBucketOf(l.ID)
	ids, known := tier.ParseFlussIDs(l.Incarnation)
	if !ok || !known || (b.Partition != "") != (ids.Partition >= 0) {
		return b, ids, fmt.Errorf("log %s: it is no bucket of a Fluss table, or the ids of table and "+
			"partition are not known: its incarnation is %q", l.ID, l.Incarnation)
	}
	return b, ids, nil
}

// bucketLine is the line of a bucket in a tablet server's checkpoint.
func bucketLine(l Source, o tier.Offset) (string, error) {
	b, ids, err := bucketOf(l)
	return fmt.Sprintf("%s %d %d", strings.ReplaceAll(ids.Incarnation(), "/", " "), b.Bucket, o), err
}

// piece is a range of offsets with the copy that it is restored from.
type piece struct {
	tier.Range
	copy tier.Copy
}

// pieces are what of the log is restored, ascending.
func pieces(l *verify.Log, o Options) []piece {
	byPosition := map[tier.Position]tier.Copy{}
	for _, c := range l.Copies() {
		byPosition[c.Position] = c
	}
	var out []piece
	for _, c := range l.Counted {
		copied, ok := byPosition[c.Position]
		if !ok || c.Next <= o.From {
			continue
		}
		out = append(out, piece{c.Range, copied})
		newest := copied.Content.MaxTime
		if newest <= 0 {
			newest = copied.ModTime
		}
		if o.Until > 0 && newest >= o.Until {
			break
		}
	}
	return out
}

func holes(pieces []piece, r tier.Range) []tier.Range {
	left := tier.RangeSet{}.Add(r)
	for _, x := range pieces {
		left = left.Subtract(x.Range)
	}
	return left
}

// add plans the files of one piece.
func (p *Plan) add(dir string, l *verify.Log, x piece) error {
	c := &x.copy
	whole := x.Range == c.Content.Range
	format, batches := kbatch.FormatOf(l.Layout)
	if !whole && !batches {
		return fmt.Errorf("log %s: of the copied segment %s only %s counts, and a %s segment cannot be "+
			"cut; restore from a later offset", l.ID, c.Content.Range, x.Range, l.Layout)
	}
	for i, file := range c.Content.Files {
		if file.Name == "" || strings.ContainsAny(file.Name, "/\x00") || file.Name[0] == '.' {
			return fmt.Errorf("log %s: segment %s: %q is no name of a segment's file", l.ID,
				c.Content.Range, file.Name)
		}
		f := File{Path: path.Join(dir, file.Name), Digest: file.FileDigest, ModTime: file.Stat.ModTime,
			Key:     c.Object(l.ID, file.Name),
			Batches: i == 0 && batches, Format: format, Range: c.Content.Range}
		if !whole {
			if i > 0 {
				break // its indexes are those of the whole
			}
			f.Cut = &x.Range
			f.Path = path.Join(dir, fmt.Sprintf("%020d.log", x.Base))
		}
		p.Files = append(p.Files, f)
	}
	return nil
}

// partition makes what a Kafka partition says of itself.
func (p *Plan) partition(dir string, l Source, pieces []piece) {
	var epochs []string
	last := tier.NoLeaderEpoch
	for _, x := range pieces {
		lineage := x.copy.Content.Lineage
		for i, e := range lineage {
			over := i+1 < len(lineage) && lineage[i+1].Start <= x.Base
			if e.Epoch > last && e.Start < x.Next && !over {
				epochs = append(epochs, fmt.Sprintf("%d %d", e.Epoch, max(e.Start, x.Base)))
				last = e.Epoch
			}
		}
	}
	p.Texts = append(p.Texts, Text{path.Join(dir, nameEpochs), checkpoint(epochs)})
	if l.Incarnation != "" {
		p.Texts = append(p.Texts, Text{path.Join(dir, nameMetadata),
			"version: 0\ntopic_id: " + l.Incarnation})
	}
}

// checkpoint is a broker's checkpoint file: version, number of entries, entries.
func checkpoint(lines []string) string {
	return fmt.Sprintf("0\n%d\n%s", len(lines), strings.Join(append(lines, ""), "\n"))
}
