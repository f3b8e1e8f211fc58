package interop_test

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// history is what a producer was told about its records: the value that each offset has.
type history struct {
	mu     sync.Mutex
	values map[int64]string
	failed error
}

// produce writes records, each with a key of its own and of about size bytes, to partition 0 of the
// topic, one batch each, until it is stopped, and at least so many.
func (k *kafka) produce(topic string, least, size int) (h *history, stop func()) {
	k.t.Helper()
	h = &history{values: map[int64]string{}}
	client := k.connect(kgo.DefaultProduceTopic(topic), kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(1),
		kgo.RecordRetries(1000), kgo.ProducerLinger(0))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; i < least || ctx.Err() == nil; i++ {
			value := fmt.Sprintf("%s %d %s", topic, i, strings.Repeat("x", size))
			limit, stopLimit := context.WithTimeout(context.Background(), 2*patience)
			r, err := client.ProduceSync(limit, &kgo.Record{Key: fmt.Append(nil, i),
				Value: []byte(value)}).First()
			stopLimit()
			h.mu.Lock()
			if err != nil {
				h.failed = err
				h.mu.Unlock()
				return
			}
			if old, twice := h.values[r.Offset]; twice {
				h.failed = fmt.Errorf("offset %d was given to %.20q and %.20q", r.Offset, old, value)
			}
			h.values[r.Offset] = value
			h.mu.Unlock()
			if i >= least {
				select {
				case <-ctx.Done():
				case <-time.After(5 * time.Millisecond):
				}
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	k.t.Cleanup(stop)
	return h, stop
}

// count is how many records were acknowledged so far.
func (h *history) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.values)
}

// found is what was read: the value of each offset, in the order of reading.
type found struct {
	offsets []int64
	values  map[int64]string
}

func (f *found) add(r *kgo.Record) {
	if f.values == nil {
		f.values = map[int64]string{}
	}
	f.offsets = append(f.offsets, r.Offset)
	f.values[r.Offset] = string(r.Value)
}

// archived decodes the copies of the log's segments in the store, in the order of their offsets. A
// segment may be there twice: after a crash of the broker, which makes its indexes anew, it is
// copied again. Then both must have the same records.
func archived(t *testing.T, s *store, log string) *found {
	t.Helper()
	keys := slices.DeleteFunc(s.records(t), func(key string) bool {
		return !strings.Contains(key, "/logs/"+log+"/")
	})
	slices.SortFunc(keys, func(a, b string) int { return strings.Compare(path.Base(a), path.Base(b)) })
	f := &found{}
	topic, _, _ := strings.Cut(log, "/")
	for _, key := range keys {
		for _, r := range decode(t, topic, key, s.read(t, key)) {
			if old, twice := f.values[r.Offset]; !twice {
				f.add(r)
			} else if old != string(r.Value) {
				t.Errorf("%s: offset %d is %.40q, and in another copy %.40q", key, r.Offset, r.Value, old)
			}
		}
	}
	return f
}

// decode reads the records of a file of batches.
func decode(t *testing.T, topic, name string, batches []byte) []*kgo.Record {
	t.Helper()
	p := kmsg.NewFetchResponseTopicPartition()
	p.RecordBatches, p.HighWatermark = batches, 1<<62
	got, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Topic: topic,
		KeepControlRecords: true}, &p, kgo.DefaultDecompressor(), nil)
	if got.Err != nil {
		t.Fatalf("%s: %v", name, got.Err)
	}
	return got.Records
}

// consumed reads the partition from its beginning to its end by a client of its own.
func (k *kafka) consumed(bootstrap, topic string) *found {
	k.t.Helper()
	_, end, err := k.bounds(topic, 0)
	if err != nil {
		k.t.Fatal(err)
	}
	return k.read(bootstrap, topic, end)
}

// read reads the partition from its beginning up to the offset.
func (k *kafka) read(bootstrap, topic string, end int64) *found {
	k.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(bootstrap, ",")...),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		k.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	f := &found{}
	for len(f.offsets) == 0 || f.offsets[len(f.offsets)-1] < end-1 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			k.t.Fatalf("%s: %v, after %d records of %d", bootstrap, err, len(f.offsets), end)
		}
		fetches.EachRecord(f.add)
	}
	return f
}

// compare wants every acknowledged record in one of the two tiers at least, each with the value
// that was acknowledged, and in each tier at most once and in order.
func (h *history) compare(t *testing.T, archive, broker *found) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed != nil {
		t.Fatal(h.failed)
	}
	for name, f := range map[string]*found{"archive": archive, "broker": broker} {
		for i, o := range f.offsets {
			if i > 0 && o != f.offsets[i-1]+1 {
				t.Fatalf("%s: offset %d follows %d", name, o, f.offsets[i-1])
			}
			if want, ok := h.values[o]; ok && f.values[o] != want {
				t.Fatalf("%s: offset %d is %.40q, want %.40q", name, o, f.values[o], want)
			}
		}
	}
	for o, want := range h.values {
		_, a := archive.values[o]
		_, b := broker.values[o]
		if !a && !b {
			t.Fatalf("offset %d (%.40q) is in neither tier", o, want)
		}
	}
}
