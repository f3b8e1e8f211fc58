package logdir_test

import (
	"bytes"
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
	"github.com/tierd/tierd/runtime/vfs"
)

// fixtures are log directories of real brokers; expected.json in each is what Kafka's own classes
// and a real consumer say of it. See testdata/kafka/generate.sh.
const fixtures = "../../testdata/kafka"

type fixture struct {
	CleanShutdown bool `json:"clean_shutdown"`
	Partitions    []fixturePartition
}

type fixturePartition struct {
	Dir           string
	TopicID       string            `json:"topic_id"`
	CleanupPolicy string            `json:"cleanup_policy"`
	LogStart      tier.Offset       `json:"log_start"`
	HighWatermark tier.Offset       `json:"high_watermark"`
	LogEnd        tier.Offset       `json:"log_end"`
	LeaderEpochs  []fixtureEpoch    `json:"leader_epochs"`
	Aborted       []json.RawMessage `json:"aborted"`
	Segments      []fixtureSegment
	OtherFiles    []struct{ Name string } `json:"other_files"`
}

// incarnation is the topic id if the broker wrote it down: older ones, and newer ones that speak an
// old protocol, do not.
func (p fixturePartition) incarnation() string {
	for _, f := range p.OtherFiles {
		if f.Name == "partition.metadata" {
			return p.TopicID
		}
	}
	return ""
}

type fixtureEpoch struct {
	Epoch tier.LeaderEpoch
	Start tier.Offset `json:"start_offset"`
}

type fixtureSegment struct {
	Base, Next     tier.Offset
	Batches        int64
	ControlBatches int64 `json:"control_batches"`
	EmptyBatches   int64 `json:"empty_batches"`
	Records        int64
	MaxTimestamp   int64    `json:"max_timestamp"`
	TimestampTypes []string `json:"timestamp_types"`
	Codecs         []string
	Magics         []int8
	DeleteHorizon  bool `json:"delete_horizon"`
	Files          []struct {
		Name   string
		Size   int64
		SHA256 tier.SHA256
	}
}

func fixtureDirs(t *testing.T) []string {
	dirs, err := filepath.Glob(filepath.Join(fixtures, "*", "expected.json"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no fixtures in %s: %v", fixtures, err)
	}
	for i := range dirs {
		dirs[i] = filepath.Dir(dirs[i])
	}
	return dirs
}

func readFixture(t *testing.T, dir string) fixture {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var f fixture
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Partitions) == 0 {
		t.Fatalf("%s expects no partitions", dir)
	}
	return f
}

func osRoot(dir string) func() (vfs.Dir, error) {
	return func() (vfs.Dir, error) { return vfs.OpenOS(dir) }
}

func openKafka(t *testing.T, root func() (vfs.Dir, error)) *logdir.Source {
	t.Helper()
	s, err := logdir.Open(logdir.Config{Name: "broker", Layout: tier.LayoutKafka, Root: root,
		LocalDelete: tier.LocalDeleteNever})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFixturesAreScannedAndRead compares what a source says of real directories with what Kafka
// says: every log, every segment and the digest of every file.
func TestFixturesAreScannedAndRead(t *testing.T) {
	t.Parallel()
	for _, dir := range fixtureDirs(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			want := readFixture(t, dir)
			s := openKafka(t, osRoot(dir))
			res, err := s.Scan(context.Background(), tier.TimeOf(time.Unix(1<<31, 0)))
			if err != nil || res.Trouble != nil || len(res.Problems) > 0 {
				t.Fatalf("%v, %+v", err, res)
			}
			if len(res.Logs) != len(want.Partitions) || len(res.Scans) != len(want.Partitions) {
				t.Errorf("logs %v, want %d of them", res.Logs, len(want.Partitions))
			}
			for _, p := range want.Partitions {
				i := slices.IndexFunc(res.Scans, func(s tier.Scan) bool { return s.Dir == p.Dir })
				if i < 0 {
					t.Errorf("%s is not found", p.Dir)
					continue
				}
				compareScan(t, want.CleanShutdown, p, res.Scans[i])
				compareReads(t, s, p, res.Scans[i])
			}
		})
	}
}

