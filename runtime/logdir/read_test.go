package logdir_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/logdir/kbatch/kbatchtest"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// readable is a Kafka source with the segment [100, 200) of the log orders/0, and one that follows.
func readable(w *world) (*broker, *logdir.Source) {
	b := newBroker(w)
	b.seg("orders-0", 100, 200)
	b.seg("orders-0", 200, 250)
	return b, b.open(tier.LayoutKafka)
}

func read(s *logdir.Source, base, next tier.Offset) (tier.Content, error) {
	return s.Read(context.Background(), tier.LogID{Table: "orders", Name: "0"},
		tier.Range{Base: base, Next: next})
}

// digest is what a read must say of a file.
func (w *world) digest(name string, data []byte) tier.SourceFile {
	w.t.Helper()
	return tier.SourceFile{Stat: w.stat(name), FileDigest: tier.FileDigest{
		Name: name[strings.LastIndexByte(name, '/')+1:], Size: int64(len(data)),
		SHA256: sha256.Sum256(data),
		CRC32C: crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))}}
}

func TestReadKafka(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		b, s := readable(w)
		b.put(file("orders-0", 100, "snapshot"), []byte("snapshot"))
		b.put(file("orders-0", 100, "txnindex"), nil)
		log, index, timeindex := segment(100, 200)
		want := tier.Content{
			Range: tier.Range{Base: 100, Next: 200},
			Files: []tier.SourceFile{
				w.digest(file("orders-0", 100, "log"), log),
				w.digest(file("orders-0", 100, "index"), index),
				w.digest(file("orders-0", 100, "snapshot"), []byte("snapshot")),
				w.digest(file("orders-0", 100, "timeindex"), timeindex),
				w.digest(file("orders-0", 100, "txnindex"), nil),
			},
			Lineage:  []tier.EpochStart{{Epoch: 7, Start: 100}},
			MaxTime:  190_001 * 1e6,
			Batches:  10,
			LastNext: 200,
		}
		got, err := read(s, 100, 200)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestReadPlain(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		w.put("a/b/1.log", []byte("anything"))
		w.put("a/b/1.sum", []byte("sum"))
		w.put("a/b/9.log", nil)
		s := w.open(tier.LayoutPlain)
		got, err := s.Read(context.Background(), logID(t, "a/b"), tier.Range{Base: 1, Next: 9})
		if err != nil {
			t.Fatal(err)
		}
		want := tier.Content{Range: tier.Range{Base: 1, Next: 9}, LastNext: 9,
			Files: []tier.SourceFile{w.digest("a/b/1.log", []byte("anything")),
				w.digest("a/b/1.sum", []byte("sum"))}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestReadRanges says for which ranges there is something to read.
func TestReadRanges(t *testing.T) {
	t.Parallel()
	_, s := readable(newMem(t))
	for _, c := range []struct {
		base, next tier.Offset
		want       error
		text       string
	}{
		{100, 200, nil, ""},
		{100, 150, tier.ErrChanged, "it has offsets up to 199 now"},
		{100, 201, tier.ErrChanged, "it ends at 200 now"},
		{200, 250, tier.ErrChanged, "nothing follows it now"},
		{150, 200, tier.ErrVanished, "segment 150"},
		{100, 100, nil, "the range is empty"},
	} {
		_, err := read(s, c.base, c.next)
		if c.text == "" && err == nil {
			continue
		}
		if err == nil || c.want != nil && !errors.Is(err, c.want) ||
			!strings.Contains(err.Error(), c.text) {
			t.Errorf("[%d, %d): %v, want %v %q", c.base, c.next, err, c.want, c.text)
		}
	}
	_, err := s.Read(context.Background(), logID(t, "orders/1"), tier.Range{Next: 1})
	if !errors.Is(err, tier.ErrVanished) {
		t.Errorf("a log that is not there: %v", err)
	}
}

// TestReadOfAGrownFile wants the range that was asked for where a file's size is its range.
func TestReadOfAGrownFile(t *testing.T) {
	t.Parallel()
	w := newMem(t)
	w.put("a/b/0.log", make([]byte, 100))
	s := w.open(tier.LayoutPlain, next(logdir.NextBaseSize))
	for n, want := range map[tier.Offset]error{99: tier.ErrChanged, 100: nil,
		101: tier.ErrChanged} {
		_, err := s.Read(context.Background(), logID(t, "a/b"), tier.Range{Next: n})
		if !errors.Is(err, want) {
			t.Errorf("[0, %d): %v, want %v", n, err, want)
		}
	}
}

// TestReadOfLinkedFiles leaves out what is no file: nothing of the segment may lie elsewhere.
func TestReadOfLinkedFiles(t *testing.T) {
	t.Parallel()
	b, s := readable(newMem(t))
	for ext, target := range map[string]string{"snapshot": "elsewhere", "txnindex": "100.log"} {
		if err := b.symlink(target, file("orders-0", 100, ext)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := read(s, 100, 200)
	if err != nil || len(got.Files) != 3 {
		t.Errorf("%d files, %v", len(got.Files), err)
	}
}

// TestScanAfterARead looks again at a log of which a read found something else than the scan.
func TestScanAfterARead(t *testing.T) {
	t.Parallel()
	for _, damage := range []bool{false, true} {
		b := newBroker(newMem(t))
		for base := tier.Offset(100); base < 600; base += 100 {
			b.seg("orders-0", base, base+100)
		}
		s := b.open(tier.LayoutKafka)
		scan(t, s, now)
		log, _, _ := segment(100, 200)
		if damage {
			log[200]++
		}
		*b.clock += second
		b.put(file("orders-0", 100, "log"), log) // in place: the directory's mtime stands still
		if got := scan(t, s, now); len(got.Scans) > 0 {
			t.Fatalf("seen before the read: %+v", got.Scans)
		}
		if _, err := read(s, 100, 200); errors.Is(err, tier.ErrDamaged) != damage {
			t.Error(err)
		}
		if got := scan(t, s, now); len(got.Scans) != 1 {
			t.Errorf("damage %v: not seen after the read", damage)
		}
	}
}

// batches is a log of one batch for each pair of first and last offset.
func batches(offsets ...tier.Offset) []byte {
	var log []byte
	for i := 0; i < len(offsets); i += 2 {
		log = kbatchtest.V2(log, kbatchtest.Spec{Base: offsets[i], Last: offsets[i+1]})
	}
	return log
}

// TestReadDamage wants an error that names file, byte and batch.
func TestReadDamage(t *testing.T) {
	t.Parallel()
	flipped := batches(100, 109, 110, 119, 120, 129)
	flipped[2*61+50] ^= 1
	sound, _, _ := segment(100, 200)
	for _, c := range []struct {
		name string
		log  []byte
		want string // "" if it is sound
	}{
		{"sound", batches(100, 109, 110, 199), ""},
		{"gaps", batches(103, 109, 150, 150), ""},
		{"no batches", nil, ""},
		{"a bit", flipped, "byte 122: batch at offset 120: crc 0x"},
		{"cut", sound[:180],
			"byte 101: batch at offset 110: it has 101 bytes, and 79 are left: cut"},
		{"cut in a header", batches(100, 109, 110, 119)[:70], "byte 61: 9 bytes are too few"},
		{"zeros after it", append(batches(100, 109), make([]byte, 100)...),
			"byte 61: batch at offset 0"},
		{"zeros only", make([]byte, 4096), "byte 0: batch at offset 0"},
		{"below its base", batches(99, 99, 100, 109),
			"byte 0: batch at offset 99: below the segment's base 100"},
		{"into the next segment", batches(100, 109, 150, 200),
			"byte 61: batch at offset 150: it ends at offset 200, and the next segment begins"},
		{"the same twice", batches(100, 109, 100, 109),
			"byte 61: batch at offset 100: the batch before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, s := readable(newMem(t))
			for _, ext := range []string{"index", "timeindex"} {
				b.put(file("orders-0", 100, ext), nil)
			}
			b.put(file("orders-0", 100, "log"), c.log)
			got, err := read(s, 100, 200)
			if c.want == "" {
				if err != nil || len(got.Files) != 3 || len(got.Problems) > 0 {
					t.Errorf("%+v, %v; want it sound", got, err)
				}
				return
			}
			if !errors.Is(err, tier.ErrDamaged) || errors.Is(err, tier.ErrChanged) ||
				!strings.HasPrefix(err.Error(), "segment 00000000000000000100.log: "+c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if cmp.Diff(tier.Content{}, got) != "" {
				t.Errorf("and yet %+v", got)
			}
		})
	}
}

func TestReadLineage(t *testing.T) {
	t.Parallel()
	v2 := func(log []byte, base tier.Offset, epoch tier.LeaderEpoch) []byte {
		return kbatchtest.V2(log, kbatchtest.Spec{Base: base, Last: base, Epoch: epoch})
	}
	old := kbatchtest.V01(nil, 1, kbatchtest.Spec{Last: 100, MaxTimestamp: 5})
	for _, c := range []struct {
		name string
		log  []byte
		want []tier.EpochStart
	}{
		{"none", old, nil},
		{"one", v2(v2(nil, 100, 3), 101, 3), []tier.EpochStart{{Epoch: 3, Start: 100}}},
		{"ascending", v2(v2(v2(nil, 100, 3), 110, 3), 120, 5),
			[]tier.EpochStart{{Epoch: 3, Start: 100}, {Epoch: 5, Start: 120}}},
		{"after an upgrade", v2(bytes.Clone(old), 101, 0),
			[]tier.EpochStart{{Epoch: 0, Start: 101}}},
		// A cluster whose metadata was lost counts anew.
		{"back", v2(v2(nil, 100, 3), 110, 1),
			[]tier.EpochStart{{Epoch: 3, Start: 100}, {Epoch: 1, Start: 110}}},
		{"between", v2(v2(v2(nil, 100, 3), 110, -1), 120, 3),
			[]tier.EpochStart{{Epoch: 3, Start: 100}, {Epoch: -1, Start: 110},
				{Epoch: 3, Start: 120}}},
	} {
		b, s := readable(newMem(t))
		b.remove(file("orders-0", 100, "index"))
		b.remove(file("orders-0", 100, "timeindex"))
		b.put(file("orders-0", 100, "log"), c.log)
		got, err := read(s, 100, 200)
		if diff := cmp.Diff(c.want, got.Lineage); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", c.name, err, diff)
		}
	}
}

// TestReadLineageIsBounded feeds a segment whose leader epoch changes in every batch.
func TestReadLineageIsBounded(t *testing.T) {
	t.Parallel()
	const many = 1<<16 + 1
	var log []byte
	for i := range tier.Offset(many) {
		log = kbatchtest.V2(log, kbatchtest.Spec{Base: i, Last: i, Epoch: tier.LeaderEpoch(i % 2)})
	}
	b := newBroker(newMem(t))
	b.put(file("orders-0", 0, "log"), log)
	b.put(file("orders-0", many, "log"), nil)
	_, err := read(b.open(tier.LayoutKafka), 0, many)
	if !errors.Is(err, tier.ErrDamaged) || !strings.Contains(err.Error(), "65536 times") {
		t.Errorf("got %v", err)
	}
}

func TestReadMaxTime(t *testing.T) {
	t.Parallel()
	const year2100 = 4102444800000
	for _, c := range []struct {
		name   string
		millis []int64
		want   tier.Time
	}{
		{"the largest", []int64{5, 9, 7}, 9e6},
		{"none", []int64{-1, -1}, 0},
		{"some", []int64{-1, 3, -1}, 3e6},
		{"negative", []int64{-7, math.MinInt64}, 0},
		{"the epoch", []int64{0}, 0},
		{"far away", []int64{year2100}, year2100 * 1e6},
		{"beyond what nanoseconds hold", []int64{5, math.MaxInt64},
			math.MaxInt64 / 1000000 * 1000000},
	} {
		b, s := readable(newMem(t))
		b.remove(file("orders-0", 100, "index"))
		b.remove(file("orders-0", 100, "timeindex"))
		var log []byte
		for i, ms := range c.millis {
			at := tier.Offset(100 + i)
			log = kbatchtest.V2(log, kbatchtest.Spec{Base: at, Last: at, MaxTimestamp: ms})
		}
		b.put(file("orders-0", 100, "log"), log)
		if got, err := read(s, 100, 200); err != nil || got.MaxTime != c.want {
			t.Errorf("%s: %s, %v; want %s", c.name, got.MaxTime, err, c.want)
		}
	}
}

// TestReadComparesIndexes leaves out an index that does not fit, and says so; the segment is read.
func TestReadComparesIndexes(t *testing.T) {
	t.Parallel()
	_, index, timeindex := segment(100, 200)
	batch := int64(101) // bytes of each batch
	for _, c := range []struct {
		name, ext string
		data      []byte
		want      string // "" if it fits
	}{
		{"fits", "index", index, ""},
		{"empty", "index", nil, ""},
		{"the first batch", "index", be32(be32(nil, 0), 0), ""},
		{"the first offset of a batch", "index", be32(be32(nil, 10), batch), ""},
		{"the last of several batches", "index", be32(be32(nil, 39), batch), ""},
		{"odd size", "index", index[:len(index)-1], "no multiple of 8"},
		{"zeros after it", "index", append(bytes.Clone(index), make([]byte, 80)...),
			"does not ascend"},
		{"zeros only", "index", make([]byte, 80), "does not ascend"},
		{"between batches", "index", be32(be32(nil, 19), batch+1), "no batch begins at byte 102"},
		{"beyond the end", "index", be32(be32(nil, 99), 10*batch), "beyond the end"},
		{"too late: what it skips is missed", "index", be32(be32(nil, 15), 2*batch),
			"a batch before it ends at offset 119"},
		{"beyond the last offset", "index", be32(be32(nil, 100), batch), "ends before offset 200"},
		{"of another segment", "index", be32(be32(index, 5), 3), "does not ascend"},
		{"one position twice", "index", be32(be32(be32(be32(nil, 19), batch), 29), batch),
			"does not ascend"},
		{"one offset twice", "index", be32(be32(be32(be32(nil, 39), batch), 39), 2*batch),
			"does not ascend"},

		{"fits", "timeindex", timeindex, ""},
		{"empty", "timeindex", nil, ""},
		{"odd size", "timeindex", timeindex[:len(timeindex)-1], "no multiple of 12"},
		{"zeros after it", "timeindex", append(bytes.Clone(timeindex), make([]byte, 24)...),
			"does not ascend"},
		{"earlier than a batch before it", "timeindex", be32(be64(nil, 115_000), 39),
			"a batch before it has 120001"},
		{"later than all", "timeindex", be32(be64(nil, 190_002), 99),
			"no timestamp as late as 190002"},
		{"beyond the end", "timeindex", be32(be64(nil, 190_001), 100), "beyond the end"},
		{"one timestamp twice", "timeindex", be32(be64(be32(be64(nil, 130_001), 29), 130_001), 39),
			"does not ascend"},
		{"offsets back", "timeindex", be32(be64(be32(be64(nil, 130_001), 39), 140_001), 38),
			"does not ascend"},

		{"empty", "txnindex", nil, ""},
		{"fits", "txnindex", txn(0, 100, 115), ""},
		{"two", "txnindex", append(txn(0, 100, 115), txn(0, 100, 120)...), ""},
		{"begun in an earlier segment", "txnindex", txn(0, 5, 115), ""},
		{"another version", "txnindex", txn(1, 100, 115), "version 1"},
		{"ends before the segment", "txnindex", txn(0, 5, 99), "from offset 5 to 99"},
		{"begins nowhere", "txnindex", txn(0, -5, 115), "from offset -5 to 115"},
		{"ends before it begins", "txnindex", txn(0, 120, 119), "from offset 120 to 119"},
		{"ends after the segment", "txnindex", txn(0, 100, 200), "beyond the end"},
		{"not ascending", "txnindex", append(txn(0, 100, 115), txn(0, 100, 115)...),
			"does not ascend"},
		{"odd size", "txnindex", txn(0, 100, 115)[:33], "no multiple of 34"},
	} {
		t.Run(c.ext+" "+c.name, func(t *testing.T) {
			t.Parallel()
			b, s := readable(newMem(t))
			b.put(file("orders-0", 100, c.ext), c.data)
			got, err := read(s, 100, 200)
			if err != nil || got.Batches != 10 {
				t.Fatalf("the segment cannot be read: %v", err)
			}
			kept := false
			for _, f := range got.Files {
				kept = kept || strings.HasSuffix(f.Name, "."+c.ext)
			}
			if kept != (c.want == "") {
				t.Errorf("kept is %v: %+v", kept, got.Problems)
			}
			compareProblems(t, got.Problems, c.want)
			mismatch := file("orders-0", 100, c.ext) + ":index-mismatch"
			if c.want != "" && codes(got.Problems) != mismatch {
				t.Errorf("problems %s", codes(got.Problems))
			}
		})
	}
}

// txn is one entry of a transaction index.
func txn(version byte, first, last int64) []byte {
	e := be64([]byte{0, version}, 4711)
	return be64(be64(be64(e, first), last), first)
}

func TestReadComparesLeaderEpochs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"agrees", "0\n2\n3 0\n7 100\n", ""},
		{"begins later", "0\n1\n8 150\n", ""},
		{"empty", "0\n0\n", ""},
		{"disagrees", "0\n2\n3 0\n6 100\n", "is of leader epoch 7, and the checkpoint says 6"},
		{"does not ascend", "0\n2\n7 100\n6 200\n",
			"leader-epoch-checkpoint:4: epoch 6 from 200 on"},
		{"cut", "0\n2\n7 100\n", "says that it has 2"},
	} {
		b, s := readable(newMem(t))
		b.put("orders-0/leader-epoch-checkpoint", []byte(c.text))
		got, err := read(s, 100, 200)
		if err != nil || len(got.Files) != 3 {
			t.Errorf("%s: %v", c.name, err)
		}
		compareProblems(t, got.Problems, c.want)
	}
}

// TestReadWhileItChanges does something to the segment at each operation of a read in turn. Either
// the read notices, or what it returns is what was there before.
func TestReadWhileItChanges(t *testing.T) {
	t.Parallel()
	log, index, _ := segment(100, 200)
	name, indexName := file("orders-0", 100, "log"), file("orders-0", 100, "index")
	for _, c := range []struct {
		name string
		do   func(b *broker)
		want error
	}{
		{"grows", func(b *broker) { b.add(name, log) }, tier.ErrChanged},
		{"shrinks", func(b *broker) { b.put(name, log[:300]) }, tier.ErrChanged},
		{"shrinks to nothing", func(b *broker) { b.put(name, nil) }, tier.ErrChanged},
		{"is rewritten", func(b *broker) { b.put(name, make([]byte, len(log))) }, tier.ErrChanged},
		{"is replaced", func(b *broker) {
			b.put("new", log)
			if err := b.dir.Replace("new", name); err != nil {
				b.t.Fatal(err)
			}
		}, tier.ErrChanged},
		{"goes", func(b *broker) { b.remove(name) }, tier.ErrVanished},
		{"its index goes", func(b *broker) { b.remove(indexName) }, tier.ErrVanished},
		{"its index grows", func(b *broker) { b.add(indexName, index) }, tier.ErrChanged},
		{"its index is cut", func(b *broker) { b.put(indexName, index[:8]) }, tier.ErrChanged},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, s := readable(newMem(t))
			changes := name
			if strings.HasPrefix(c.name, "its index") {
				changes = indexName
			}
			opened, end := operations(b, changes, func() {
				if _, err := read(s, 100, 200); err != nil {
					t.Fatal(err)
				}
			})
			noticed := 0
			for n := range end {
				b, s := readable(newMem(t))
				want, err := read(s, 100, 200)
				if err != nil {
					t.Fatal(err)
				}
				done := atOperation(b, n, func() {
					*b.clock += second
					c.do(b)
				})
				got, err := read(s, 100, 200)
				if !done() {
					t.Fatalf("operation %d does not happen", n)
				}
				switch {
				case errors.Is(err, c.want) && !errors.Is(err, tier.ErrDamaged):
					noticed++
				case n <= opened+1: // it was another file from the beginning
				case err != nil:
					t.Errorf("at operation %d: %v, want %v", n, err, c.want)
				case cmp.Diff(want, got) != "":
					t.Errorf("at operation %d: not noticed: %+v", n, got)
				}
			}
			if noticed < 3 {
				t.Errorf("noticed %d times in %d operations", noticed, end)
			}
		})
	}
}

