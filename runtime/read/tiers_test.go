package read

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

var (
	orders = tier.LogID{Table: "orders-2024", Name: "1"} // segments of 1 MiB
	epochs = tier.LogID{Table: "epochs", Name: "0"}
)

// remoteWorld has all of a log's closed segments in the store alone.
func remoteWorld(t *testing.T, id tier.LogID) *world {
	t.Helper()
	w := kafkaWorld(t, "v4", id)
	w.drop(id, len(w.archive(id)))
	w.scan()
	return w
}

// TestAColdReadTakesTwoRequests counts what a reader that nothing is known of waits for: one index,
// one range of the records. That is so for read_committed too, where nothing was aborted.
func TestAColdReadTakesTwoRequests(t *testing.T) {
	t.Parallel()
	w := remoteWorld(t, orders)
	state, _ := w.ledger.Log(orders)
	for o := tier.Offset(0); o < state.Copied; o += 97 {
		w.useCache(nil)
		var keys []string
		w.bucket.SetHook(func(op fault.Op) fault.Effect {
			keys = append(keys, op.Key)
			return fault.Effect{}
		})
		stable, err := w.reader.LastStable(t.Context(), orders)
		if w.must(err); stable != 5000 {
			t.Fatalf("the last stable offset is %d", stable)
		}
		c, err := w.reader.Read(t.Context(), orders, o, 1<<20)
		w.must(err)
		_, err = w.reader.Aborted(t.Context(), orders, o, c.Next)
		w.must(err)
		if len(c.Batches) == 0 || len(keys) > 2 ||
			len(keys) == 2 && !strings.HasSuffix(keys[0], ".index") ||
			!strings.HasSuffix(keys[len(keys)-1], ".log") {
			t.Fatalf("from %d: %d bytes by the requests %v", o, len(c.Batches), keys)
		}
	}
}

// TestAWarmReadAsksNobody: what was read once is not asked for again, by memory or by disk.
func TestAWarmReadAsksNobody(t *testing.T) {
	t.Parallel()
	w := remoteWorld(t, orders)
	state, _ := w.ledger.Log(orders)
	disk := vfs.NewMem(func() tier.Time { return w.now })
	w.useCache(disk)
	want := w.readAll(orders, 0, 1<<20)
	asked := 0
	w.bucket.SetHook(func(fault.Op) fault.Effect { asked++; return fault.Effect{} })
	for _, again := range []bool{false, true} {
		if again {
			w.useCache(disk) // as after a start
		}
		if got := w.readAll(orders, 0, 1<<20); !bytes.Equal(got, want) || asked > 0 {
			t.Errorf("after a start %v: %d bytes of %d, %d requests", again, len(got), len(want), asked)
		}
	}
	if _, err := w.reader.Read(t.Context(), orders, state.Copied-1, 1); err != nil {
		t.Error(err)
	}
}

