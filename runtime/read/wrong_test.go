package read

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/logdir/kbatch/kbatchtest"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// records is a batch of a size that does not depend on its offsets.
func records(base, last tier.Offset) []byte {
	return kbatchtest.V2(nil, kbatchtest.Spec{Base: base, Last: last, Body: 100})
}

// TestSwappedObjectsAreDamage has the store give one segment's object under the name of another,
// with which it has the size in common: each batch is sound, and none is one of that segment. It
// must not look like a segment that compaction has emptied.
func TestSwappedObjectsAreDamage(t *testing.T) {
	t.Parallel()
	g := newGrown(t)
	g.must(os.WriteFile(filepath.Join(g.world.dir, "recovery-point-offset-checkpoint"),
		[]byte("0\n1\ngrown 0 50\n"), 0o600))
	g.write(log0, "50", records(0, 9), records(10, 19))
	g.write("00000000000000000020.log", "50", records(20, 29), records(30, 39))
	g.write("00000000000000000040.log", "50", records(40, 49))
	if n := len(g.archive(g.id)); n != 2 {
		t.Fatalf("%d segments were copied", n)
	}
	g.drop(g.id, 2)
	g.scan()
	keys := slices.DeleteFunc(g.mem.Keys(), func(key string) bool {
		return !strings.HasSuffix(key, ".log")
	})
	first, _ := g.mem.Object(keys[0])
	second, _ := g.mem.Object(keys[1])
	if len(keys) != 2 || len(first) != len(second) {
		t.Fatalf("%v, of %d and %d bytes", keys, len(first), len(second))
	}
	g.mem.Put(keys[0], second)
	g.mem.Put(keys[1], first)
	for _, o := range []tier.Offset{0, 15, 20, 39} {
		g.suspects = nil
		c, err := g.reader.Read(t.Context(), g.id, o, 1<<20)
		if !errors.Is(err, tier.ErrDamaged) || len(g.suspects) == 0 {
			t.Errorf("from %d: up to %d, %d bytes, %v, suspects %v; want damaged", o, c.Next,
				len(c.Batches), err, g.suspects)
		}
	}
	if at, _, found, err := g.reader.ForTime(t.Context(), g.id, 0); !errors.Is(err, tier.ErrDamaged) {
		t.Errorf("by timestamp: %d %v %v, want damaged", at, found, err)
	}
	if _, err := g.reader.LastStable(t.Context(), g.id); !errors.Is(err, tier.ErrDamaged) {
		t.Errorf("the last stable offset: %v, want damaged", err)
	}
}

// TestAFileThatWasWrittenAnewIsLookedUpAnew has a leader that wrote more offsets into each byte
// than the one before it. Where a reader of the first stopped lies a batch of the second, and
// behind offsets that the reader has not seen.
func TestAFileThatWasWrittenAnewIsLookedUpAnew(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"a batch", "the end"} {
		g := newGrown(t)
		g.write(log0, "15", records(0, 4), records(5, 9), records(10, 14))
		c, err := g.reader.Read(t.Context(), g.id, 0, int64(2*len(records(0, 4))))
		if err != nil || c.Next != 10 {
			t.Fatalf("up to %d: %v", c.Next, err)
		}
		anew := [][]byte{records(0, 9), records(10, 19)}
		if what == "a batch" {
			anew = append(anew, records(20, 29))
		}
		g.write(log0, "30", anew...)
		c, err = g.reader.Read(t.Context(), g.id, 10, 1)
		if err != nil || !bytes.Equal(c.Batches, anew[1]) {
			t.Errorf("%s lies there: [%d, %d), %v; want what begins at 10", what, c.Base, c.Next, err)
		}
	}
}

