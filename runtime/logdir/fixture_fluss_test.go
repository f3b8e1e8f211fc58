package logdir_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/tier"
)

// flussFixtures are data directories of a real tablet server; expected.json in each is what Fluss's
// own classes and a real client say of it. See testdata/fluss/generate.sh.
const flussFixtures = "../../testdata/fluss"

type flussFixture struct {
	CleanShutdown bool `json:"clean_shutdown"`
	Logs          []flussLog
}

type flussLog struct {
	Dir, Database, Table, Partition string
	TableID                         int64 `json:"table_id"`
	PartitionID                     int64 `json:"partition_id"`
	Bucket                          int32
	HighWatermark                   tier.Offset `json:"high_watermark"`
	PrimaryKey                      bool        `json:"primary_key"`
	ReadTo                          tier.Offset `json:"read_to"`
	Segments                        []flussSegment
}

type flussSegment struct {
	Base, Next        tier.Offset
	Batches, Records  int64
	EmptyBatches      int64 `json:"empty_batches"`
	AppendOnlyBatches int64 `json:"append_only_batches"`
	MaxTimestamp      int64 `json:"max_timestamp"`
	Magics            []int8
	Writers           []int64
	Files             []flussFile
}

type flussFile struct {
	Name   string
	Size   int64
	SHA256 tier.SHA256
}

func readFlussFixture(t *testing.T, dir string) flussFixture {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var f flussFixture
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Logs) == 0 {
		t.Fatalf("%s expects no logs", dir)
	}
	return f
}

// id is the log's id, spelt out apart from what the layout does.
func (l *flussLog) id() tier.LogID {
	name := string(rune('0' + l.Bucket))
	if l.Partition != "" {
		name = l.Partition + "-" + name
	}
	return tier.LogID{Table: l.Database + "." + l.Table, Name: name}
}

// TestFlussFixtures compares what a source says of real directories with what Fluss says: every
// log, every segment, the headers of every batch and the digest of every file.
func TestFlussFixtures(t *testing.T) {
	t.Parallel()
	for _, set := range []string{"v0", "v0-live", "v1", "v1-live"} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(flussFixtures, set)
			want := readFlussFixture(t, dir)
			s, err := logdir.Open(logdir.Config{Name: "tablets", Layout: tier.LayoutFluss,
				Root: osRoot(dir), LocalDelete: tier.LocalDeleteNever})
			if err != nil {
				t.Fatal(err)
			}
			res, err := s.Scan(context.Background(), tier.TimeOf(time.Unix(1<<31, 0)))
			if err != nil || res.Trouble != nil || len(res.Problems) > 0 {
				t.Fatalf("%v, %+v", err, res)
			}
			if len(res.Logs) != len(want.Logs) || len(res.Scans) != len(want.Logs) {
				t.Errorf("logs %v, want %d of them", res.Logs, len(want.Logs))
			}
			for _, l := range want.Logs {
				id := l.id()
				i := slices.IndexFunc(res.Scans, func(s tier.Scan) bool { return s.Log == id })
				if i < 0 {
					t.Errorf("%s is not found", l.id())
					continue
				}
				compareBucket(t, l, res.Scans[i])
				again := look(t, s, l.id().String())
				if diff := cmp.Diff(res.Scans[i], again); diff != "" {
					t.Errorf("%s looks otherwise (-scan +look):\n%s", l.Dir, diff)
				}
				for i, seg := range l.Segments {
					decodeFluss(t, filepath.Join(dir, l.Dir), seg)
					if i < len(l.Segments)-1 {
						readFluss(t, s, l.id(), seg, l.Segments[i+1].Base)
					}
				}
			}
		})
	}
}

// TestFlussMain compares every batch of a segment of all magics with what the classes of Fluss's
// main branch, which wrote it, read in it.
func TestFlussMain(t *testing.T) {
	t.Parallel()
	type batch struct {
		Position, Size  int64
		Magic           int8
		Base, Last      tier.Offset
		Epoch           tier.LeaderEpoch
		CommitTimestamp int64 `json:"commit_timestamp"`
		Writer          int64
		Records         int32
		CRC             uint32
		AppendOnly      bool `json:"append_only"`
	}
	var want, got []batch
	text, err := os.ReadFile(filepath.Join(flussFixtures, "main", "expected.json"))
	if err == nil {
		err = json.Unmarshal(text, &want)
	}
	data, errLog := os.ReadFile(filepath.Join(flussFixtures, "main", "batches.log"))
	if err != nil || errLog != nil || len(want) < 16 {
		t.Fatalf("%v, %v, %d batches", err, errLog, len(want))
	}
	w := kbatch.Fluss.NewWalker(int64(len(data)), func(b kbatch.Batch) error {
		got = append(got, batch{b.Position, b.Size, b.Magic, b.Base, b.Last, b.Epoch, b.MaxTimestamp,
			b.ProducerID, b.Records, b.CRC, b.AppendOnly})
		return nil
	})
	_, err = w.Write(data)
	if errClose := w.Close(); err != nil || errClose != nil {
		t.Error(err, errClose)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-fluss +tierd):\n%s", diff)
	}
	mem := newTablet(newMem(t))
	mem.put(file("shop/orders-7/log-0", 1000, "log"), data)
	mem.put(file("shop/orders-7/log-0", 1115, "log"), nil)
	c, err := mem.open(tier.LayoutFluss).Read(context.Background(), logID(t, "shop.orders/0"),
		tier.Range{Base: 1000, Next: 1115})
	if err != nil || c.Batches != int64(len(want)) || c.LastNext != 1115 {
		t.Errorf("%v, %+v", err, c)
	}
}

