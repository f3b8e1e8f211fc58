package logdir_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/logdir/kbatch/kbatchtest"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// now is when tests scan; files are an hour old then, unless a test says otherwise.
const (
	now    = tier.Time(1_700_000_000 * 1e9)
	second = tier.Time(time.Second)
	minute = 60 * second
	hour   = 60 * minute
)

// world is a directory that a test fills and a source looks at.
type world struct {
	t       *testing.T
	dir     vfs.Dir
	root    func() (vfs.Dir, error)
	symlink func(target, name string) error
	chmod   func(name string, perm fs.FileMode) error
	touch   func(name string, mtime tier.Time) // sets the mtime of a file or directory
	clock   *tier.Time                         // of the file system
	mem     *vfs.Mem                           // nil in the real file system
}

// newMem returns a world in memory whose files are an hour old.
func newMem(t *testing.T) *world {
	clock := now - hour
	mem := vfs.NewMem(func() tier.Time { return clock })
	w := &world{t: t, dir: mem, mem: mem, clock: &clock,
		symlink: mem.Symlink, chmod: mem.Chmod}
	w.root = func() (vfs.Dir, error) { return w.mem.Sub(".") }
	return w
}

// newOS returns a world in a temporary directory.
func newOS(t *testing.T) *world {
	dir := t.TempDir()
	root, err := vfs.OpenOS(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	})
	old := now - hour
	return &world{t: t, dir: root, root: osRoot(dir), clock: &old,
		symlink: func(target, name string) error {
			return os.Symlink(target, filepath.Join(dir, name))
		},
		chmod: func(name string, perm fs.FileMode) error {
			return os.Chmod(filepath.Join(dir, name), perm)
		},
		touch: func(name string, mtime tier.Time) {
			if err := os.Chtimes(filepath.Join(dir, name), mtime.Std(), mtime.Std()); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// everywhere runs a test in memory and in the real file system.
func everywhere(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("mem", func(t *testing.T) { t.Parallel(); test(t, newMem(t)) })
	t.Run("os", func(t *testing.T) { t.Parallel(); test(t, newOS(t)) })
}

// put writes a file, and the directories that it needs. A file that exists is written anew in
// place.
func (w *world) put(name string, data []byte) {
	w.t.Helper()
	w.mkdirs(path.Dir(name))
	f, err := w.dir.Append(name)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := f.Truncate(0); err != nil {
		w.t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		w.t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close(), w.dir.Sync(path.Dir(name))); err != nil {
		w.t.Fatal(err)
	}
	w.age(name)
}

// add appends to a file.
func (w *world) add(name string, data []byte) {
	w.t.Helper()
	f, err := w.dir.Append(name)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		w.t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		w.t.Fatal(err)
	}
	w.age(name)
}

func (w *world) mkdirs(dir string) {
	w.t.Helper()
	if dir == "." {
		return
	}
	w.mkdirs(path.Dir(dir))
	if err := w.dir.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		w.t.Fatal(err)
	}
	if err := w.dir.Sync(path.Dir(dir)); err != nil {
		w.t.Fatal(err)
	}
}

// age gives a name and the directories above it the world's time, in the real file system.
func (w *world) age(name string) {
	if w.touch == nil {
		return
	}
	for {
		w.touch(name, *w.clock)
		if name == "." {
			return
		}
		name = path.Dir(name)
	}
}

func (w *world) remove(name string) {
	w.t.Helper()
	if err := w.dir.Remove(name); err != nil {
		w.t.Fatal(err)
	}
	w.age(path.Dir(name))
}

// names lists a directory; nil if it is not there.
func (w *world) names(dir string) []string {
	w.t.Helper()
	infos, err := w.dir.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
	var names []string
	for _, i := range infos {
		names = append(names, i.Name)
	}
	return names
}

func (w *world) stat(name string) tier.Stat {
	w.t.Helper()
	info, err := w.dir.Stat(name)
	if err != nil {
		w.t.Fatal(err)
	}
	return info.Stat
}

