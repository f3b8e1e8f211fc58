package logdir_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/logdir/kbatch/kbatchtest"
	"github.com/tierd/tierd/runtime/tier"
)

const (
	fileTabletHW = "high-watermark-checkpoint"
	fileDisk     = "disk.properties"
)

// tablet fills a world like the data directory of a Fluss tablet server.
type tablet struct{ *world }

func newTablet(w *world) *tablet {
	w.put(fileTabletHW, []byte("0\n0\n"))
	return &tablet{w}
}

// lines are the text of a checkpoint.
func lines(entries ...string) []byte {
	return fmt.Appendf(nil, "0\n%d\n%s", len(entries), strings.Join(append(entries, ""), "\n"))
}

// seg writes a segment [base, next) of batches with ten records, one of each magic by turns, with
// its indexes and its snapshot.
func (w *tablet) seg(dir string, base, next tier.Offset) {
	w.t.Helper()
	log, index, timeindex := flussSegmentBytes(base, next)
	w.put(file(dir, base, "log"), log)
	w.put(file(dir, base, "index"), index)
	w.put(file(dir, base, "timeindex"), timeindex)
	if base > 0 {
		w.put(file(dir, base, "writer_snapshot"), []byte(`{"version":1,"writer_id_entries":[]}`))
	}
}

func flussSegmentBytes(base, next tier.Offset) (log, index, timeindex []byte) {
	for o, n := base, 0; o < next; o, n = o+10, n+1 {
		last := min(o+9, next-1)
		millis := int64(o)*1000 + 1
		if n%4 == 1 {
			index = be32(be32(index, int64(last-base)), int64(len(log)))
			timeindex = be32(be64(timeindex, millis), int64(o-base))
		}
		log = kbatchtest.Fluss(log, int8(n%3), kbatchtest.Spec{Base: o, Last: last, Epoch: 7,
			MaxTimestamp: millis, Body: 40})
	}
	return log, index, timeindex
}

func TestFlussClosed(t *testing.T) {
	t.Parallel()
	const dir = "shop/orders-7/log-0"
	for _, c := range []struct {
		name         string
		syncs        bool
		marks, point []string
		want         string
	}{
		{"nothing known", false, nil, nil, "0-100?hw 100-200?hw 200-250?roll"},
		{"replicated in part", false, []string{"7 0 199"}, nil, "0-100 100-200?hw 200-250?roll"},
		{"no recovery points", false, []string{"7 0 250"}, nil, "0-100 100-200 200-250?roll"},
		{"none reached", true, []string{"7 0 250"}, nil, "0-100?rp 100-200?rp 200-250?roll"},
		{"one reached", true, []string{"7 0 250"}, []string{"7 0 199"},
			"0-100 100-200?rp 200-250?roll"},
		{"of other ids", false, []string{"6 0 250", "7 1 250", "7 0 0 250"}, nil,
			"0-100?hw 100-200?hw 200-250?roll"},
		{"negative", false, []string{"7 0 -1"}, nil, "0-100?hw 100-200?hw 200-250?roll"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newTablet(newMem(t))
			for base := tier.Offset(0); base < 250; base += 100 {
				w.seg(dir, base, min(base+100, 250))
			}
			w.put(fileTabletHW, lines(c.marks...))
			if c.syncs {
				w.put(fileDisk, []byte("version=1\n"))
				w.put(fileRP, lines(c.point...))
			}
			res := scan(t, w.open(tier.LayoutFluss), now)
			if len(res.Scans) != 1 || shape(res.Scans[0]) != c.want || !res.Scans[0].Whole ||
				codes(res.Problems) != "" || res.Scans[0].Incarnation != "7" {
				t.Errorf("%+v, want %s", res, c.want)
			}
		})
	}
}

