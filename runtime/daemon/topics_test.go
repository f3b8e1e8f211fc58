package daemon

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tierd/tierd/runtime/broker"
	"github.com/tierd/tierd/runtime/tier"
)

// TestTooShort: the broker's limits must not be below those that tierd keeps what it has not copied
// by.
func TestTooShort(t *testing.T) {
	t.Parallel()
	const none = -1
	day := tier.Table{Name: "orders", LocalTTL: 24 * time.Hour}
	sized := day
	sized.LocalBytes = tier.Limit{Value: 1000, Set: true}
	for _, c := range []struct {
		name  string
		b     broker.Topic
		table tier.Table
		says  []string
	}{
		{"no limits", broker.Topic{Deletes: true, Retention: none, RetentionBytes: none}, day, nil},
		{"the same", broker.Topic{Deletes: true, Retention: 24 * time.Hour, RetentionBytes: none}, day,
			nil},
		{"shorter", broker.Topic{Deletes: true, Retention: 23 * time.Hour, RetentionBytes: none}, day,
			[]string{"retention.ms of the topic orders is 23h, and table.log.local-ttl 1d"}},
		{"at once", broker.Topic{Deletes: true, RetentionBytes: none}, day, []string{"retention.ms"}},
		{"for ever", broker.Topic{Deletes: true, Retention: 1 << 62, RetentionBytes: none},
			tier.Table{Name: "orders"}, []string{"table.log.local-ttl for ever"}},
		{"by size", broker.Topic{Deletes: true, Retention: none, RetentionBytes: 999}, day,
			[]string{"table.log.local-bytes unset"}},
		{"smaller", broker.Topic{Deletes: true, Retention: none, RetentionBytes: 999}, sized,
			[]string{"retention.bytes of the topic orders is 999, and table.log.local-bytes 1000"}},
		{"as large", broker.Topic{Deletes: true, Retention: none, RetentionBytes: 1000}, sized, nil},
		{"both", broker.Topic{Deletes: true, RetentionBytes: 1}, sized,
			[]string{"retention.ms", "retention.bytes"}},
		{"it never deletes", broker.Topic{Compact: true}, day, nil},
	} {
		got := tooShort(c.b, c.table)
		if len(got) != len(c.says) {
			t.Errorf("%s: %v", c.name, got)
			continue
		}
		for i, r := range got {
			if r.Code != tier.CodeBrokerLimits || !strings.Contains(r.Text, c.says[i]) {
				t.Errorf("%s: %+v, want %q", c.name, r, c.says[i])
			}
		}
	}
}

// TestTopicsAreAsked: what the cluster says holds until it says otherwise, also while it is away.
func TestTopicsAreAsked(t *testing.T) {
	t.Parallel()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cluster, err := broker.New(broker.Config{Bootstrap: c.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cluster.Close() }()
	var x topics
	x.scanned([]tier.LogID{{Table: "gone", Name: "0"}, {Table: "orders", Name: "0"},
		{Table: "orders", Name: "1"}, {Table: "untiered", Name: "0"}})
	table := func(name string) (tier.Table, bool) {
		return tier.Table{Name: name, Tiering: name != "untiered", LocalTTL: time.Hour}, true
	}
	if x.compacted("orders") != tier.Unknown {
		t.Error("it is known before anybody was asked")
	}
	alarms := x.look(t.Context(), cluster, table)
	if len(alarms) != 1 || alarms[0].Code != tier.CodeBroker ||
		!strings.Contains(alarms[0].Text, "gone") {
		t.Errorf("%v", alarms)
	}
	if x.compacted("orders") != tier.No || x.compacted("untiered") != tier.Unknown {
		t.Errorf("orders %s, untiered %s", x.compacted("orders"), x.compacted("untiered"))
	}
	c.Close()
	alarms = x.look(t.Context(), cluster, table)
	if len(alarms) == 0 || !strings.Contains(alarms[0].Text, "cannot be asked") ||
		x.compacted("orders") != tier.No {
		t.Errorf("%v, orders %s", alarms, x.compacted("orders"))
	}
}

// TestNewTopicsAreAskedAbout: nothing of a topic that the cluster compacts is copied before the
// cluster was asked, also not by a run with an end. One that was compacted only once is copied.
func TestNewTopicsAreAskedAbout(t *testing.T) {
	t.Parallel()
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	for topic, policy := range map[string]string{"epochs": "compact", "formerly-compacted": "delete",
		"orders-2024": "delete"} {
		_, err := kadm.NewClient(cl).CreateTopic(t.Context(), 2, 1,
			map[string]*string{"cleanup.policy": &policy, "retention.ms": kadm.StringPtr("-1")}, topic)
		if err != nil {
			t.Fatal(err)
		}
	}
	s := newSite(t)
	s.kafkaLogs("v4", "")
	s.configure(fmt.Sprintf(`
data_dir: data
sources: [{name: broker, layout: kafka, path: kafka, kafka: {bootstrap: %q}}]
bucket: {type: FILESYSTEM, config: {directory: bucket}}
tables: [{name: epochs*, table.log.ttl: 0}, {name: formerly-*, table.log.ttl: 0},
  {name: orders-*, table.log.ttl: 0}]
`, c.ListenAddrs()[0]))
	if _, err := s.once(s.options()); err != nil {
		t.Fatal(err)
	}
	copied := map[string]bool{}
	for _, key := range s.store.Keys() {
		if _, rest, ok := strings.Cut(key, "/logs/"); ok && strings.HasSuffix(key, ".log") {
			table, _, _ := strings.Cut(rest, "/")
			copied[table] = true
		}
	}
	want := map[string]bool{"formerly-compacted": true, "orders-2024": true}
	if !maps.Equal(copied, want) {
		t.Errorf("copied are %v, want %v", copied, want)
	}
}
