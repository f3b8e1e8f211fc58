// Package kafkatest reads logs with a real client, for tests, and compares what it read with what
// Kafka's own consumer got from the broker that wrote them. See testdata/kafka/README.md.
package kafkatest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tierd/tierd/runtime/tier"
)

// patience is how long a client may take to read everything.
const patience = 30 * time.Second

// Partition is what expected.json says of one. Offsets are exclusive but LogStart.
type Partition struct {
	Dir             string
	Topic           string
	Partition       int32
	TopicID         string      `json:"topic_id"`
	LogStart        tier.Offset `json:"log_start"`
	LastStable      tier.Offset `json:"last_stable"`
	HighWatermark   tier.Offset `json:"high_watermark"`
	ReadUncommitted Digest      `json:"read_uncommitted"`
	ReadCommitted   Digest      `json:"read_committed"`
	Lookups         []struct {
		AtOrAfter int64 `json:"at_or_after"`
		Offset    int64
		Timestamp int64
	} `json:"timestamp_lookups"`
	LeaderEpochs []struct {
		Epoch tier.LeaderEpoch
		Start tier.Offset `json:"start_offset"`
	} `json:"leader_epochs"`
}

// ID is the log of the partition.
func (p *Partition) ID() tier.LogID {
	return tier.LogID{Table: p.Topic, Name: strconv.Itoa(int(p.Partition))}
}

// Digest is a sequence of records: how many, and the SHA-256 of their content in hexadecimal.
type Digest struct {
	Records int
	SHA256  string
}

// Expected reads what is expected of the set of partitions in dir.
func Expected(t testing.TB, dir string) []Partition {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Partitions []Partition }
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Partitions) == 0 {
		t.Fatalf("%s expects no partitions", dir)
	}
	return all.Partitions
}

// Timestamp is that of the record in milliseconds, -1 where it has none.
func Timestamp(r *kgo.Record) int64 {
	if r.Attrs.TimestampType() < 0 {
		return -1
	}
	return r.Timestamp.UnixMilli()
}

// Sequence hashes records as testdata/kafka/README.md says. The zero Sequence is empty.
type Sequence struct {
	hash    hash.Hash
	records int
}

// Add takes the next record; ms is its timestamp in milliseconds, -1 where it has none.
func (s *Sequence) Add(offset, ms int64, key, value []byte, headers []kgo.RecordHeader) {
	if s.hash == nil {
		s.hash = sha256.New()
	}
	s.records++
	var b []byte
	some := func(p []byte) {
		if p == nil {
			b = binary.BigEndian.AppendUint32(b, ^uint32(0))
			return
		}
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(p))), p...)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(offset))
	b = binary.BigEndian.AppendUint64(b, uint64(ms))
	some(key)
	some(value)
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	for _, h := range headers {
		some([]byte(h.Key))
		some(h.Value)
	}
	_, _ = s.hash.Write(b) // a hash takes everything
}

// Digest is that of the records so far.
func (s *Sequence) Digest() Digest {
	if s.hash == nil {
		s.hash = sha256.New()
	}
	return Digest{s.records, hex.EncodeToString(s.hash.Sum(nil))}
}

// Consume reads with the client until it has as many records as are wanted in all, and gives what
// it read of each log. It closes the client.
func Consume(t testing.TB, cl *kgo.Client, want map[tier.LogID]Digest) map[tier.LogID]Digest {
	t.Helper()
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	missing, got := 0, map[tier.LogID]*Sequence{}
	for id, d := range want {
		missing += d.Records
		got[id] = &Sequence{}
	}
	for missing > 0 {
		fetches := cl.PollFetches(ctx)
		for _, err := range fetches.Errors() {
			t.Fatalf("%s/%d: %v, with %d records missing", err.Topic, err.Partition, err.Err, missing)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			s := got[tier.LogID{Table: r.Topic, Name: strconv.Itoa(int(r.Partition))}]
			if s == nil {
				t.Fatalf("a record of %s/%d, which is not wanted", r.Topic, r.Partition)
			}
			s.Add(r.Offset, Timestamp(r), r.Key, r.Value, r.Headers)
			missing--
		})
	}
	out := map[tier.LogID]Digest{}
	for id, s := range got {
		out[id] = s.Digest()
	}
	return out
}
