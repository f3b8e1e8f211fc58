package broker

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tierd/tierd/runtime/tier"
)

// open makes a client of the cluster.
func open(t *testing.T, c Config) *Cluster {
	t.Helper()
	k, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return k
}

// fill writes so many records to orders/0, and returns an admin client.
func fill(t *testing.T, c *kfake.Cluster, records int) *kadm.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...),
		kgo.DefaultProduceTopic("orders"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	for range records {
		r := &kgo.Record{Value: []byte("v")}
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	return kadm.NewClient(client)
}

func TestLookAndDelete(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.ClusterID("C"))
	admin := fill(t, c, 10)
	k := open(t, Config{Bootstrap: c.ListenAddrs()})
	topics, err := admin.ListTopics(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	leader := topics["orders"].Partitions[0].Leader
	id := topicID(topics["orders"].ID)
	epoch := tier.LeaderEpoch(topics["orders"].Partitions[0].LeaderEpoch)
	o, err := k.Look(t.Context(), log("orders", "0"), []tier.LeaderEpoch{epoch})
	if err != nil {
		t.Fatal(err)
	}
	if o.Cluster != "C" || o.Incarnation != id || o.Node != leader || o.Start != 0 ||
		o.HighWatermark != 10 || o.Refusal != "" || len(o.Ends) != 1 || o.Ends[0].Epoch != epoch ||
		o.Ends[0].End != 10 {
		t.Errorf("%+v", o)
	}
	for name, call := range map[string]func() (tier.Offset, error){
		"another node leads": func() (tier.Offset, error) {
			return k.DeleteBelow(t.Context(), log("orders", "0"), leader+1, id, epoch, 4)
		},
		"the topic has the id": func() (tier.Offset, error) {
			return k.DeleteBelow(t.Context(), log("orders", "0"), leader, "other", epoch, 4)
		},
		"was looked at in": func() (tier.Offset, error) {
			return k.DeleteBelow(t.Context(), log("orders", "0"), leader, id, epoch-1, 4)
		},
		"UNKNOWN_TOPIC_OR_PARTITION": func() (tier.Offset, error) {
			return k.DeleteBelow(t.Context(), log("orders", "9"), leader, id, epoch, 4)
		},
		"OFFSET_OUT_OF_RANGE": func() (tier.Offset, error) {
			return k.DeleteBelow(t.Context(), log("orders", "0"), leader, id, epoch, 11)
		},
	} {
		if _, err := call(); err == nil || !strings.Contains(err.Error(), name) &&
			!strings.Contains(name, "another") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if o, err = k.Look(t.Context(), log("orders", "0"), nil); err != nil || o.Start != 0 {
		t.Errorf("after refusals the log begins at %d, %v", o.Start, err)
	}
	start, err := k.DeleteBelow(t.Context(), log("orders", "0"), leader, id, epoch, 4)
	if err != nil || start != 4 {
		t.Errorf("the log begins at %d, %v", start, err)
	}
	if o, err = k.Look(t.Context(), log("orders", "0"), nil); err != nil || o.Start != 4 {
		t.Errorf("the log begins at %d, %v", o.Start, err)
	}
}

// TestDeleteAsksTheLeaderAlone: the node that led a moment ago says that it no longer does, and
// nobody else is asked.
func TestDeleteAsksTheLeaderAlone(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	fill(t, c, 10)
	k := open(t, Config{Bootstrap: c.ListenAddrs()})
	o, err := k.Look(t.Context(), log("orders", "0"), nil)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	c.ControlKey(int16(kmsg.DeleteRecords), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		asked++
		resp := r.ResponseKind().(*kmsg.DeleteRecordsResponse)
		topic := kmsg.NewDeleteRecordsResponseTopic()
		topic.Topic = "orders"
		part := kmsg.NewDeleteRecordsResponseTopicPartition()
		part.ErrorCode = kerr.NotLeaderForPartition.Code
		topic.Partitions = append(topic.Partitions, part)
		resp.Topics = append(resp.Topics, topic)
		return resp, nil, true
	})
	_, err = k.DeleteBelow(t.Context(), log("orders", "0"), o.Node, o.Incarnation,
		o.LeaderEpoch, 4)
	if err == nil || !strings.Contains(err.Error(), "NOT_LEADER") || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}

// TestTopics reads the settings, and says which let nothing be deleted.
func TestTopics(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	admin := fill(t, c, 0)
	k := open(t, Config{Bootstrap: c.ListenAddrs()})
	set := func(topic, key, value string) {
		t.Helper()
		_, err := admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: key,
			Value: &value}}, topic)
		if err != nil {
			t.Fatal(err)
		}
	}
	set("orders", "retention.ms", "3600000")
	set("orders", "retention.bytes", "1000")
	set("clicks", "retention.ms", "-1")
	set("clicks", "cleanup.policy", "compact,delete")
	got, refused, err := k.Topics(t.Context(), []string{"orders", "clicks", "none"})
	if err != nil || len(refused) != 1 ||
		!strings.Contains(refused["none"].Error(), "UNKNOWN_TOPIC_OR_PARTITION") {
		t.Fatalf("%v, %v", refused, err)
	}
	want := Topic{Deletes: true, Retention: time.Hour, RetentionBytes: 1000}
	if got["orders"] != want || got["orders"].refusal() != "" {
		t.Errorf("orders: %+v", got["orders"])
	}
	clicks := got["clicks"]
	if !clicks.Compact || clicks.Retention >= 0 || !strings.Contains(clicks.refusal(), "compact") {
		t.Errorf("clicks: %+v", clicks)
	}
	for _, x := range []Topic{{Compact: true, Deletes: true}, {}, {Deletes: true, Tiered: true}} {
		if x.refusal() == "" {
			t.Errorf("%+v may be deleted from", x)
		}
	}
	value := "a week"
	if _, err := topicOf([]kmsg.DescribeConfigsResponseResourceConfig{{Name: keyRetention,
		Value: &value}}); err == nil {
		t.Error("a week is a number")
	}
}

// TestOutOfReach: a cluster that is down is an error soon, and says so.
func TestOutOfReach(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	k := open(t, Config{Bootstrap: c.ListenAddrs()})
	c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := k.Look(ctx, log("orders", "0"), nil)
	if err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v", err)
	}
}
