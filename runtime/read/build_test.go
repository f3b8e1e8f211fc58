package read

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

const (
	t0    = tier.Time(2_000_000_000_000_000_000)
	grace = tier.Time(600_000_000_000)
)

// fixtures are log directories of real brokers.
const fixtures = "../../testdata/kafka"

// partition is what expected.json says of one; see testdata/kafka/README.md.
type partition struct {
	Dir             string
	CleanupPolicy   string      `json:"cleanup_policy"`
	LogStart        tier.Offset `json:"log_start"`
	HighWatermark   tier.Offset `json:"high_watermark"`
	LogEnd          tier.Offset `json:"log_end"`
	ReadUncommitted struct {
		Records int64
		SHA256  tier.SHA256
	} `json:"read_uncommitted"`
	TimestampLookups []struct {
		AtOrAfter int64 `json:"at_or_after"`
		Offset    tier.Offset
		Timestamp int64
	} `json:"timestamp_lookups"`
	LeaderEpochs []struct {
		Epoch tier.LeaderEpoch
		Start tier.Offset `json:"start_offset"`
	} `json:"leader_epochs"`
	Aborted []struct {
		Segment     tier.Offset
		ProducerID  int64       `json:"producer_id"`
		FirstOffset tier.Offset `json:"first_offset"`
		LastOffset  tier.Offset `json:"last_offset"`
		LastStable  tier.Offset `json:"last_stable_offset"`
	}
	Segments []struct{ Base, Next tier.Offset }
}

func (p *partition) id() tier.LogID {
	i := strings.LastIndexByte(p.Dir, '-')
	return tier.LogID{Table: p.Dir[:i], Name: p.Dir[i+1:]}
}