// operations counts the operations of do, and up to where it opens the named file.
func operations(b *broker, name string, do func()) (opened, all int) {
	b.mem.SetFault(func(op vfs.Op) (vfs.Effect, error) {
		if op.Kind == vfs.OpOpen && op.Path == name {
			opened = all
		}
		all++
		return vfs.Proceed, nil
	})
	do()
	b.mem.SetFault(nil)
	return opened, all
}

// atOperation does something just before the n-th operation on the file system from now on. The
// result tells whether it was done.
func atOperation(b *broker, n int, do func()) (done func() bool) {
	count, fired := 0, false
	b.mem.SetFault(func(vfs.Op) (vfs.Effect, error) {
		count++
		if count == n+1 {
			fired = true
			b.mem.SetFault(nil)
			do()
		}
		return vfs.Proceed, nil
	})
	return func() bool {
		b.mem.SetFault(nil)
		return fired
	}
}

// TestReadFaults fails each operation of a read in turn: none may be taken for damage, and no
// content may come of it.
func TestReadFaults(t *testing.T) {
	t.Parallel()
	b, s := readable(newMem(t))
	want, err := read(s, 100, 200)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 1000 {
		fired := false
		count := 0
		b.mem.SetFault(func(op vfs.Op) (vfs.Effect, error) {
			count++
			if count == n+1 {
				fired = true
				return vfs.Fail, nil
			}
			return vfs.Proceed, nil
		})
		got, err := read(s, 100, 200)
		b.mem.SetFault(nil)
		if !fired {
			if n < 15 {
				t.Errorf("only %d operations", n)
			}
			return
		}
		got.Problems = nil // the leader epochs could not be compared
		if errors.Is(err, tier.ErrDamaged) || errors.Is(err, tier.ErrVanished) ||
			err == nil && cmp.Diff(want, got) != "" {
			t.Errorf("operation %d fails: %v, %+v", n, err, got)
		}
	}
	t.Error("the read does not end")
}

