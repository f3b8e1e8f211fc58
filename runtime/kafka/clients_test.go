package kafka_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tierd/tierd/runtime/kafka/kafkatest"
	"github.com/tierd/tierd/runtime/tier"
)

// TestFranzGoReadsEverything reads real brokers' logs with a real client, from the beginning to the
// end, and compares what it got with what a consumer of Kafka's own got from the broker.
func TestFranzGoReadsEverything(t *testing.T) {
	t.Parallel()
	for _, set := range []string{"v4", "v4-live", "magic0", "magic1"} {
		for _, committed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s committed=%v", set, committed), func(t *testing.T) {
				t.Parallel()
				logs, fixtures := load(t, set)
				e := start(t, config(logs))
				opts := []kgo.Opt{kgo.SeedBrokers(e.addr), kgo.FetchMaxWait(100 * time.Millisecond),
					kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}
				want := map[tier.LogID]kafkatest.Digest{}
				var topics []string
				for _, p := range fixtures {
					if set == "magic0" && p.Topic == "codec-lz4" {
						// Kafka wrote a wrong checksum into the frames of LZ4 before magic 1
						// (KAFKA-3160), which this client does not accept from a broker
						// either. librdkafka reads it: see `make clients`.
						continue
					}
					topics = append(topics, p.Topic)
					want[p.ID()] = p.ReadUncommitted
					if committed {
						want[p.ID()] = p.ReadCommitted
					}
				}
				if committed {
					opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
				}
				cl, err := kgo.NewClient(append(opts, kgo.ConsumeTopics(topics...))...)
				if err != nil {
					t.Fatal(err)
				}
				for id, got := range kafkatest.Consume(t, cl, want) {
					if got != want[id] {
						t.Errorf("%v: got %+v, want %+v", id, got, want[id])
					}
				}
			})
		}
	}
}
