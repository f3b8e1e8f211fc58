package logdir

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// TestNothingIsKeptOfWhatIsGone: logs come and go, and no lock, doubt or listing of theirs stays.
func TestNothingIsKeptOfWhatIsGone(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem(func() tier.Time { return 1 })
	s, err := Open(Config{Name: "wal", Layout: tier.LayoutPlain, LocalDelete: tier.LocalDeleteNever,
		Root: func() (vfs.Dir, error) { return mem.Sub(".") }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		dir := fmt.Sprintf("log%d", i)
		err := mem.Mkdir(dir)
		if err == nil {
			_, err = mem.Create(dir + "/1.log")
		}
		if err != nil {
			t.Fatal(err)
		}
		if res, err := s.Scan(t.Context(), 2); err != nil || len(res.Logs) != 1 {
			t.Fatalf("%+v, %v", res, err)
		}
		s.distrust(dir)
		if i == 2 {
			break
		}
		if err := errors.Join(mem.Remove(dir+"/1.log"), mem.RemoveDir(dir)); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.doubt) != 1 || len(s.locks.locks) > 0 || len(s.folders) != 2 {
		t.Errorf("%d doubts, %d locks, %d listings", len(s.doubt), len(s.locks.locks), len(s.folders))
	}
}

func TestParseOffsets(t *testing.T) {
	t.Parallel()
	got, err := parseOffsets("c", "0\n3\norders 0 5\norders 12 9223372036854775807\na.b_c-d 3 -1\n")
	want := map[tier.LogID]tier.Offset{{Table: "orders", Name: "0"}: 5,
		{Table: "orders", Name: "12"}: 1<<63 - 1}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestParseEpochs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want []tier.EpochStart
		err  string
	}{
		{"0\n0\n", nil, ""},
		{"0\n2\n3 100\n8 400\n", []tier.EpochStart{{Epoch: 3, Start: 100}, {Epoch: 8, Start: 400}},
			""},
		{"0\n1\n-1 0\n", nil, "e:3: want epoch and start offset"},
		{"0\n1\n1 -1\n", nil, "e:3: want epoch and start offset"},
		{"0\n1\n2147483648 0\n", nil, "e:3: want epoch and start offset"},
		{"0\n2\n3 100\n3 200\n", nil, "e:4: epoch 3 from 200 on does not ascend"},
		{"0\n2\n3 100\n4 99\n", nil, "e:4: epoch 4 from 99 on does not ascend"},
	} {
		got, err := parseEpochs("e", c.text)
		if c.err != "" {
			if !errors.Is(err, tier.ErrDamaged) || !strings.HasPrefix(err.Error(), c.err) {
				t.Errorf("%q: %v, want %s", c.text, err, c.err)
			}
			continue
		}
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", c.text, err, diff)
		}
	}
}

// TestPlainNames: where the pattern is simple, names are read by hand, and as by the pattern.
func TestPlainNames(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{`\.log`, `\.seg\.v1`, `-wal`, ``} {
		byHand, err := newPlain(&Config{Pattern: regexp.MustCompile(`(?P<base>\d+)` + suffix)})
		if err != nil {
			t.Fatal(err)
		}
		slow := regexp.MustCompile(`(?:)(?P<base>\d+)` + suffix)
		byPattern, err := newPlain(&Config{Pattern: slow})
		if err != nil || !byHand.plainly || byPattern.plainly {
			t.Fatalf("%s: %v, by hand %t and %t", suffix, err, byHand.plainly, byPattern.plainly)
		}
		for _, name := range []string{"1.log", "0001.log", "9223372036854775808.log", ".log", "1.logs",
			"x1.log", "1x.log", "-1.log", "1.index", "1", "1.log.2", "12.seg.v1", "7-wal", "-wal",
			"١.log", "1_log", ""} {
			base1, stem1, records1, ok1 := byHand.parse(name)
			base2, stem2, records2, ok2 := byPattern.parse(name)
			if base1 != base2 || stem1 != stem2 || records1 != records2 || ok1 != ok2 {
				t.Errorf("%q by %s: %d %q %t %t, and by the pattern %d %q %t %t", name, suffix,
					base1, stem1, records1, ok1, base2, stem2, records2, ok2)
			}
		}
	}
	any, err := newPlain(&Config{Pattern: regexp.MustCompile(`(?P<base>\d+).log`)})
	if _, _, records, _ := any.parse("1_log"); err != nil || any.plainly || !records {
		t.Errorf("a dot that is no dot: %v, by hand %t, %t", err, any.plainly, records)
	}
}

func TestEpochAt(t *testing.T) {
	t.Parallel()
	epochs := []tier.EpochStart{{Epoch: 3, Start: 100}, {Epoch: 8, Start: 400}}
	for o, want := range map[tier.Offset]tier.LeaderEpoch{99: -1, 100: 3, 399: 3, 400: 8, 1000: 8} {
		got, known := tier.EpochAt(epochs, o)
		if known != (want >= 0) || known && got != want {
			t.Errorf("at %d: %d, %v; want %d", o, got, known, want)
		}
	}
}

