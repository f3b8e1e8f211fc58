package logdir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
	"syscall"

	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// Names of what a Fluss tablet server keeps beside its buckets' segments.
const (
	fileTabletHighWatermark = "high-watermark-checkpoint"
	// fileDisk is written by the servers that lock their directory and write down recovery points
	// while they run; those up to 0.9 do neither.
	fileDisk = "disk.properties"
	// fileCleanShutdown is there while the server that wrote it is down.
	fileCleanShutdown = ".fluss_cleanshutdown"

	extWriterSnapshot = ".writer_snapshot"
	bucketMark        = "log-" // before the number of a bucket
	changesMark       = "kv-"  // likewise, of the table that a bucket is the changelog of
)

// fluss is the layout of a tablet server's data directory.
type fluss struct{ rolled }

func newFluss() *fluss {
	return &fluss{rolled{log: "bucket", name: flussProgram,
		beside: []string{extIndex, extTimeIndex, extWriterSnapshot}}}
}

// bucketOf reads the path of a bucket's directory, below the source's.
func bucketOf(dir string) (b tier.FlussBucket, ids tier.FlussIDs, ok bool) {
	steps := strings.Split(dir, "/")
	ids.Partition = -1
	if len(steps) == 4 {
		b.Partition, ids.Partition, ok = tier.FlussNamed(steps[2], "-p")
		if !ok || b.Partition == "" {
			return b, ids, false
		}
	} else if len(steps) != 3 {
		return b, ids, false
	}
	b.Database = steps[0]
	if b.Table, ids.Table, ok = tier.FlussNamed(steps[1], "-"); !ok {
		return b, ids, false
	}
	before, number, ok := tier.FlussNamed(steps[len(steps)-1], bucketMark)
	b.Bucket = int32(number)
	return b, ids, ok && before == "" && number <= math.MaxInt32 && b.Table != "" &&
		!internal(b.Database) && !internal(b.Table)
}

// internal reports whether a name is one that Fluss keeps for itself, or of no database or table.
func internal(name string) bool {
	return strings.HasPrefix(name, "__") || strings.HasPrefix(name, ".")
}

// shows implements layout.
func (*fluss) shows(i vfs.Info) bool {
	return i.Name == fileTabletHighWatermark || i.Name == fileDisk
}

// wants implements layout.
func (*fluss) wants() string {
	return fileTabletHighWatermark + " nor " + fileDisk + ": want a data directory of a Fluss " +
		"tablet server"
}

// places implements layout. The ids of table and partition are not known: there is one directory
// for each, and more than one while a dropped one has not been removed yet.
func (*fluss) places(root vfs.Dir, id tier.LogID) ([]string, error) {
	b, ok := tier.FlussBucketOf(id)
	if !ok || internal(b.Database) || internal(b.Table) {
		return nil, nil
	}
	tables, err := numbered(root, b.Database, b.Table, "-")
	if err != nil {
		return nil, err
	}
	var places []string
	for _, table := range tables {
		if b.Partition == "" {
			places = append(places, b.Dir(tier.FlussIDs{Table: table, Partition: -1}))
			continue
		}
		dir := path.Join(b.Database, fmt.Sprintf("%s-%d", b.Table, table))
		partitions, err := numbered(root, dir, b.Partition, "-p")
		if err != nil {
			return nil, err
		}
		for _, partition := range partitions {
			places = append(places, b.Dir(tier.FlussIDs{Table: table, Partition: partition}))
		}
	}
	return places, nil
}