// TestAFileThatWasWrittenAnewMayHaveAborts: that a closed segment had no .txnindex says nothing of
// what another leader wrote in its place.
func TestAFileThatWasWrittenAnewMayHaveAborts(t *testing.T) {
	t.Parallel()
	g := newGrown(t)
	g.must(os.WriteFile(filepath.Join(g.world.dir, "recovery-point-offset-checkpoint"),
		[]byte("0\n1\ngrown 0 40\n"), 0o600))
	g.write("00000000000000000030.log", "40", records(30, 39))
	g.write(log0, "40", records(0, 29))
	if list, err := g.reader.Aborted(t.Context(), g.id, 0, 40); err != nil || len(list) > 0 {
		t.Fatalf("%v %v", list, err)
	}
	index := make([]byte, txnIndexEntryBytes)
	binary.BigEndian.PutUint64(index[2:], 7)
	binary.BigEndian.PutUint64(index[18:], 10)
	binary.BigEndian.PutUint64(index[26:], 11)
	g.write("00000000000000000000.txnindex", "40", index)
	g.write(log0, "40", part(0, 9, 7), marker(10, 7), records(11, 29))
	list, err := g.reader.Aborted(t.Context(), g.id, 0, 40)
	if want := (AbortedTxn{7, 0, 10, 11}); err != nil || !slices.Equal(list, []AbortedTxn{want}) {
		t.Errorf("%v %v, want %v", list, err, want)
	}
}