func compareBucket(t *testing.T, l flussLog, scan tier.Scan) {
	t.Helper()
	ids := tier.FlussIDs{Table: l.TableID, Partition: l.PartitionID}
	// A batch without records at the end is read past, and not noticed.
	end := l.Segments[len(l.Segments)-1].Next
	if scan.Dir != l.Dir || scan.LocalEnd != end || l.ReadTo > end || scan.SourceStart != 0 ||
		!scan.Whole || scan.HighWatermark != l.HighWatermark || scan.Incarnation != ids.Incarnation() ||
		scan.Changelog != l.PrimaryKey || len(scan.Problems) > 0 {
		t.Errorf("%+v, want %+v", scan, l)
	}
	if len(scan.Segments) != len(l.Segments) {
		t.Fatalf("%s: %d segments, want %d", l.Dir, len(scan.Segments), len(l.Segments))
	}
	for i, got := range scan.Segments {
		want := l.Segments[i]
		next, waits := want.Next, tier.WaitsForRoll
		if i < len(l.Segments)-1 {
			next, waits = l.Segments[i+1].Base, tier.WaitsForNothing
		}
		var bytes int64
		for _, f := range want.Files {
			bytes += f.Size
		}
		if got.Base != want.Base || got.Next != next || got.Bytes != bytes || got.Waits != waits {
			t.Errorf("%s: segment %s of %d bytes waits for %s, want [%d, %d) of %d", l.Dir, got.Range,
				got.Bytes, got.Waits.Code(), want.Base, next, bytes)
		}
	}
}

// readFluss copies a closed segment's content, and wants all of its files, the log first.
func readFluss(t *testing.T, s *logdir.Source, id tier.LogID, want flussSegment,
	next tier.Offset) {
	t.Helper()
	r := tier.Range{Base: want.Base, Next: next}
	c, err := s.Read(context.Background(), id, r)
	if err != nil || len(c.Problems) > 0 {
		t.Errorf("%s %s: %v %v", id, r, err, c.Problems)
		return
	}
	if c.Batches != want.Batches || c.LastNext != want.Next ||
		c.MaxTime != tier.Time(want.MaxTimestamp*1e6) || len(c.Lineage) > 0 {
		t.Errorf("%s %s: %+v, want %+v", id, r, c, want)
	}
	if len(c.Files) != len(want.Files) || !strings.HasSuffix(c.Files[0].Name, ".log") {
		t.Errorf("%s %s: files %+v, want %+v", id, r, c.Files, want.Files)
	}
	for _, f := range want.Files {
		if !slices.ContainsFunc(c.Files, func(g tier.SourceFile) bool {
			return g.Name == f.Name && g.SHA256 == f.SHA256 && g.Size == f.Size
		}) {
			t.Errorf("%s: %s is not read, or has another digest", id, f.Name)
		}
	}
}

// decodeFluss walks through a segment, and compares what the headers say with what Fluss says.
func decodeFluss(t *testing.T, dir string, want flussSegment) {
	t.Helper()
	i := slices.IndexFunc(want.Files, func(f flussFile) bool {
		return strings.HasSuffix(f.Name, ".log")
	})
	data, err := os.ReadFile(filepath.Join(dir, want.Files[i].Name))
	if err != nil {
		t.Fatal(err)
	}
	got := flussSegment{Base: want.Base, Next: want.Base, MaxTimestamp: -1, Files: want.Files,
		Magics: []int8{}, Writers: []int64{}}
	w := kbatch.Fluss.NewWalker(int64(len(data)), func(b kbatch.Batch) error {
		got.Next = b.Next()
		got.Batches++
		got.Records += int64(b.Records)
		got.MaxTimestamp = max(got.MaxTimestamp, b.MaxTimestamp)
		got.Magics = append(got.Magics, b.Magic)
		got.Writers = append(got.Writers, b.ProducerID)
		if b.AppendOnly {
			got.AppendOnlyBatches++
		}
		if b.Records == 0 {
			got.EmptyBatches++
		}
		return nil
	})
	_, err = w.Write(data)
	if errClose := w.Close(); err != nil || errClose != nil {
		t.Errorf("%s: %v, %v", want.Files[i].Name, err, errClose)
	}
	slices.Sort(got.Magics)
	got.Magics = slices.Compact(got.Magics)
	slices.Sort(got.Writers)
	got.Writers = slices.Compact(got.Writers)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s/%s (-fluss +tierd):\n%s", dir, want.Files[i].Name, diff)
	}
}