func TestReadHeedsTheContext(t *testing.T) {
	t.Parallel()
	b, s := readable(newMem(t))
	ctx, cancel := context.WithCancel(context.Background())
	reads := 0
	b.mem.SetFault(func(op vfs.Op) (vfs.Effect, error) {
		if op.Kind == vfs.OpRead && strings.HasSuffix(op.Path, ".log") {
			reads++
			cancel()
		}
		return vfs.Proceed, nil
	})
	var big []byte
	for o := tier.Offset(100); o < 103; o++ {
		big = kbatchtest.V2(big, kbatchtest.Spec{Base: o, Last: o, Body: 1 << 20})
	}
	b.put(file("orders-0", 100, "log"), big)
	_, err := s.Read(ctx, logID(t, "orders/0"), tier.Range{Base: 100, Next: 200})
	if !errors.Is(err, context.Canceled) || reads != 1 {
		t.Errorf("%d reads, %v", reads, err)
	}
}

// dropsDir counts the bytes of each file that were dropped from the page cache.
type dropsDir struct {
	vfs.Dir
	dropped map[string]int64
}

func (d dropsDir) Open(name string) (vfs.File, error) {
	f, err := d.Dir.Open(name)
	return dropsFile{f, name, d.dropped}, err
}

type dropsFile struct {
	vfs.File
	name    string
	dropped map[string]int64
}