// TestACacheFileIsNotTrusted: one that was altered on disk is thrown away, and read anew.
func TestACacheFileIsNotTrusted(t *testing.T) {
	t.Parallel()
	w := remoteWorld(t, orders)
	disk := t.TempDir()
	open := func() vfs.Dir {
		d, err := vfs.OpenOS(disk)
		w.must(err)
		return d
	}
	w.useCache(open())
	want := w.readAll(orders, 0, 1<<20)
	files, err := filepath.Glob(filepath.Join(disk, "*.v2"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v %v", files, err)
	}
	for i, f := range files {
		data, err := os.ReadFile(f)
		w.must(err)
		data[len(data)/(i+1)-1] ^= 1
		w.must(os.WriteFile(f, data, 0o600))
	}
	w.useCache(open())
	if got := w.readAll(orders, 0, 1<<20); !bytes.Equal(got, want) {
		t.Error("other bytes than before")
	}
	if s := w.cache.Stats(); s.DiskHits > 0 || s.DiskErrors == 0 {
		t.Errorf("%+v", s)
	}
}

func TestTheCacheKeepsItsBounds(t *testing.T) {
	t.Parallel()
	w := remoteWorld(t, orders)
	disk := vfs.NewMem(func() tier.Time { return w.now })
	var err error
	w.cache, err = NewCache(CacheConfig{Store: w.store, Dir: disk, MemoryBytes: 1 << 20,
		DiskBytes: 2 << 20, Age: 100, Now: func() tier.Time { return w.now }})
	w.must(err)
	w.reader.c.Cache = w.cache
	w.readAll(orders, 0, 1<<20)
	if s := w.cache.Stats(); s.MemoryBytes > 1<<20 || s.DiskBytes > 2<<20 || s.DiskBytes == 0 {
		t.Errorf("%+v", s)
	}
	w.now += 101
	w.cache.Tend()
	infos, err := disk.List(".")
	if s := w.cache.Stats(); err != nil || s.MemoryBytes+s.DiskBytes != 0 || len(infos) > 0 {
		t.Errorf("after its age: %+v %v %v", s, infos, err)
	}
}

// TestManyReadersShareARequest holds the store until all wait for the same chunk.
func TestManyReadersShareARequest(t *testing.T) {
	t.Parallel()
	w := remoteWorld(t, orders)
	w.useCache(nil)
	var mu sync.Mutex
	asked := map[string]int{}
	hold := make(chan struct{})
	w.bucket.SetHook(func(op fault.Op) fault.Effect {
		mu.Lock()
		asked[op.Key]++
		mu.Unlock()
		<-hold
		return fault.Effect{}
	})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := w.reader.Read(t.Context(), orders, 0, 1); err != nil {
				t.Error(err)
			}
		})
	}
	close(hold)
	wg.Wait()
	for key, n := range asked {
		if n > 1 {
			t.Errorf("%s was asked for %d times", key, n)
		}
	}
}

// TestAWrongStoreGivesNoWrongBytes: short, long and altered answers are errors, never data; and
// where the object itself is right the next try has it.
func TestAWrongStoreGivesNoWrongBytes(t *testing.T) {
	t.Parallel()
	w := remoteWorld(t, orders)
	want := w.readAll(orders, 0, 1<<20)
	state, _ := w.ledger.Log(orders)
	for name, effect := range map[string]func([]byte) []byte{
		"cut":     func(p []byte) []byte { return p[:len(p)/2] },
		"longer":  func(p []byte) []byte { return append(bytes.Clone(p), 0) },
		"altered": func(p []byte) []byte { q := bytes.Clone(p); q[len(q)/3] ^= 1; return q },
		"zeros":   func(p []byte) []byte { return make([]byte, len(p)) },
	} {
		w.useCache(nil)
		w.suspects = nil
		w.bucket.SetHook(func(op fault.Op) fault.Effect {
			if op.Kind == fault.OpGetRange && strings.HasSuffix(op.Key, ".log") {
				return fault.Effect{Mangle: effect}
			}
			return fault.Effect{}
		})
		failures := 0
		for o := tier.Offset(0); o < state.Copied; {
			c, err := w.reader.Read(t.Context(), orders, o, 1<<20)
			if err != nil {
				failures++
				if !errors.Is(err, tier.ErrDamaged) {
					t.Errorf("%s: %v, want damaged", name, err)
				}
				break
			}
			if !bytes.Contains(want, c.Batches) {
				t.Fatalf("%s: wrong bytes from offset %d", name, o)
			}
			o = c.Next
		}
		if failures == 0 || len(w.suspects) == 0 {
			t.Errorf("%s: %d failures, suspects %v", name, failures, w.suspects)
		}
		w.bucket.SetHook(nil)
		if got := w.readAll(orders, 0, 1<<20); !bytes.Equal(got, want) {
			t.Errorf("%s: wrong bytes afterwards", name)
		}
	}
}