func TestFlussCheckpoints(t *testing.T) {
	t.Parallel()
	const words = "want table id, partition id if it has one, bucket and offset"
	for text, want := range map[string]string{
		"":                                 "",
		"0\n1\n7 0 250\n":                  "",
		"0\n1\n7 3 0 250\n":                "",
		"1\n0\n":                           `high-watermark-checkpoint:1: version "1"`,
		"0\nx\n":                           "high-watermark-checkpoint:2: want the number of entries",
		"0\n2\n7 0 250\n":                  "the file has 1 entries, and says that it has 2",
		"0\n1\n7 0 250":                    "high-watermark-checkpoint:3: the line does not end",
		"0\n1\n7 250\n":                    "want 3 or 4 words",
		"0\n1\n7 3 0 1 250\n":              "want 3 or 4 words",
		"0\n1\norders 0 250\n":             words,
		"0\n1\n7 -3 0 250\n":               words,
		"0\n1\n7 -1 250\n":                 words,
		"0\n1\n7 0 many\n":                 words,
		"0\n2\n7 0 250\n7 0 250\n":         "the bucket 0 of 7 stands there twice",
		"0\n1\n7 0 99999999999999999999\n": "want table id",
	} {
		w := newTablet(newMem(t))
		w.seg("shop/orders-7/log-0", 0, 100)
		w.put(fileTabletHW, []byte(text))
		res := scan(t, w.open(tier.LayoutFluss), now)
		got := ""
		for _, p := range res.Problems {
			got += p.Path + ":" + p.Text
		}
		if want == "" != (got == "") || !strings.Contains(got, want) ||
			res.Scans[0].Whole != (want == "") {
			t.Errorf("%q: whole %v, %q; want %q", text, res.Scans[0].Whole, got, want)
		}
	}
}

// TestFlussNames has directories that are buckets, and others that are not.
func TestFlussNames(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, mem *world) {
		w := newTablet(mem)
		for _, dir := range []string{"shop/orders-7/log-0", "shop/orders-7/log-12",
			"shop/rows-1-8/log-0", "shop/visits-9/2024-01-01-p3/log-0",
			"shop/sales-10/2024$us-p4/log-1", "fluss/orders-11/log-0"} {
			w.seg(dir, 0, 100)
		}
		for _, dir := range []string{"shop/orders/log-0", "shop/orders-x/log-0", "shop/orders-7/kv-3",
			"shop/orders-7/log-01", "shop/orders-7/log-", "shop/orders-7/log", "__sys/orders-7/log-0",
			"shop/__orders-7/log-0", "shop/visits-9/2024/log-0", "shop/visits-9/-p3/log-0",
			"shop/visits-9/2024-p3/deeper-p4/log-0", "log-0", "shop/log-0", "shop-1/log-0",
			"shop/orders-7/log-0/log-0", "shop/orders-7/log-99999999999", ".shop/orders-7/log-0",
			"remote-log-index-cache/x"} {
			w.put(dir+"/00000000000000000000.log", nil)
		}
		w.put("shop/orders-7/log-5", []byte("no directory"))
		s := w.open(tier.LayoutFluss)
		const want = "fluss.orders/0 shop.orders/0 shop.orders/12 shop.rows-1/0 " +
			"shop.sales/2024$us-1 shop.visits/2024-01-01-0"
		for range 2 { // the second time as it is remembered
			if res := scan(t, s, now); ids(res.Logs) != want || codes(res.Problems) != "" {
				t.Errorf("%s, problems %s; want %s", ids(res.Logs), codes(res.Problems), want)
			}
		}
		for _, id := range strings.Fields(want) {
			if got := look(t, s, id); got.Log.String() != id || len(got.Segments) != 1 {
				t.Errorf("%s: %+v", id, got)
			}
		}
		for _, id := range []string{"shop.orders/1", "shop.visits/2024-01-01-1", "shop.visits/0",
			"shop.orders/2024-0", "orders/0", "__sys.orders/0", "shop.__orders/0", "none.orders/0"} {
			if _, _, err := s.Look(context.Background(), logID(t, id)); !errors.Is(err,
				tier.ErrVanished) {
				t.Errorf("%s: %v, want vanished", id, err)
			}
		}
	})
}