func (f dropsFile) DropCache(_, n int64) { f.dropped[f.name] += n }

// TestReadLeavesThePageCacheToOthers: what is uploaded next may stay as long as that takes, unless
// it is large.
func TestReadLeavesThePageCacheToOthers(t *testing.T) {
	t.Parallel()
	const kept = 16 << 20
	w := newMem(t)
	w.put("orders/0/1.log", make([]byte, kept))
	w.put("orders/0/2.log", make([]byte, kept+1))
	w.put("orders/0/3.log", nil)
	dropped := map[string]int64{}
	s := w.open(tier.LayoutPlain, func(c *logdir.Config) {
		c.Root = func() (vfs.Dir, error) {
			root, err := w.root()
			return dropsDir{root, dropped}, err
		}
	})
	for base := tier.Offset(1); base < 3; base++ {
		r := tier.Range{Base: base, Next: base + 1}
		if _, err := s.Read(context.Background(), logID(t, "orders/0"), r); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]int64{"orders/0/2.log": kept + 1}
	if diff := cmp.Diff(want, dropped); diff != "" {
		t.Errorf("bytes dropped (-want +got):\n%s", diff)
	}
}

// lookingDir counts how many entries are described.
type lookingDir struct {
	vfs.Dir
	described *int
}

func (d lookingDir) Stat(name string) (vfs.Info, error) {
	*d.described++
	return d.Dir.Stat(name)
}