// open opens a source; change adjusts its configuration.
func (w *world) open(layout tier.Layout, change ...func(*logdir.Config)) *logdir.Source {
	w.t.Helper()
	cfg := logdir.Config{Name: "wal", Layout: layout, Root: w.root,
		LocalDelete: tier.LocalDeleteUnlink, Lock: &fakeLock{free: true}}
	for _, c := range change {
		c(&cfg)
	}
	s, err := logdir.Open(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// scan scans at the given time and wants no trouble.
func scan(t *testing.T, s *logdir.Source, at tier.Time) logdir.Result {
	t.Helper()
	res, err := s.Scan(context.Background(), at)
	if err != nil || res.Trouble != nil {
		t.Fatalf("scan: %v, %+v", err, res.Trouble)
	}
	return res
}

// look looks at one log.
func look(t *testing.T, s *logdir.Source, id string) tier.Scan {
	t.Helper()
	scan, whole, err := s.Look(context.Background(), logID(t, id))
	if err != nil {
		t.Fatal(err)
	}
	if whole != scan.Whole {
		t.Errorf("whole is %v, and %v in the scan", whole, scan.Whole)
	}
	return scan
}

func logID(t *testing.T, s string) tier.LogID {
	t.Helper()
	id, err := tier.ParseLogID(s)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// shape says the segments of a scan in short: "0-100 100-200 200-200?roll".
func shape(scan tier.Scan) string {
	var out []string
	for _, s := range scan.Segments {
		word := fmt.Sprintf("%d-%d", s.Base, s.Next)
		if !s.Closed() {
			word += "?" + map[tier.WaitReason]string{tier.WaitsForRoll: "roll",
				tier.WaitsForHighWatermark: "hw", tier.WaitsForRecoveryPoint: "rp"}[s.Waits]
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

// codes says where problems are and of what kind: "a/1.log:bad-name".
func codes(problems []tier.Problem) string {
	var out []string
	for _, p := range problems {
		out = append(out, fmt.Sprintf("%s:%s", p.Path, p.Code))
	}
	return strings.Join(out, " ")
}

// ids says ids in short.
func ids(logs []tier.LogID) string {
	var out []string
	for _, l := range logs {
		out = append(out, l.String())
	}
	return strings.Join(out, " ")
}

// fakeLock is the lock of a broker's directory, without a broker.
type fakeLock struct {
	free bool // nobody else holds it
	held bool
	err  error
}

func (l *fakeLock) TryLock() (bool, error) {
	l.held = l.free && l.err == nil
	return l.held, l.err
}
func (l *fakeLock) Held() bool    { return l.held }
func (l *fakeLock) Unlock() error { l.held = false; return nil }

// broker fills a world like the log directory of a Kafka broker.
type broker struct {
	*world
	offsets map[string]map[string]tier.Offset // by checkpoint, by "topic partition"
}

func newBroker(w *world) *broker {
	b := &broker{world: w, offsets: map[string]map[string]tier.Offset{}}
	w.put("meta.properties", []byte("#\nbroker.id=1\nversion=0\n"))
	for _, name := range []string{"replication-offset-checkpoint",
		"recovery-point-offset-checkpoint", "log-start-offset-checkpoint",
		"cleaner-offset-checkpoint"} {
		b.offsets[name] = map[string]tier.Offset{}
		b.checkpoint(name, "", 0)
	}
	return b
}

// checkpoint sets one entry of a checkpoint, for "topic partition".
func (b *broker) checkpoint(name, partition string, offset tier.Offset) {
	b.t.Helper()
	if partition != "" {
		b.offsets[name][partition] = offset
	}
	text := fmt.Sprintf("0\n%d\n", len(b.offsets[name]))
	for p, o := range b.offsets[name] {
		text += fmt.Sprintf("%s %d\n", p, o)
	}
	b.put(name, []byte(text))
}

// reached sets high watermark and recovery point of "topic partition".
func (b *broker) reached(partition string, highWatermark, recoveryPoint tier.Offset) {
	b.t.Helper()
	b.checkpoint("replication-offset-checkpoint", partition, highWatermark)
	b.checkpoint("recovery-point-offset-checkpoint", partition, recoveryPoint)
}

// seg writes a segment [base, next) of batches with ten records, and its indexes.
func (b *broker) seg(dir string, base, next tier.Offset) {
	b.t.Helper()
	log, index, timeindex := segment(base, next)
	b.put(file(dir, base, "log"), log)
	b.put(file(dir, base, "index"), index)
	b.put(file(dir, base, "timeindex"), timeindex)
}

// bytes is the size of all files of a segment.
func (b *broker) bytes(dir string, base tier.Offset) (n int64) {
	for _, ext := range []string{"log", "index", "timeindex"} {
		n += b.stat(file(dir, base, ext)).Size
	}
	return n
}

// rest is the mark of a segment's indexes.
func (b *broker) rest(dir string, base tier.Offset) (m tier.Mark) {
	for _, ext := range []string{"index", "timeindex"} {
		name := file(dir, base, ext)
		m ^= tier.MarkOf(path.Base(name), b.stat(name))
	}
	return m
}

// file is the path of a segment's file.
func file(dir string, base tier.Offset, ext string) string {
	return path.Join(dir, fmt.Sprintf("%020d.%s", base, ext))
}

// segment is the log, the offset index and the time index of a segment of batches with ten records,
// written one a second since the Unix epoch, in leader epoch 7. The second batch and every fourth
// one after it is in the indexes.
func segment(base, next tier.Offset) (log, index, timeindex []byte) {
	for o, n := base, 0; o < next; o, n = o+10, n+1 {
		last := min(o+9, next-1)
		millis := int64(o)*1000 + 1
		if n%4 == 1 {
			index = be32(be32(index, int64(last-base)), int64(len(log)))
			timeindex = be32(be64(timeindex, millis), int64(last-base))
		}
		log = kbatchtest.V2(log, kbatchtest.Spec{Base: o, Last: last, Epoch: 7,
			MaxTimestamp: millis, Body: 40})
	}
	return log, index, timeindex
}

func be32(b []byte, n int64) []byte {
	return append(b, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

func be64(b []byte, n int64) []byte { return be32(be32(b, n>>32), n) }

// permit gets a permit for the target from a real gate with policies that allow everything.
func permit(t *testing.T, target gate.Target) gate.Permit {
	t.Helper()
	p, verdict := gate.New(allowAll{}).Ask(context.Background(), &gate.Facts{
		Action: target.Action, Now: now,
		Table: tier.Table{Tiering: true},
		Log:   gate.LogFacts{ID: target.Log, State: tier.Enabled, Copied: target.Range.Next},
		Seg: gate.SegmentFacts{Range: target.Range, File: target.File, Bytes: target.Bytes,
			Rest: target.Rest},
		Safety: gate.SafetyFacts{Closed: tier.Yes, FirstLocal: tier.Yes, EpochCurrent: tier.Yes,
			SourceWhole: tier.Yes, NotPaused: tier.Yes, OwnsSource: tier.Yes,
			Owner: gate.OwnerFacts{Term: target.Term}, DropWay: tier.LocalDeleteUnlink,
			Proof: gate.Proof{Recorded: tier.Yes,
				Identity: tier.Yes, Manifest: tier.Yes, Objects: tier.Yes, Lineage: tier.Yes,
				Sound: tier.Yes}},
	})
	if !verdict.Delete {
		t.Fatalf("no permit for %+v: %+v", target, verdict)
	}
	return p
}

type allowAll struct{}

func (allowAll) Decide(context.Context, *gate.Facts) (gate.Decision, error) {
	return gate.Decision{Delete: true}, nil
}