// Kafka 15401: an index that cannot be had as it was copied is made anew from the log.
func TestWithoutItsIndexALogIsRead(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"damaged", "lost"} {
		w := remoteWorld(t, orders)
		want := w.readAll(orders, 0, 1<<20)
		for _, key := range w.mem.Keys() {
			switch {
			case !regexp.MustCompile(`\.(time)?index$`).MatchString(key):
			case how == "lost":
				w.mem.Remove(key)
			default:
				w.mem.Put(key, make([]byte, 8*1000))
			}
		}
		w.useCache(nil)
		for o := tier.Offset(0); o < 5000; o += 613 {
			if got := w.readAll(orders, o, 1<<20); !bytes.HasSuffix(want, got) || len(got) == 0 {
				t.Errorf("%s, from %d: %d bytes are not the end of %d", how, o, len(got), len(want))
			}
		}
		at := int64(1717203000000)
		if o, _, ok, err := w.reader.ForTime(t.Context(), orders, at); o != 2500 || !ok || err != nil {
			t.Errorf("%s: at %d: %d %v %v", how, at, o, ok, err)
		}
		if len(w.suspects) == 0 {
			t.Errorf("%s: nobody was told", how)
		}
	}
}

// TestTheStartMovesBeforeTheObjectsGo: who came before reads on within the grace, who comes after
// is told the range, and after the grace the first one is told too.
func TestTheStartMovesBeforeTheObjectsGo(t *testing.T) {
	t.Parallel()
	w := remoteWorld(t, epochs)
	c, err := w.reader.Open(epochs, 0)
	w.must(err)
	first, err := c.Next(t.Context(), 1)
	w.must(err)
	w.append(tier.StartMoved{Log: epochs, Start: 160, At: w.now, Cause: tier.MoveExpired,
		Expired: tier.RangeSet{{Base: 0, Next: 160}}})
	_, err = w.reader.Read(t.Context(), epochs, first.Next, 1)
	wantRange(t, err, 160, 320)
	w.now += grace - 1
	second, err := c.Next(t.Context(), 1)
	if err != nil || len(second.Batches) == 0 || second.Base != first.Next {
		t.Fatalf("within the grace: %+v %v", second, err)
	}
	w.now++
	_, err = c.Next(t.Context(), 1)
	if !errors.Is(err, ErrGone) {
		t.Errorf("after the grace: %v, want %v", err, ErrGone)
	}
	wantRange(t, err, 160, 320)
	if got := w.readAll(epochs, 160, 1<<20); len(got) == 0 {
		t.Error("what is left of the log is not read")
	}
}

// TestNothingAboveAClipIsServed: what the source wrote anew is read there, and the copy of what it
// wrote before is not.
func TestNothingAboveAClipIsServed(t *testing.T) {
	t.Parallel()
	w := kafkaWorld(t, "v4", epochs)
	w.archive(epochs)
	w.append(tier.Diverged{Log: epochs, Offset: 160, At: w.now})
	w.drop(epochs, 4)
	w.scan()
	local := w.look(epochs).Segments[0].Base
	got := w.readAll(epochs, 0, 1<<20)
	below, above := 0, 0
	w.must(decode(got, func(r *Record) error {
		if r.Offset < 160 {
			below++
		} else if r.Offset < local {
			above++
		}
		return nil
	}))
	if below != 160 || above != 0 {
		t.Errorf("%d records below the clip and %d above it, want 160 and none", below, above)
	}
}

// TestHolesAreSteppedOver: the one offset that was asked for is not there, the next that is
// follows.
func TestHolesAreSteppedOver(t *testing.T) {
	t.Parallel()
	w := kafkaWorld(t, "v4", epochs)
	scan := w.look(epochs)
	w.append(tier.LogOpened{Log: epochs, Source: scan.Source, Layout: scan.Layout,
		Incarnation: scan.Incarnation, Epoch: 1, State: tier.Enabled, At: w.now})
	w.copySegment(epochs, scan.Segments[0].Range)
	hole := scan.Segments[1].Range
	w.append(tier.HoleRecorded{Log: epochs, Hole: tier.Hole{Range: hole,
		Cause: tier.HoleSourceGone, At: w.now}})
	w.copySegment(epochs, scan.Segments[2].Range)
	w.drop(epochs, 3)
	w.scan()
	c, err := w.reader.Read(t.Context(), epochs, hole.Base+1, 1)
	if err != nil || c.Base != hole.Next {
		t.Errorf("in the hole %s: %d..%d %v, want from %d on", hole, c.Base, c.Next, err, hole.Next)
	}
	n, _ := digest(t, w.readAll(epochs, 0, 1<<20), 0)
	if want := 320 - int64(hole.Next-hole.Base); n != want {
		t.Errorf("%d records, want %d", n, want)
	}
}