func (d lookingDir) List(name string) ([]vfs.Info, error) {
	infos, err := d.Dir.List(name)
	*d.described += len(infos)
	return infos, err
}

// TestOneSegmentOfMany: to read or drop one segment, only its own files are looked at, so that each
// takes no longer in a log of thousands.
func TestOneSegmentOfMany(t *testing.T) {
	t.Parallel()
	w := newMem(t)
	for base := range 1000 {
		w.put(fmt.Sprintf("orders/0/%d.log", base), []byte("1"))
		w.put(fmt.Sprintf("orders/0/%d.index", base), []byte("2"))
	}
	described := 0
	s := w.open(tier.LayoutPlain, func(c *logdir.Config) {
		c.Root = func() (vfs.Dir, error) {
			root, err := w.root()
			return lookingDir{root, &described}, err
		}
	})
	ctx, id, r := context.Background(), logID(t, "orders/0"), tier.Range{Base: 0, Next: 1}
	content, err := s.Read(ctx, id, r)
	if err != nil || len(content.Files) != 2 {
		t.Fatalf("%+v, %v", content, err)
	}
	if _, err := s.LogFile(ctx, id, 500); err != nil {
		t.Fatal(err)
	}
	target := gate.Target{Action: tier.DeleteLocal, Log: id, Range: r,
		File: content.Files[0].Stat, Bytes: content.Bytes(),
		Rest: tier.MarkOf(content.Files[1].Name, content.Files[1].Stat)}
	if err := s.Drop(ctx, permit(t, target), target); err != nil {
		t.Fatal(err)
	}
	if described > 20 {
		t.Errorf("%d files were looked at for a segment of two", described)
	}
}