func compareScan(t *testing.T, clean bool, p fixturePartition, scan tier.Scan) {
	t.Helper()
	if scan.LocalEnd != p.LogEnd || scan.SourceStart != p.LogStart || !scan.Whole ||
		scan.Incarnation != p.incarnation() || len(scan.Problems) > 0 {
		t.Errorf("%s: %+v, want start %d, end %d, id %q", p.Dir, scan, p.LogStart, p.LogEnd,
			p.incarnation())
	}
	if clean && scan.HighWatermark != p.HighWatermark || scan.HighWatermark > p.HighWatermark {
		t.Errorf("%s: high watermark %d, want %d", p.Dir, scan.HighWatermark, p.HighWatermark)
	}
	if p.CleanupPolicy == "compact" && !scan.Compacted {
		t.Errorf("%s: not seen to be compacted", p.Dir)
	}
	if len(scan.Segments) != len(p.Segments) {
		t.Fatalf("%s: %d segments, want %d", p.Dir, len(scan.Segments), len(p.Segments))
	}
	for i, got := range scan.Segments {
		want := p.Segments[i]
		next, waits := want.Next, tier.WaitsForRoll
		if i < len(p.Segments)-1 {
			next, waits = p.Segments[i+1].Base, tier.WaitsForNothing
		}
		var bytes int64
		for _, f := range want.Files {
			bytes += f.Size
		}
		if got.Base != want.Base || got.Next != next || got.Bytes != bytes {
			t.Errorf("%s: segment %s of %d bytes, want [%d, %d) of %d", p.Dir, got.Range, got.Bytes,
				want.Base, next, bytes)
		}
		if clean && got.Waits != waits {
			t.Errorf("%s: segment %s waits for %s, want %s", p.Dir, got.Range, got.Waits.Code(),
				waits.Code())
		}
	}
}

func compareReads(t *testing.T, s *logdir.Source, p fixturePartition, scan tier.Scan) {
	t.Helper()
	for i, seg := range scan.Segments[:len(scan.Segments)-1] {
		want := p.Segments[i]
		c, err := s.Read(context.Background(), scan.Log, seg.Range)
		if err != nil || len(c.Problems) > 0 {
			t.Errorf("%s %s: %v %v", p.Dir, seg.Range, err, c.Problems)
			continue
		}
		maxTime := tier.Time(max(want.MaxTimestamp, 0) * 1e6)
		if c.Batches != want.Batches || c.LastNext != want.Next || c.MaxTime != maxTime {
			t.Errorf("%s %s: %d batches to %d, latest %s; want %d to %d, %s", p.Dir, seg.Range,
				c.Batches, c.LastNext, c.MaxTime, want.Batches, want.Next, maxTime)
		}
		lineage := lineageIn(p.LeaderEpochs, want.Base, want.Next)
		if diff := cmp.Diff(lineage, c.Lineage); diff != "" {
			t.Errorf("%s %s: lineage (-want +got):\n%s", p.Dir, seg.Range, diff)
		}
		if len(c.Files) != len(want.Files) || !strings.HasSuffix(c.Files[0].Name, ".log") ||
			c.Files[0].Stat != seg.Log {
			t.Errorf("%s %s: files %+v, want %+v", p.Dir, seg.Range, c.Files, want.Files)
		}
		for _, f := range want.Files {
			if !slices.ContainsFunc(c.Files, func(g tier.SourceFile) bool {
				return g.Name == f.Name && g.SHA256 == f.SHA256 && g.Size == f.Size
			}) {
				t.Errorf("%s: %s is not read, or has another digest", p.Dir, f.Name)
			}
		}
	}
}

// lineageIn is the part of the epochs that wrote [base, next).
func lineageIn(epochs []fixtureEpoch, base, next tier.Offset) []tier.EpochStart {
	var out []tier.EpochStart
	for i, e := range epochs {
		last := i == len(epochs)-1
		if e.Start >= next || !last && epochs[i+1].Start <= base || e.Epoch == tier.NoLeaderEpoch {
			continue
		}
		out = append(out, tier.EpochStart{Epoch: e.Epoch, Start: max(e.Start, base)})
	}
	return out
}