func expected(t *testing.T, set string) []partition {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(fixtures, set, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var f struct{ Partitions []partition }
	if err := json.Unmarshal(data, &f); err != nil || len(f.Partitions) == 0 {
		t.Fatalf("%s: %v, %d partitions", set, err, len(f.Partitions))
	}
	return f.Partitions
}

// world is a source on disk, a ledger and a store in memory, and a reader over them.
type world struct {
	t        testing.TB
	now      tier.Time
	dir      string
	src      *logdir.Source
	engine   *engine.Engine
	ledger   *offsets.Ledger
	mem      *fault.Mem
	bucket   *fault.Bucket
	store    *objstore.Store
	cache    *Cache
	reader   *Reader
	copies   int
	suspects []tier.Position
}

func newWorld(t testing.TB, cfg logdir.Config, dir string) *world {
	t.Helper()
	w := &world{t: t, now: t0, dir: dir, engine: engine.New()}
	cfg.Root = func() (vfs.Dir, error) { return vfs.OpenOS(dir) }
	var err error
	w.src, err = logdir.Open(cfg)
	w.must(err)
	w.ledger, err = offsets.Open(offsets.NewMemory([16]byte{1}))
	w.must(err)
	w.mem = fault.NewMem(w.now.Std)
	w.bucket = fault.Wrap(w.mem, nil)
	w.store, err = objstore.New(w.bucket, w.ledger.ID())
	w.must(err)
	w.useCache(nil)
	w.scan()
	return w
}

// useCache makes a reader with a new cache.
func (w *world) useCache(dir vfs.Dir) {
	w.t.Helper()
	var err error
	w.cache, err = NewCache(CacheConfig{Store: w.store, Dir: dir, MemoryBytes: 64 << 20,
		DiskBytes: 64 << 20, Now: func() tier.Time { return w.now }})
	w.must(err)
	w.reader = New(Config{Ledger: w.ledger, Local: w, Cache: w.cache,
		Now: func() tier.Time { return w.now }, Grace: func() tier.Time { return grace },
		Suspect: func(_ tier.LogID, pos tier.Position, _ error) {
			w.suspects = append(w.suspects, pos)
		}})
}

// kafkaWorld is a world over a copy of a set of real directories: of the named logs, or of all.
func kafkaWorld(t *testing.T, set string, only ...tier.LogID) *world {
	t.Helper()
	dir := t.TempDir()
	from := filepath.Join(fixtures, set)
	if len(only) == 0 {
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range only {
		name := id.Table + "-" + id.Name
		err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(from, name)))
		if err != nil {
			t.Fatal(err)
		}
	}
	roots, err := filepath.Glob(filepath.Join(from, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range roots {
		data, err := os.ReadFile(at)
		if err != nil || len(only) == 0 {
			continue // a directory, or all of them
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(at)), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return newWorld(t, logdir.Config{Name: "broker", Layout: tier.LayoutKafka,
		LocalDelete: tier.LocalDeleteNever,
		Compacted:   func(string) tier.Truth { return tier.No }}, dir)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) scan() {
	w.t.Helper()
	res, err := w.src.Scan(w.t.Context(), w.now)
	w.must(err)
	for _, s := range res.Scans {
		w.engine.Step(w.now, engine.Scanned{Scan: s})
	}
	w.engine.Step(w.now, engine.SourceScanned{Source: "broker", Logs: res.Logs, Trouble: res.Trouble})
}

// Logs implements Local.
func (w *world) Logs() []tier.LogID { return w.engine.Logs() }

// Log implements Local.
func (w *world) Log(id tier.LogID) (tier.LocalLog, bool) { return w.engine.Readable(id) }

// From implements Local.
func (w *world) From(id tier.LogID, o tier.Offset) (tier.LocalSegment, bool) {
	return w.engine.LocalFrom(id, o)
}

// Open implements Local.
func (w *world) Open(ctx context.Context, id tier.LogID, name string) (File, error) {
	return w.src.Open(ctx, id, name)
}

// LogFile implements Local.
func (w *world) LogFile(ctx context.Context, id tier.LogID, base tier.Offset) (string, error) {
	return w.src.LogFile(ctx, id, base)
}

// CountsBytes implements Local.
func (w *world) CountsBytes(tier.LogID) bool { return w.src.CountsBytes() }

func (w *world) append(r tier.Record) tier.Position {
	w.t.Helper()
	pos, err := w.ledger.Append(w.t.Context(), r)
	w.must(err)
	return pos
}

// look returns the log's segments as they are on disk now.
func (w *world) look(id tier.LogID) tier.Scan {
	w.t.Helper()
	scan, whole, err := w.src.Look(w.t.Context(), id)
	w.must(err)
	if !whole {
		w.t.Fatalf("%s: %+v", id, scan.Problems)
	}
	return scan
}

// archive copies every closed segment that ends above the copied offset, as a daemon does.
func (w *world) archive(id tier.LogID) []tier.Position {
	w.t.Helper()
	scan := w.look(id)
	if _, ok := w.ledger.Log(id); !ok {
		w.append(tier.LogOpened{Log: id, Source: scan.Source, Layout: scan.Layout,
			Incarnation: scan.Incarnation, Epoch: 1, Start: scan.Segments[0].Base, State: tier.Enabled,
			At: w.now})
	}
	state, _ := w.ledger.Log(id)
	var out []tier.Position
	for _, s := range scan.Segments {
		if s.Closed() && s.Next > state.Copied {
			out = append(out, w.copySegment(id, s.Range))
		}
	}
	return out
}

// copySegment copies one segment.
func (w *world) copySegment(id tier.LogID, r tier.Range) tier.Position {
	w.t.Helper()
	content, err := w.src.Read(w.t.Context(), id, r)
	w.must(err)
	if len(content.Problems) > 0 {
		w.t.Fatalf("%s %s: %+v", id, r, content.Problems)
	}
	w.copies++
	epoch := max(w.ledger.Table(id.Table).Epoch, 1)
	a := tier.Attempt{Epoch: epoch, Range: r, StartedAt: w.now}
	binary.BigEndian.PutUint64(a.ID[:], uint64(w.copies))
	for _, f := range content.Files {
		a.Names = append(a.Names, f.Name)
	}
	a.Position = w.append(tier.CopyStarted{Log: id, Attempt: a})
	for _, f := range content.Files {
		file, err := w.src.Open(w.t.Context(), id, f.Name)
		w.must(err)
		w.must(w.store.PutFile(w.t.Context(), tier.ObjectKey{Log: id, Epoch: epoch, Base: r.Base,
			Attempt: a.ID, Name: f.Name}, file, f.Size))
		w.must(file.Close())
	}
	w.append(tier.CopyFinished{Log: id, Copy: tier.Copy{Attempt: a.ID, Position: a.Position,
		Epoch: epoch, Content: content, ModTime: w.now, Verified: tier.VerifyFull, FinishedAt: w.now}})
	return a.Position
}

// flussWorld is a world over a copy of a real tablet server's directory.
func flussWorld(t *testing.T, set string) *world {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("../../testdata/fluss", set))); err != nil {
		t.Fatal(err)
	}
	return newWorld(t, logdir.Config{Name: "broker", Layout: tier.LayoutFluss,
		LocalDelete: tier.LocalDeleteNever}, dir)
}

// partitionDir is the directory of a Kafka or Fluss log.
func (w *world) partitionDir(id tier.LogID) string {
	scan, _, err := w.src.Look(w.t.Context(), id)
	w.must(err)
	return filepath.Join(w.dir, scan.Dir)
}

// drop removes the files of the n oldest local segments.
func (w *world) drop(id tier.LogID, n int) {
	w.t.Helper()
	logs, err := filepath.Glob(filepath.Join(w.partitionDir(id), "*.log"))
	w.must(err)
	slices.Sort(logs)
	for _, log := range logs[:n] {
		files, err := filepath.Glob(strings.TrimSuffix(log, ".log") + ".*")
		w.must(err)
		for _, f := range files {
			w.must(os.Remove(f))
		}
	}
}

// raw is the content of all .log files of a Kafka or Fluss log, in order.
func (w *world) raw(id tier.LogID) []byte {
	w.t.Helper()
	logs, err := filepath.Glob(filepath.Join(w.partitionDir(id), "*.log"))
	w.must(err)
	slices.Sort(logs)
	var out []byte
	for _, log := range logs {
		data, err := os.ReadFile(log)
		w.must(err)
		out = append(out, data...)
	}
	return out
}

// readAll reads from the offset to the end.
func (w *world) readAll(id tier.LogID, from tier.Offset, maxBytes int64) []byte {
	w.t.Helper()
	var out []byte
	for range 1 << 20 {
		c, err := w.reader.Read(w.t.Context(), id, from, maxBytes)
		w.must(err)
		if len(c.Batches) == 0 && c.Next == from {
			return out
		}
		if c.Next <= from {
			w.t.Fatalf("%s: from %d to %d", id, from, c.Next)
		}
		out, from = append(out, c.Batches...), c.Next
	}
	w.t.Fatal("it does not end")
	return nil
}

// digest counts and hashes the records of p from an offset on, as expected.json does.
func digest(t *testing.T, p []byte, from tier.Offset) (n int64, sum tier.SHA256) {
	t.Helper()
	h := sha256.New()
	err := decode(p, func(r *Record) error {
		if r.Control || r.Offset < from {
			return nil
		}
		n++
		hashRecord(h, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Sum(sum[:0])
	return n, sum
}

func hashRecord(h hash.Hash, r *Record) {
	put := func(p []byte) {
		if p == nil {
			_ = binary.Write(h, binary.BigEndian, int32(-1))
			return
		}
		_ = binary.Write(h, binary.BigEndian, int32(len(p)))
		h.Write(p)
	}
	_ = binary.Write(h, binary.BigEndian, []int64{int64(r.Offset), r.Timestamp})
	put(r.Key)
	put(r.Value)
	_ = binary.Write(h, binary.BigEndian, int32(len(r.Headers)))
	for _, x := range r.Headers {
		put([]byte(x.Key))
		put(x.Value)
	}
}

// wantRange wants the error to be an OutOfRange with the bounds.
func wantRange(t *testing.T, err error, start, end tier.Offset) {
	t.Helper()
	var out *OutOfRange
	if !errors.As(err, &out) || out.Start != start || out.End != end {
		t.Errorf("%v, want out of range, with [%d, %d)", err, start, end)
	}
}

func name(base tier.Offset, ext string) string { return fmt.Sprintf("%020d%s", base, ext) }