func TestOpenAndStat(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		_, s := readable(w)
		log, _, _ := segment(100, 200)
		ctx, id := context.Background(), logID(t, "orders/0")
		const name = "00000000000000000100.log"
		stat, err := s.Stat(ctx, id, name)
		if err != nil || stat != w.stat("orders-0/"+name) {
			t.Errorf("stat %+v, %v", stat, err)
		}
		r, err := s.Open(ctx, id, name)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 100)
		if _, err := r.ReadAt(got, 50); err != nil || !bytes.Equal(got, log[50:150]) {
			t.Errorf("read %x, %v", got, err)
		}
		if open, err := r.Stat(); err != nil || open != stat {
			t.Errorf("stat of the open file %+v, %v", open, err)
		}
		r.DropCache(0, 100)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := w.symlink(name, "orders-0/link.log"); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]error{
			"none.log": tier.ErrVanished, "link.log": vfs.ErrNotRegular, "../orders-0/" + name: nil,
			"": nil, ".": nil, "..": nil, ".lock": nil,
		} {
			for what, err := range map[string]error{
				"stat": second2(s.Stat(ctx, id, name)), "open": second2(s.Open(ctx, id, name)),
			} {
				if err == nil || want != nil && !errors.Is(err, want) {
					t.Errorf("%s of %q: %v, want %v", what, name, err, want)
				}
			}
		}
		if _, err := s.Open(ctx, logID(t, "orders/9"), name); !errors.Is(err, tier.ErrVanished) {
			t.Errorf("of a log that is not there: %v", err)
		}
	})
}