// TestFixturesAreDecoded walks through every segment of real directories, the active ones too, and
// compares what the headers say with what Kafka says.
func TestFixturesAreDecoded(t *testing.T) {
	t.Parallel()
	for _, dir := range fixtureDirs(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			for _, p := range readFixture(t, dir).Partitions {
				for _, seg := range p.Segments {
					decodeFixture(t, dir, p, seg)
				}
			}
		})
	}
}

func decodeFixture(t *testing.T, dir string, p fixturePartition, want fixtureSegment) {
	t.Helper()
	i := slices.IndexFunc(want.Files, func(f struct {
		Name   string
		Size   int64
		SHA256 tier.SHA256
	}) bool {
		return strings.HasSuffix(f.Name, ".log")
	})
	data, err := os.ReadFile(filepath.Join(dir, p.Dir, want.Files[i].Name))
	if err != nil {
		t.Fatal(err)
	}
	got := fixtureSegment{Base: want.Base, Next: want.Base, MaxTimestamp: kbatch.NoTimestamp,
		Files: want.Files, TimestampTypes: []string{}, Codecs: []string{}, Magics: []int8{}}
	wrapped := false
	w := kbatch.NewWalker(int64(len(data)), func(b kbatch.Batch) error {
		got.Next = b.Next()
		got.Batches++
		got.MaxTimestamp = max(got.MaxTimestamp, b.MaxTimestamp)
		got.Codecs = append(got.Codecs, b.Codec.String())
		got.Magics = append(got.Magics, b.Magic)
		got.TimestampTypes = append(got.TimestampTypes, timestampType(b))
		got.DeleteHorizon = got.DeleteHorizon || b.DeleteHorizon
		wrapped = wrapped || b.Wrapper()
		switch {
		case b.Records == 0:
			got.EmptyBatches++
			fallthrough
		case b.Control:
			if b.Control {
				got.ControlBatches++
			}
		default:
			got.Records += int64(b.Records)
		}
		return nil
	})
	if _, err := w.Write(data); err != nil {
		t.Errorf("%s: %s: %v", p.Dir, want.Files[i].Name, err)
	}
	if err := w.Close(); err != nil {
		t.Errorf("%s: %s: %v", p.Dir, want.Files[i].Name, err)
	}
	for _, set := range []*[]string{&got.Codecs, &got.TimestampTypes} {
		slices.Sort(*set)
		*set = slices.Compact(*set)
	}
	slices.Sort(got.Magics)
	got.Magics = slices.Compact(got.Magics)
	if wrapped {
		got.Records = want.Records // headers do not tell
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s (-kafka +tierd):\n%s", p.Dir, want.Files[i].Name, diff)
	}
}

func timestampType(b kbatch.Batch) string {
	switch {
	case b.Magic == 0:
		return "NoTimestampType"
	case b.AppendTime:
		return "LogAppendTime"
	default:
		return "CreateTime"
	}
}

// TestFixturesDamagedAnywhere turns one bit over at many places of real segments: reading must
// notice each, unless the byte is outside every checksum, and then say something else.
func TestFixturesDamagedAnywhere(t *testing.T) {
	t.Parallel()
	for _, dir := range fixtureDirs(t) {
		p := readFixture(t, dir).Partitions[0]
		name := filepath.Join(dir, p.Dir, strings.TrimSuffix(p.Segments[0].Files[0].Name,
			filepath.Ext(p.Segments[0].Files[0].Name))+".log")
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sound := walkAll(data)
		for i := 0; i < len(data); i += 97 {
			data[i] ^= 0x10
			if got := walkAll(data); got == sound {
				t.Errorf("%s: byte %d turned over, and nothing noticed", name, i)
			}
			data[i] ^= 0x10
		}
	}
}

// walkAll is everything that a walk through data says.
func walkAll(data []byte) string {
	var said bytes.Buffer
	w := kbatch.NewWalker(int64(len(data)), func(b kbatch.Batch) error {
		return json.NewEncoder(&said).Encode(b)
	})
	if _, err := w.Write(data); err != nil {
		return err.Error()
	}
	if err := w.Close(); err != nil {
		return err.Error()
	}
	return said.String()
}