// plainLog makes a plain log of files with the sizes, named by running numbers or by bytes.
func plainLog(t *testing.T, next logdir.Next, sizes ...int) (w *world, id tier.LogID,
	content []byte) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i, n := range sizes {
		base := 10 * i
		if next == logdir.NextBaseSize {
			base = len(content)
		}
		data := bytes.Repeat([]byte{byte('a' + i)}, n)
		for j := range data {
			data[j] += byte(j % 3)
		}
		at := filepath.Join(dir, "wal", name(tier.Offset(base), ".log"))
		if err := os.WriteFile(at, data, 0o600); err != nil {
			t.Fatal(err)
		}
		old := t0.Std().Add(-time.Hour)
		if err := os.Chtimes(at, old, old); err != nil {
			t.Fatal(err)
		}
		content = append(content, data...)
	}
	w = newWorld(t, logdir.Config{Name: "broker", Layout: tier.LayoutPlain, Next: next,
		LocalDelete: tier.LocalDeleteNever}, dir)
	return w, tier.LogID{Table: "broker", Name: "wal"}, content
}

func (w *world) dropPlain(n int) {
	w.t.Helper()
	logs, err := filepath.Glob(filepath.Join(w.dir, "wal", "*.log"))
	w.must(err)
	for _, log := range logs[:n] {
		w.must(os.Remove(log))
	}
}

// TestPlainBytes reads a log whose offsets count bytes, from every byte on.
func TestPlainBytes(t *testing.T) {
	t.Parallel()
	w, id, content := plainLog(t, logdir.NextBaseSize, 100, 50, 70)
	if n := len(w.archive(id)); n != 2 {
		t.Fatalf("%d closed segments", n)
	}
	for _, dropped := range []int{0, 1, 1} {
		w.dropPlain(dropped)
		w.scan()
		for o := range content {
			if got := w.readAll(id, tier.Offset(o), 33); !bytes.Equal(got, content[o:]) {
				t.Fatalf("from byte %d: %d bytes, want %d", o, len(got), len(content)-o)
			}
		}
	}
}

// TestPlainSegments reads a log whose offsets count something else: segment by segment, and not the
// one that is still being written.
func TestPlainSegments(t *testing.T) {
	t.Parallel()
	w, id, content := plainLog(t, logdir.NextFollowing, 100, 50, 70)
	w.archive(id)
	for _, dropped := range []int{0, 2} {
		w.dropPlain(dropped)
		w.scan()
		if got := w.readAll(id, 0, 1); !bytes.Equal(got, content[:150]) {
			t.Errorf("%d bytes, want 150", len(got))
		}
		c, err := w.reader.Read(t.Context(), id, 15, 1)
		if err != nil || c.Base != 10 || c.Next != 20 || !bytes.Equal(c.Batches, content[100:150]) {
			t.Errorf("%+v %v", c, err)
		}
	}
	for _, key := range w.mem.Keys() {
		if data, ok := w.mem.Object(key); ok && strings.HasSuffix(key, ".log") {
			data[0] ^= 1
			w.mem.Put(key, data)
		}
	}
	w.useCache(nil)
	if c, err := w.reader.Read(t.Context(), id, 0, 1); !errors.Is(err, tier.ErrDamaged) {
		t.Errorf("%+v %v, want damaged", c, err)
	}
}

// TestAFileHidesNoCopyBehindIt: a file ends where the next one begins, and where that is not on
// disk any more its range reaches over what copies have. They are read all the same, whether the
// file is on disk or was copied once more.
func TestAFileHidesNoCopyBehindIt(t *testing.T) {
	t.Parallel()
	w, id, content := plainLog(t, logdir.NextFollowing, 100, 50, 70, 80, 20)
	w.archive(id)
	at := func(base tier.Offset) string { return filepath.Join(w.dir, "wal", name(base, ".log")) }
	read := func(when string) {
		t.Helper()
		for from, skipped := range map[tier.Offset]int{0: 0, 10: 100, 19: 100, 20: 150, 35: 220} {
			if got := w.readAll(id, from, 1); !bytes.Equal(got, content[skipped:300]) {
				t.Errorf("%s: %d bytes from %d on, want %d", when, len(got), from, 300-skipped)
			}
		}
	}
	for _, base := range []tier.Offset{20, 30} {
		w.must(os.Remove(at(base)))
	}
	w.scan()
	read("the files behind one are gone")
	scan := w.look(id)
	if r := scan.Segments[1].Range; r != (tier.Range{Base: 10, Next: 40}) {
		t.Fatalf("the file reaches over %s", r)
	}
	w.copySegment(id, scan.Segments[1].Range)
	w.must(os.Remove(at(0)))
	w.must(os.Remove(at(10)))
	w.scan()
	read("it is a copy")
}