// FuzzCheckpoint parses anything as each kind of text file: it must not panic, and what is accepted
// must be what the text says, line for line.
func FuzzCheckpoint(f *testing.F) {
	f.Add("0\n2\norders 0 5\norders 1 7\n")
	f.Add("0\n1\n3 100\n")
	f.Add("0\n2\n7 0 100\n7 3 0 100\n")
	f.Add("version: 0\ntopic_id: dcRgLM8ISTa06_at73zWcg")
	f.Add("")
	f.Add("0\n99999999999999999999\n")
	f.Fuzz(func(t *testing.T, text string) {
		offsets, err := parseOffsets("c", text)
		if err == nil && len(offsets) > strings.Count(text, "\n") {
			t.Errorf("%d entries of %q", len(offsets), text)
		}
		for id, o := range offsets {
			if o < 0 || !isPartition(id.Name) || !strings.Contains(text, id.Table+" "+id.Name+" ") {
				t.Errorf("%s at %d of %q", id, o, text)
			}
		}
		if err != nil && (offsets != nil || !errors.Is(err, tier.ErrDamaged)) {
			t.Errorf("%v, and %v", err, offsets)
		}
		buckets, err := parseBuckets("b", text)
		for key, o := range buckets {
			ids := strings.ReplaceAll(key.ids.Incarnation(), "/", " ")
			if o < 0 || !strings.Contains(text, fmt.Sprintf("\n%s ", ids)) {
				t.Errorf("bucket %d of %s at %d of %q", key.bucket, ids, o, text)
			}
		}
		if err != nil && (buckets != nil || !errors.Is(err, tier.ErrDamaged)) {
			t.Errorf("%v, and %v", err, buckets)
		}
		epochs, err := parseEpochs("e", text)
		for i := range epochs {
			if i > 0 && epochs[i].Epoch <= epochs[i-1].Epoch {
				t.Errorf("%v of %q", epochs, text)
			}
		}
		if err != nil && (epochs != nil || !errors.Is(err, tier.ErrDamaged)) {
			t.Errorf("%v, and %v", err, epochs)
		}
		if id, err := parseTopicID("p", text); (id == "") != (err != nil) {
			t.Errorf("id %q, %v", id, err)
		}
	})
}

// FuzzIndex compares anything, as an index of each kind, with a log of three batches. An index that
// fits must keep what it promises: from every entry on, nothing is missed.
func FuzzIndex(f *testing.F) {
	log := []kbatch.Batch{
		{Position: 0, Size: 100, Base: 50, Last: 59, MaxTimestamp: 1000},
		{Position: 100, Size: 100, Base: 60, Last: 60, MaxTimestamp: -1},
		{Position: 200, Size: 100, Base: 70, Last: 79, MaxTimestamp: 900},
	}
	f.Add([]byte{0, 0, 0, 10, 0, 0, 0, 100, 0, 0, 0, 29, 0, 0, 0, 200})
	f.Add([]byte{0, 0, 0, 0, 0, 0, 3, 232, 0, 0, 0, 9})
	f.Add(make([]byte, 34))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, ext := range []string{extIndex, extTimeIndex, extTxnIndex} {
			in := bytes.NewReader(data)
			c := newIndexCheck(ext, in)
			seen := &seenBatches{base: 50, next: 50, maxTime: kbatch.NoTimestamp}
			for i := range log {
				seen.see(&log[i])
				c.advance(seen)
			}
			seen.pass()
			err := c.end(seen)
			if err != nil && !errors.Is(err, tier.ErrDamaged) {
				t.Fatalf("%s: %v", ext, err)
			}
			if err != nil {
				continue
			}
			if in.Len() > 0 || len(data)%len(c.buf) != 0 {
				t.Fatalf("%s: fits, and %d bytes of %d were not read", ext, in.Len(), len(data))
			}
			if ext == extIndex && len(data) > 3*indexEntryBytes {
				t.Fatalf("more entries than batches fit: %x", data)
			}
			for e := data; ext == extIndex && len(e) > 0; e = e[indexEntryBytes:] {
				missed(t, log, e)
			}
		}
	})
}

// missed fails if a reader that looks the entry's offset up misses a batch.
func missed(t *testing.T, log []kbatch.Batch, e []byte) {
	t.Helper()
	offset, position := tier.Offset(50+int(e[3])), int64(e[7])
	found := false
	for _, b := range log {
		found = found || b.Position == position
		if b.Position < position && b.Last >= offset {
			t.Fatalf("from offset %d at byte %d on, the batch %+v is missed", offset, position, b)
		}
	}
	if !found {
		t.Fatalf("no batch at byte %d", position)
	}
}