// numbered lists the numbers behind the mark of the names in dir that begin with name; none if
// there is no such directory.
func numbered(root vfs.Dir, dir, name, mark string) ([]int64, error) {
	names, err := root.Names(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var numbers []int64
	for _, n := range names {
		if before, number, ok := tier.FlussNamed(n, mark); ok && before == name {
			numbers = append(numbers, number)
		}
	}
	return numbers, nil
}

// inspect implements layout.
func (*fluss) inspect(root vfs.Dir, dir string, _ []vfs.Info, l *listing) *partition {
	_, ids, _ := bucketOf(dir)
	return &partition{format: kbatch.Fluss, incarnation: ids.Incarnation(),
		changelog: len(l.segments) > 0 && changelog(root, dir, l.segments[0].name)}
}

// changelog reports whether a table with a primary key is recovered from the bucket, or may be. The
// leader of one keeps the table beside the bucket; on a follower only the batches tell.
func changelog(root vfs.Dir, dir, records string) bool {
	number := strings.TrimPrefix(path.Base(dir), bucketMark)
	_, err := root.Stat(path.Join(path.Dir(dir), changesMark+number))
	if !errors.Is(err, fs.ErrNotExist) {
		return true
	}
	f, err := root.Open(path.Join(dir, records))
	if err != nil {
		return true
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return true
	}
	b, err := kbatch.Fluss.Next(f, 0, info.Size)
	if err == io.EOF {
		return false // nothing was ever written; what is will be looked at when it is rolled
	}
	return err != nil || !b.AppendOnly
}

// judge implements layout.
func (*fluss) judge(f *folder, at judging) tier.Scan {
	scan := tier.Scan{Incarnation: f.partition.incarnation, HasHighWatermark: true,
		Changelog: f.partition.changelog,
		Whole:     f.whole && at.tablet.whole, Problems: f.problems}
	b, ids, _ := bucketOf(f.dir)
	key := bucketKey{ids, b.Bucket}
	// What is not known is taken for 0: nothing is known to be below it.
	scan.HighWatermark = at.tablet.highWatermark[key]
	recoveryPoint := at.tablet.recoveryPoint[key]
	if !at.tablet.syncs {
		recoveryPoint = math.MaxInt64
	}
	f.giveEnds(&scan, at, recoveryPoint)
	return scan
}

// bucketKey is how a tablet server's checkpoints name a bucket.
type bucketKey struct {
	ids    tier.FlussIDs
	bucket int32
}

// tabletReached is what a tablet server says of all its buckets. A nil map is one that could not be
// read: then nothing is known.
type tabletReached struct {
	highWatermark, recoveryPoint map[bucketKey]tier.Offset
	// syncs is set where the server writes recovery points while it runs, so that they count. One
	// that does so at its end alone would have nothing closed before.
	syncs bool
	noted
}

// readTablet reads the checkpoints in a tablet server's data directory.
func readTablet(root vfs.Dir) tabletReached {
	t := tabletReached{noted: noted{program: flussProgram, whole: true}}
	t.highWatermark = readCheckpoint(&t.noted, root, fileTabletHighWatermark, neededToClose,
		parseBuckets)
	_, err := root.Stat(fileDisk)
	if t.syncs = !errors.Is(err, fs.ErrNotExist); t.syncs {
		t.recoveryPoint = readCheckpoint(&t.noted, root, fileRecoveryPoint, neededToClose,
			parseBuckets)
	}
	return t
}

// parseBuckets reads a checkpoint of "table [partition] bucket offset" lines, of which the first
// are ids. A negative offset is none. Source: OffsetCheckpointFile of Apache Fluss.
func parseBuckets(name, text string) (map[bucketKey]tier.Offset, error) {
	offsets := map[bucketKey]tier.Offset{}
	err := checkpointLines(name, text, 3, 4, func(words []string) error {
		last := len(words) - 1
		ids, ok := tier.ParseFlussIDs(strings.Join(words[:last-1], "/"))
		bucket, errBucket := strconv.ParseUint(words[last-1], 10, 31)
		offset, errOffset := strconv.ParseInt(words[last], 10, 64)
		if !ok || errBucket != nil || errOffset != nil {
			return fmt.Errorf("want table id, partition id if it has one, bucket and offset, "+
				"got %.60q", strings.Join(words, " "))
		}
		key := bucketKey{ids, int32(bucket)}
		if _, twice := offsets[key]; twice {
			return fmt.Errorf("the bucket %d of %s stands there twice", bucket, ids.Incarnation())
		}
		if offset >= 0 {
			offsets[key] = tier.Offset(offset)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return offsets, nil
}

// branch is what a source remembers of a directory on the way to buckets.
type branch struct {
	stat    tier.Stat
	at      tier.Time // when it was listed
	settled bool      // stat tells whether the listing still holds
	subdirs []string
}

// visitBuckets visits the buckets in a tablet server's data directory.
func (v *visitor) visitBuckets(ctx context.Context, infos []vfs.Info) error {
	for _, i := range infos {
		if i.Mode.IsDir() && !internal(i.Name) {
			if err := v.visitBranch(ctx, i.Name, i.Stat); err != nil {
				return err
			}
		}
	}
	return nil
}

// visitBranch visits a database, a table or a partition, and what is below it.
func (v *visitor) visitBranch(ctx context.Context, dir string, stat tier.Stat) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	level := strings.Count(dir, "/") // 0 a database, 1 a table, 2 a partition
	for _, name := range v.branch(dir, stat) {
		sub := path.Join(dir, name)
		b, _, bucket := bucketOf(sub)
		if !bucket && !onTheWay(name, level) {
			continue
		}
		info, err := v.root.Stat(sub)
		switch {
		case errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode.IsDir():
			continue
		case err != nil:
			v.unread(sub, tier.LogID{}, err)
			continue
		case !bucket:
			if err := v.visitBranch(ctx, sub, info.Stat); err != nil {
				return err
			}
			continue
		}
		id := b.LogID()
		if back, ok := tier.FlussBucketOf(id); !ok || back != b || id.Validate() != nil {
			v.problem(sub, tier.CodeBadName, fmt.Errorf("%s: no names of a Fluss table", sub))
			continue
		}
		v.folder(sub, id, info.Stat)
	}
	return nil
}

// onTheWay reports whether a directory below one of the level may lead to buckets: that of a table
// in a database, that of a partition in a table.
func onTheWay(name string, level int) bool {
	mark := "-"
	if level == 1 {
		mark = "-p"
	}
	before, _, ok := tier.FlussNamed(name, mark)
	return level < 2 && ok && before != "" && !(level == 0 && internal(name))
}

// branch names the directories in dir, unless what is remembered of it still holds; stat is that of
// dir from before.
func (v *visitor) branch(dir string, stat tier.Stat) []string {
	old := v.source.branches[dir]
	if old != nil && old.settled && old.stat == stat && v.now >= old.at &&
		v.now-old.at < listingAgeMax {
		v.branches[dir] = old
		return old.subdirs
	}
	infos, err := v.root.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		v.unread(dir, tier.LogID{}, err)
		return nil
	}
	b := &branch{stat: stat, at: v.now, settled: stat.ModTime <= v.now-mtimeGranularity,
		subdirs: subdirs(infos)}
	v.branches[dir] = b
	return b.subdirs
}
