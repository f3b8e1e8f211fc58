package daemon

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/kafka"
	"github.com/tierd/tierd/runtime/tier"
)

// TestKafkaClientsGetNoWrongBytes lets the store answer with bytes that are not those that were
// copied. Clients get what is right before them, or an error that lets them try again; and once the
// store is right, all of it.
func TestKafkaClientsGetNoWrongBytes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.kafkaLogs("v4", "")
	r := s.run(s.options())
	addr := s.endpoint(r)
	log := tier.LogID{Table: "orders-2024", Name: "1"}
	s.tiered(r, log)
	right, err := os.ReadFile("../../testdata/kafka/v4/orders-2024-1/00000000000000000000.log")
	if err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.MaxVersions(kversion.V3_0_0()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	fetch := func() *kmsg.FetchResponseTopicPartition {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		req := kmsg.NewPtrFetchRequest()
		req.MaxBytes = int32(len(right))
		topic := kmsg.NewFetchRequestTopic()
		topic.Topic = log.Table
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.PartitionMaxBytes = 1, req.MaxBytes
		topic.Partitions = append(topic.Partitions, p)
		req.Topics = append(req.Topics, topic)
		resp, err := cl.Broker(int(kafka.NodeID)).Request(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		return &resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]
	}
	// Wrong lengths are never kept; what has the right length is, until its checksum is looked at.
	for _, c := range []struct {
		name  string
		wrong fault.Effect
	}{
		{"not at all", fault.Effect{Err: errors.New("the store is on fire")}},
		{"half", fault.Effect{Mangle: func(b []byte) []byte { return b[:len(b)/2] }}},
		{"one more", fault.Effect{Mangle: func(b []byte) []byte { return append(b, 0) }}},
		{"nothing", fault.Effect{Mangle: func([]byte) []byte { return nil }}},
		{"it is cut", fault.Effect{Mangle: func(b []byte) []byte { return b[:1000] },
			Err: errors.New("reset")}},
		{"zeros", fault.Effect{Mangle: func(b []byte) []byte { return make([]byte, len(b)) }}},
		{"one bit", fault.Effect{Mangle: fault.Flip(500)}},
		{"a late bit", fault.Effect{Mangle: fault.Flip(-70_000)}},
	} {
		s.bucket.SetHook(func(op fault.Op) fault.Effect {
			if op.Kind == fault.OpGetRange && strings.Contains(op.Key, "/orders-2024/1/") &&
				strings.HasSuffix(op.Key, ".log") {
				return c.wrong
			}
			return fault.Effect{}
		})
		got := fetch()
		code := kerr.TypedErrorForCode(got.ErrorCode)
		switch {
		case !bytes.HasPrefix(right, got.RecordBatches):
			t.Errorf("%s: %d bytes that are not those that were written", c.name,
				len(got.RecordBatches))
		case code == nil && len(got.RecordBatches) == len(right):
			t.Errorf("%s: everything came, so nothing was wrong", c.name)
		case code != nil && (!code.Retriable || len(got.RecordBatches) > 0):
			t.Errorf("%s: %v, with %d bytes", c.name, code, len(got.RecordBatches))
		case code == nil && len(got.RecordBatches) == 0:
			t.Errorf("%s: neither bytes nor an error", c.name)
		}
		s.bucket.SetHook(nil)
	}
	s.until("all of it comes again", func() bool {
		return bytes.HasPrefix(fetch().RecordBatches, right[:len(right)/2])
	})
}