// TestBehindAFileTheNextOneIsRead, where neither tier has what lies between.
func TestBehindAFileTheNextOneIsRead(t *testing.T) {
	t.Parallel()
	w, id, content := plainLog(t, logdir.NextFollowing, 100, 50, 70, 80, 90, 20)
	scan := w.look(id)
	w.append(tier.LogOpened{Log: id, Source: scan.Source, Layout: scan.Layout, Epoch: 1,
		State: tier.Enabled, At: w.now})
	w.copySegment(id, tier.Range{Base: 10, Next: 20})
	w.copySegment(id, tier.Range{Base: 20, Next: 30})
	for _, base := range []tier.Offset{20, 30} {
		w.must(os.Remove(filepath.Join(w.dir, "wal", name(base, ".log"))))
	}
	w.scan()
	for from, want := range map[tier.Offset][]byte{10: content[100:150], 25: content[150:220],
		35: content[300:390], 40: content[300:390]} {
		c, err := w.reader.Read(t.Context(), id, from, 1)
		if err != nil || !bytes.Equal(c.Batches, want) {
			t.Errorf("from %d: %+v %v, want %d bytes", from, c, err, len(want))
		}
	}
}

// TestASizeThatFitsByChance: a segment of ten offsets that has ten bytes is given whole, where its
// source does not say that offsets count bytes.
func TestASizeThatFitsByChance(t *testing.T) {
	t.Parallel()
	w, id, content := plainLog(t, logdir.NextFollowing, 10, 10, 10)
	w.archive(id)
	for _, dropped := range []int{0, 2} {
		w.dropPlain(dropped)
		w.scan()
		for from := tier.Offset(0); from < 20; from++ {
			base := from / 10 * 10
			c, err := w.reader.Read(t.Context(), id, from, 3)
			whole := bytes.Equal(c.Batches, content[base:base+10])
			if err != nil || c.Base != base || c.Next != base+10 || !whole {
				t.Errorf("from %d: %+v %v", from, c, err)
			}
		}
	}
}

// TestALocalIndexIsAHint: wherever it points, the log decides.
func TestALocalIndexIsAHint(t *testing.T) {
	t.Parallel()
	w := kafkaWorld(t, "v4", orders)
	want := w.readAll(orders, 0, 1<<20)
	indexes, err := filepath.Glob(filepath.Join(w.partitionDir(orders), "*.index"))
	if err != nil || len(indexes) == 0 {
		t.Fatal(err)
	}
	for what, spoil := range map[string]func([]byte){
		"late": func(e []byte) { copy(e[4:], []byte{0, 12, 0, 0}) }, // no batch begins there
		"zero": func(e []byte) { clear(e) },
		"ends": func(e []byte) { copy(e, []byte{0, 0, 0, 1, 0x7f, 0xff, 0xff, 0xff}) },
	} {
		for _, index := range indexes {
			data, err := os.ReadFile(index)
			w.must(err)
			for at := 0; at+8 <= len(data); at += 8 {
				spoil(data[at : at+8])
			}
			w.must(os.WriteFile(index, data, 0o600))
		}
		for o := tier.Offset(0); o < 5000; o += 331 {
			w.reader.hints = hints{}
			if got := w.readAll(orders, o, 1<<20); !bytes.HasSuffix(want, got) || len(got) == 0 {
				t.Errorf("%s, from %d: %d bytes are not the end of %d", what, o, len(got), len(want))
			}
		}
	}
}