// TestFlussRescan lets directories come and go at each level, and wants them seen.
func TestFlussRescan(t *testing.T) {
	t.Parallel()
	w := newTablet(newMem(t))
	w.seg("shop/orders-7/log-0", 0, 100)
	s := w.open(tier.LayoutFluss)
	at := now
	want := func(step, logs string) {
		t.Helper()
		if res := scan(t, s, at); ids(res.Logs) != logs {
			t.Errorf("%s: %s, want %s", step, ids(res.Logs), logs)
		}
		at += minute
		*w.clock = at - 30*second
	}
	want("at first", "shop.orders/0")
	w.seg("shop/orders-7/log-1", 0, 100)
	want("a bucket", "shop.orders/0 shop.orders/1")
	w.seg("shop/visits-8/a-p1/log-0", 0, 100)
	want("a table", "shop.orders/0 shop.orders/1 shop.visits/a-0")
	w.seg("shop/visits-8/b-p2/log-0", 0, 100)
	want("a partition", "shop.orders/0 shop.orders/1 shop.visits/a-0 shop.visits/b-0")
	w.seg("new/orders-9/log-0", 0, 100)
	want("a database", "new.orders/0 shop.orders/0 shop.orders/1 shop.visits/a-0 shop.visits/b-0")
	for _, ext := range []string{"log", "index", "timeindex"} {
		w.remove(file("shop/visits-8/a-p1/log-0", 0, ext))
	}
	w.rmdirs("shop/visits-8/a-p1/log-0", "shop/visits-8/a-p1")
	want("a partition goes", "new.orders/0 shop.orders/0 shop.orders/1 shop.visits/b-0")
}

// TestFlussRescanDistrustsYoungTimes adds buckets within the granularity of mtimes: the directories
// above look as they did.
func TestFlussRescanDistrustsYoungTimes(t *testing.T) {
	t.Parallel()
	w := newTablet(newMem(t))
	*w.clock = now
	w.seg("shop/visits-7/a-p0/log-0", 0, 100)
	s := w.open(tier.LayoutFluss)
	logs := []string{"shop.visits/a-0"}
	for i, dir := range []string{"shop/visits-7/a-p0/log-1", "shop/visits-7/b-p1/log-0",
		"shop/visits-8/b-p2/log-1"} {
		if res := scan(t, s, now+second); len(res.Logs) != len(logs) {
			t.Fatalf("%s, want %v", ids(res.Logs), logs)
		}
		w.seg(dir, 0, 100)
		logs = append(logs, []string{"shop.visits/a-1", "shop.visits/b-0", "shop.visits/b-1"}[i])
	}
	if res := scan(t, s, now+second); ids(res.Logs) != strings.Join(logs, " ") {
		t.Errorf("%s, want %v", ids(res.Logs), logs)
	}
}

