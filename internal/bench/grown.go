package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/objstore/providers/filesystem"
	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// grown is what a daemon has after years: a ledger with many copies of many logs, written as a
// rebuild writes it, and directories in which all but the active segment is gone. Its bucket has
// the manifests, as copying leaves them, and of each log the objects of the oldest copies.
type grown struct {
	dir      string
	logs     int
	perTable int // logs of each table
	each     int // copies of each log
	objects  int // of each log, of the oldest copies; with manifests only where it is not 0
	born     tier.Time
	ledger   string
	store    *objstore.Store
	bucket   *filesystem.Bucket
}

// grownSpan is how many offsets a segment has, and grownBytes how many bytes.
const (
	grownSpan  = 1000
	grownBytes = 64
)

func (g *grown) path(name string) string { return filepath.Join(g.dir, name) }

func (g *grown) log(n int) tier.LogID {
	return tier.LogID{Table: fmt.Sprintf("table-%03d", n/g.perTable), Name: fmt.Sprint(n % g.perTable)}
}

// make writes all of it. Nothing of it is synced: it is there to be measured, not to be kept.
func (g *grown) make(ctx context.Context) (err error) {
	for _, name := range []string{"source", "bucket", "data"} {
		if err := os.MkdirAll(g.path(name), 0o777); err != nil {
			return err
		}
	}
	g.born = tier.TimeOf(time.Now().Add(-time.Hour))
	m, err := offsets.OpenBolt(g.path("data/ledger.db"), offsets.BoltOptions{
		NewID: func() [16]byte { return [16]byte{1} }})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	g.ledger = fmt.Sprintf("%032x", [16]byte{1})
	disk, err := vfs.OpenOS(g.path("bucket"))
	if err != nil {
		return err
	}
	g.bucket = filesystem.New(unsynced{disk}, "bucket", "bench")
	defer func() { err = errors.Join(err, g.bucket.Close()) }()
	if g.store, err = objstore.New(g.bucket, g.ledger); err != nil {
		return err
	}
	b, err := offsets.NewBuilder(m, 0, g.born)
	if err != nil {
		return err
	}
	return g.fill(ctx, b)
}

// fill writes ledger, directories and bucket, the bucket on as many goroutines as help.
func (g *grown) fill(ctx context.Context, b *offsets.Builder) error {
	helpers, ctx := errgroup.WithContext(ctx)
	helpers.SetLimit(4)
	for i := range g.logs {
		id := g.log(i)
		if i%g.perTable == 0 {
			if err := b.Table(tier.TableState{Table: id.Table, State: tier.Enabled, Epoch: 1,
				Entry: tier.GovernedByDefaults}); err != nil {
				return err
			}
		}
		facts := g.facts(i)
		end := tier.Offset(g.each * grownSpan)
		if _, err := b.Log(tier.LogState{Log: id, Source: "source", Layout: tier.LayoutPlain, Epoch: 1,
			Next: tier.Position(g.each), Checkpoints: checkpointsOf(g.each)}, facts); err != nil {
			return err
		}
		dir := filepath.Join(g.path("source"), id.Table, id.Name)
		err := errors.Join(os.MkdirAll(dir, 0o777),
			os.WriteFile(filepath.Join(dir, segment(int64(end), ".log")), nil, 0o666))
		if err != nil {
			return err
		}
		if g.objects == 0 {
			continue
		}
		helpers.Go(func() error { return g.put(ctx, id, facts) })
	}
	return helpers.Wait()
}

// checkpointsOf are the leading blocks of each level that a log of so many facts has.
func checkpointsOf(facts int) (out []uint64) {
	for level := uint8(1); level <= tier.CheckpointLevelMax; level++ {
		out = append(out, uint64(facts)/tier.CheckpointSpan(level))
	}
	return out
}

// facts are those of the copies of a log.
func (g *grown) facts(log int) []tier.Fact {
	out := make([]tier.Fact, g.each)
	for i := range out {
		n := log*g.each + i
		r := tier.Range{Base: tier.Offset(i * grownSpan), Next: tier.Offset((i + 1) * grownSpan)}
		c := &tier.Copy{Position: tier.Position(i), Epoch: 1, ModTime: g.born,
			Verified: tier.VerifySample, FinishedAt: g.born, Content: tier.Content{Range: r,
				LastNext: r.Next}}
		binary.BigEndian.PutUint64(c.Attempt[:], uint64(g.born)/1e6<<16)
		binary.BigEndian.PutUint64(c.Attempt[8:], uint64(n))
		f := tier.SourceFile{FileDigest: tier.FileDigest{Name: segment(int64(r.Base), ".log"),
			Size: grownBytes, CRC32C: uint32(n)},
			Stat: tier.Stat{Inode: 1<<24 + uint64(n), Size: grownBytes, ModTime: g.born}}
		binary.BigEndian.PutUint64(f.SHA256[:], uint64(n))
		c.Content.Files = []tier.SourceFile{f}
		out[i] = tier.Fact{Position: c.Position, Epoch: 1, At: g.born, Copied: r.Next, Add: c}
	}
	return out
}

// put writes the manifest of a log, and the oldest objects. Of entries that a checkpoint stands for
// there is none: nobody who is measured reads them.
func (g *grown) put(ctx context.Context, id tier.LogID, facts []tier.Fact) error {
	checkpointed := len(facts) / tier.CheckpointRadix * tier.CheckpointRadix
	for _, f := range facts[checkpointed:] {
		if err := g.store.PutFact(ctx, id, f.Add.Attempt, f); err != nil {
			return err
		}
	}
	for i, blocks := range checkpointsOf(len(facts)) {
		span := tier.CheckpointSpan(uint8(i + 1))
		for block := range blocks {
			if err := g.store.PutCheckpoint(ctx, id, uint8(i+1), block,
				facts[block*span:(block+1)*span]); err != nil {
				return err
			}
		}
	}
	for _, f := range facts[:g.objects] {
		key := tier.ObjectKey{Log: id, Epoch: 1, Base: f.Add.Content.Range.Base,
			Attempt: f.Add.Attempt, Name: f.Add.Content.Files[0].Name}
		if err := g.store.PutFile(ctx, key, zeros{}, grownBytes); err != nil {
			return err
		}
	}
	return nil
}

// zeros is a file of zeros without an end.
type zeros struct{}

// ReadAt implements io.ReaderAt.
func (zeros) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}

// unsynced is a directory in which nothing is made durable.
type unsynced struct{ vfs.Dir }

// Sync implements vfs.Dir.
func (unsynced) Sync(string) error { return nil }

// Create implements vfs.Dir.
func (d unsynced) Create(name string) (vfs.File, error) {
	f, err := d.Dir.Create(name)
	return unsyncedFile{f}, err
}

type unsyncedFile struct{ vfs.File }

// Sync implements vfs.File.
func (unsyncedFile) Sync() error { return nil }

// DropCache implements vfs.File.
func (unsyncedFile) DropCache(int64, int64) {}