func second2[T any](_ T, err error) error { return err }

// TestUnmountedIsNotVanished takes the whole source away: no file of it is known to be gone.
func TestUnmountedIsNotVanished(t *testing.T) {
	t.Parallel()
	w := newMem(t)
	w.put("a/b/1.log", []byte("1"))
	w.put("a/b/2.log", []byte("2"))
	empty := newMem(t)
	mounted := w
	s := w.open(tier.LayoutPlain, func(c *logdir.Config) {
		c.Root = func() (vfs.Dir, error) { return mounted.root() }
	})
	ctx, id := context.Background(), logID(t, "a/b")
	mounted = empty
	_, errStat := s.Stat(ctx, id, "1.log")
	_, errOpen := s.Open(ctx, id, "1.log")
	_, errRead := s.Read(ctx, id, tier.Range{Base: 1, Next: 2})
	for _, err := range []error{errStat, errOpen, errRead} {
		if err == nil || errors.Is(err, tier.ErrVanished) {
			t.Errorf("got %v", err)
		}
	}
}

func TestReadWithoutPermission(t *testing.T) {
	t.Parallel()
	b, s := readable(newMem(t))
	if err := b.chmod(file("orders-0", 100, "log"), 0); err != nil {
		t.Fatal(err)
	}
	_, err := read(s, 100, 200)
	if !errors.Is(err, fs.ErrPermission) || errors.Is(err, tier.ErrDamaged) {
		t.Errorf("got %v", err)
	}
}