// rmdirs removes empty directories.
func (w *tablet) rmdirs(dirs ...string) {
	w.t.Helper()
	for _, dir := range dirs {
		if err := w.dir.RemoveDir(dir); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestFlussMadeAnew has a table beside its dropped namesake: neither is taken for the log until one
// is gone, and then it is another one than before.
func TestFlussMadeAnew(t *testing.T) {
	t.Parallel()
	w := newTablet(newMem(t))
	w.seg("shop/orders-7/log-0", 0, 100)
	s := w.open(tier.LayoutFluss)
	if res := scan(t, s, now); res.Scans[0].Incarnation != "7" {
		t.Fatalf("%+v", res.Scans[0])
	}
	*w.clock = now
	w.seg("shop/orders-8/log-0", 0, 100)
	res := scan(t, s, now+minute)
	if len(res.Scans) != 1 || res.Scans[0].Whole || len(res.Scans[0].Segments) > 0 ||
		codes(res.Scans[0].Problems) != "shop/orders-7/log-0:duplicate-log" ||
		!strings.Contains(res.Scans[0].Problems[0].Text, "its tablet server removes it") {
		t.Errorf("%+v", res.Scans)
	}
	if got := look(t, s, "shop.orders/0"); got.Whole || codes(got.Problems) !=
		"shop/orders-7/log-0:duplicate-log" {
		t.Errorf("%+v", got)
	}
	for _, ext := range []string{"log", "index", "timeindex"} {
		w.remove(file("shop/orders-7/log-0", 0, ext))
	}
	w.rmdirs("shop/orders-7/log-0")
	got := scan(t, s, now+2*minute).Scans[0]
	if !got.Whole || got.Incarnation != "8" || shape(got) != "0-100?roll" {
		t.Errorf("%+v", got)
	}
}

// TestFlussChangelog tells logs of appends from those that a table is recovered from.
func TestFlussChangelog(t *testing.T) {
	t.Parallel()
	changes := kbatchtest.Fluss(nil, 0, kbatchtest.Spec{Last: 9, Changes: true})
	for _, c := range []struct {
		name string
		log  []byte
		kv   bool
		want bool
	}{
		{"appends", kbatchtest.Fluss(nil, 2, kbatchtest.Spec{Last: 9}), false, false},
		{"changes", changes, false, true},
		{"appends beside a table", kbatchtest.Fluss(nil, 1, kbatchtest.Spec{Last: 9}), true, true},
		{"empty", nil, false, false},
		{"damaged", bytes.Repeat([]byte{0xff}, 60), false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newTablet(newMem(t))
			w.put("shop/orders-7/log-3/00000000000000000000.log", c.log)
			w.put("shop/orders-7/log-3/00000000000000000010.log", nil)
			w.mkdirs("shop/orders-7/kv-2")
			if c.kv {
				w.mkdirs("shop/orders-7/kv-3")
			}
			got := scan(t, w.open(tier.LayoutFluss), now).Scans[0]
			if got.Changelog != c.want {
				t.Errorf("changelog %v, want %v", got.Changelog, c.want)
			}
		})
	}
}

// TestFlussRead reads a segment of every magic, whole and with damage.
func TestFlussRead(t *testing.T) {
	t.Parallel()
	const dir = "shop/visits-7/a-p3/log-0"
	id, r := logID(t, "shop.visits/a-0"), tier.Range{Base: 100, Next: 200}
	whole := func(t *testing.T) (*tablet, *logdir.Source) {
		w := newTablet(newMem(t))
		w.seg(dir, 100, 200)
		w.seg(dir, 200, 250)
		return w, w.open(tier.LayoutFluss)
	}
	_, s := whole(t)
	c, err := s.Read(context.Background(), id, r)
	if err != nil || len(c.Problems) > 0 {
		t.Fatalf("%v, %v", err, c.Problems)
	}
	var names []string
	for _, f := range c.Files {
		names = append(names, strings.TrimPrefix(f.Name, "00000000000000000100"))
	}
	// Magics 0 and 1 carry no epoch, magic 2 does.
	if got := strings.Join(names, " "); got != ".log .index .timeindex .writer_snapshot" ||
		c.Batches != 10 || c.LastNext != 200 || c.MaxTime != 190_001*1e6 ||
		!slices.Equal(c.Lineage[:1], []tier.EpochStart{{Epoch: 7, Start: 120}}) {
		t.Errorf("%s, %+v", got, c)
	}
	for _, x := range []struct {
		name, want string
		change     func(w *tablet, log []byte) []byte
	}{
		{"a bit", "crc", func(_ *tablet, log []byte) []byte { log[60] ^= 1; return log }},
		{"a bit of magic 2", "crc", func(_ *tablet, log []byte) []byte { log[250] ^= 1; return log }},
		{"cut", "cut short", func(_ *tablet, log []byte) []byte { return log[:len(log)-1] }},
		{"zeros", "a length of 0", func(_ *tablet, log []byte) []byte {
			return append(log, make([]byte, 64)...)
		}},
		{"of Kafka", "records in", func(*tablet, []byte) []byte {
			log, _, _ := segment(100, 200)
			return log
		}},
		{"below the base", "below the segment's base", func(*tablet, []byte) []byte {
			return kbatchtest.Fluss(nil, 0, kbatchtest.Spec{Base: 99, Last: 110})
		}},
		{"into the next", "and the next segment begins", func(*tablet, []byte) []byte {
			return kbatchtest.Fluss(nil, 0, kbatchtest.Spec{Base: 100, Last: 200})
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			w, s := whole(t)
			log, _, _ := flussSegmentBytes(100, 200)
			w.put(file(dir, 100, "log"), x.change(w, log))
			_, err := s.Read(context.Background(), id, r)
			if !errors.Is(err, tier.ErrDamaged) || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%v, want %q", err, x.want)
			}
		})
	}
	w, s := whole(t)
	w.put(file(dir, 100, "timeindex"), be32(be64(nil, 1), 95))
	if c, err = s.Read(context.Background(), id, r); err != nil || len(c.Files) != 3 ||
		codes(c.Problems) != dir+"/00000000000000000100.timeindex:index-mismatch" {
		t.Errorf("an index of another log: %v, %+v", err, c)
	}
}