// TestCacheFilesAreNotTakenForEachOther swaps the files of two chunks: each has its own checksum,
// and is of the other.
func TestCacheFilesAreNotTakenForEachOther(t *testing.T) {
	t.Parallel()
	disk := vfs.NewMem(func() tier.Time { return t0 })
	open := func() *Cache {
		t.Helper()
		x, err := NewCache(CacheConfig{Store: letters{}, Dir: disk, DiskBytes: 1 << 20,
			Now: func() tier.Time { return t0 }})
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	a, b := chunked(tier.ObjectKey{Name: "a"}, 100), chunked(tier.ObjectKey{Name: "b"}, 100)
	read := func(x *Cache, o object) byte {
		t.Helper()
		var p [1]byte
		if err := x.readAt(t.Context(), o, p[:], 50, 1); err != nil {
			t.Fatal(err)
		}
		return p[0]
	}
	x := open()
	if read(x, a) != 'a' || read(x, b) != 'b' {
		t.Fatal("not what the store has")
	}
	for _, step := range [][2]string{{a.name(0), "a"}, {b.name(0), a.name(0)}, {"a", b.name(0)}} {
		if err := disk.Rename(step[0], step[1]); err != nil {
			t.Fatal(err)
		}
	}
	x = open()
	if got := string([]byte{read(x, a), read(x, b)}); got != "ab" || x.Stats().DiskErrors != 2 {
		t.Errorf("%q from the files of each other, %+v", got, x.Stats())
	}
}

// letters is a store whose objects repeat their name.
type letters struct{}

// ReadFile implements Store.
func (letters) ReadFile(_ context.Context, k tier.ObjectKey, _ int64, bufs ...[]byte) error {
	for _, b := range bufs {
		copy(b, bytes.Repeat([]byte(k.Name), len(b)))
	}
	return nil
}

// TestDamageThatIsLocalAloneIsTold: what cannot be read locally is looked for in the store, and
// where that has not got it either it is no hole.
func TestDamageThatIsLocalAloneIsTold(t *testing.T) {
	t.Parallel()
	for what, at := range map[string]int{"its header": 16, "a record": 100} {
		g := newGrown(t)
		damaged := records(10, 19)
		damaged[at] ^= 8
		g.write("00000000000000000030.log", "40", records(30, 39))
		g.write(log0, "40", records(0, 9), damaged, records(20, 29))
		c, err := g.reader.Read(t.Context(), g.id, 0, 1)
		if err != nil || c.Next != 10 {
			t.Fatalf("up to %d: %v", c.Next, err)
		}
		if c, err = g.reader.Read(t.Context(), g.id, 10, 1); !errors.Is(err, tier.ErrDamaged) {
			t.Errorf("%s: up to %d, %d bytes: %v; want damaged", what, c.Next, len(c.Batches), err)
		}
	}
}

// TestAFileThatWasCutHasNoGapAtItsEnd: where a segment ends sooner than when it was looked at, what
// is missing was there.
func TestAFileThatWasCutHasNoGapAtItsEnd(t *testing.T) {
	t.Parallel()
	g := newGrown(t)
	g.write("00000000000000000030.log", "40", records(30, 39))
	g.write(log0, "40", records(0, 9), records(10, 19), records(20, 29))
	g.must(os.Truncate(filepath.Join(g.dir, log0), int64(2*len(records(0, 9)))))
	if c, err := g.reader.Read(t.Context(), g.id, 10, 1); err != nil || c.Next != 20 {
		t.Errorf("what is left: up to %d: %v", c.Next, err)
	}
	if c, err := g.reader.Read(t.Context(), g.id, 20, 1); !errors.Is(err, tier.ErrChanged) {
		t.Errorf("what is not: up to %d, %d bytes: %v; want changed", c.Next, len(c.Batches), err)
	}
}

// TestALocalTimeIndexIsAHint: it must not lead behind the record that is looked for.
func TestALocalTimeIndexIsAHint(t *testing.T) {
	t.Parallel()
	w := kafkaWorld(t, "v4", orders)
	indexes, err := filepath.Glob(filepath.Join(w.partitionDir(orders), "*.timeindex"))
	if err != nil || len(indexes) == 0 {
		t.Fatal(err)
	}
	const first = int64(1717200000000)
	want := map[int64]tier.Offset{}
	for ms := first; ms < first+5_000_000; ms += 377_000 {
		o, _, found, err := w.reader.ForTime(t.Context(), orders, ms)
		if w.must(err); found {
			want[ms] = o
		}
	}
	if len(want) < 5 {
		t.Fatalf("%v", want)
	}
	for what, spoil := range map[string]func([]byte){
		"times that are too early":  func(e []byte) { binary.BigEndian.PutUint64(e, uint64(first)) },
		"offsets that are too high": func(e []byte) { binary.BigEndian.PutUint32(e[8:], 2000) },
		"offsets beyond the file":   func(e []byte) { binary.BigEndian.PutUint32(e[8:], 1<<31-1) },
	} {
		for _, index := range indexes {
			data, err := os.ReadFile(index)
			w.must(err)
			for at := 0; at+timeIndexEntryBytes <= len(data); at += timeIndexEntryBytes {
				spoil(data[at : at+timeIndexEntryBytes])
			}
			w.must(os.WriteFile(index, data, 0o600))
		}
		for ms, o := range want {
			if got, _, found, err := w.reader.ForTime(t.Context(), orders, ms); err != nil || got != o {
				t.Errorf("%s: at %d: %d %v %v, want %d", what, ms, got, found, err, o)
			}
		}
	}
}

// TestAWholePlainSegmentIsCompared, of whatever size: it has no checksums of its own.
func TestAWholePlainSegmentIsCompared(t *testing.T) {
	t.Parallel()
	for _, size := range []int{100, wholeBytesMax + 1} {
		w, id, content := plainLog(t, logdir.NextFollowing, size, 10)
		w.archive(id)
		w.dropPlain(1)
		w.scan()
		if c, err := w.reader.Read(t.Context(), id, 0, 1); err != nil ||
			!bytes.Equal(c.Batches, content[:size]) {
			t.Errorf("%d bytes of %d: %v", len(c.Batches), size, err)
		}
		for _, key := range w.mem.Keys() {
			if data, ok := w.mem.Object(key); ok && strings.HasSuffix(key, ".log") {
				data[size/2] ^= 1
				w.mem.Put(key, data)
			}
		}
		w.useCache(nil)
		if _, err := w.reader.Read(t.Context(), id, 0, 1); !errors.Is(err, tier.ErrDamaged) ||
			len(w.suspects) == 0 {
			t.Errorf("%d bytes that were altered: %v, suspects %v; want damaged", size, err, w.suspects)
		}
	}
}

// TestALongTxnIndexIsNotCutOff: what is beyond would make aborted records committed ones.
func TestALongTxnIndexIsNotCutOff(t *testing.T) {
	t.Parallel()
	g := newGrown(t)
	g.write(log0, "10", records(0, 9))
	g.must(os.WriteFile(filepath.Join(g.dir, "00000000000000000000.txnindex"), nil, 0o600))
	g.must(os.Truncate(filepath.Join(g.dir, "00000000000000000000.txnindex"), wholeBytesMax+1))
	g.scan()
	if list, err := g.reader.Aborted(t.Context(), g.id, 0, 10); !errors.Is(err, ErrIndivisible) {
		t.Errorf("%d transactions, %v", len(list), err)
	}
}