// TestFlussBatches walks across segments: of magics without epoch, nothing is known.
func TestFlussBatches(t *testing.T) {
	t.Parallel()
	w := newTablet(newMem(t))
	w.seg("shop/orders-7/log-0", 0, 30)
	w.seg("shop/orders-7/log-0", 30, 50)
	s := w.open(tier.LayoutFluss)
	var got []string
	err := s.Batches(context.Background(), logID(t, "shop.orders/0"), tier.Range{Base: 15, Next: 45},
		func(b tier.Range, e tier.LeaderEpoch) error {
			got = append(got, fmt.Sprintf("%s@%d", b, e))
			return nil
		})
	const want = "[10, 20)@-1 [20, 30)@7 [30, 40)@-1 [40, 50)@-1"
	if err != nil || strings.Join(got, " ") != want {
		t.Errorf("%v, %s; want %s", err, strings.Join(got, " "), want)
	}
}

func TestFlussTrouble(t *testing.T) {
	t.Parallel()
	w := newMem(t)
	w.put("shop/orders-7/log-0/00000000000000000000.log", nil)
	w.put(fileRP, lines()) // a Kafka broker writes that too
	res, err := w.open(tier.LayoutFluss).Scan(context.Background(), now)
	if err != nil || res.Trouble == nil || res.Trouble.Code != tier.CodeSourceVanished ||
		!strings.Contains(res.Trouble.Text, "want a data directory of a Fluss tablet server") {
		t.Errorf("%v, %+v", err, res)
	}
	w.put(fileDisk, []byte("version=1\n"))
	res = scan(t, w.open(tier.LayoutFluss), now)
	if codes(res.Problems) != fileTabletHW+":unreadable" || ids(res.Logs) != "shop.orders/0" ||
		shape(res.Scans[0]) != "0-0?roll" {
		t.Errorf("without high watermarks: %+v", res)
	}
	empty := newTablet(newMem(t))
	empty.mkdirs("shop/orders-7/log-0")
	res = scan(t, empty.open(tier.LayoutFluss), now)
	if codes(res.Scans[0].Problems) != "shop/orders-7/log-0:source-vanished" ||
		res.Scans[0].Problems[0].Text != "a bucket without any segment" {
		t.Errorf("%+v", res.Scans)
	}
	for _, way := range []tier.LocalDelete{tier.LocalDeleteRecords, tier.LocalDeleteUnlink} {
		_, err := logdir.Open(logdir.Config{Name: "a", Layout: tier.LayoutFluss, Root: w.root,
			LocalDelete: way})
		if err == nil {
			t.Errorf("local delete %s without a broker or a lock is taken", way)
		}
	}
}

// TestFlussUnreadable has directories at each level that cannot be read: what is known to be below
// them is not gone.
func TestFlussUnreadable(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"shop", "shop/visits-7", "shop/visits-7/a-p3",
		"shop/visits-7/a-p3/log-0"} {
		w := newTablet(newMem(t))
		w.seg("shop/visits-7/a-p3/log-0", 0, 100)
		s := w.open(tier.LayoutFluss)
		scan(t, s, now)
		*w.clock = now
		if err := w.chmod(dir, 0); err != nil {
			t.Fatal(err)
		}
		res := scan(t, s, now+20*minute)
		if ids(res.Logs) != "shop.visits/a-0" || len(res.Scans) != 1 || res.Scans[0].Whole ||
			!strings.Contains(codes(res.Problems), dir+":unreadable") {
			t.Errorf("%s: %+v", dir, res)
		}
	}
}
