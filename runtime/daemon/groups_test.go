package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tierd/tierd/runtime/tier"
)

const groupsConfig = siteConfig + `
policies: {paths: [consumer_guard.rego], data: [guards.yaml]}
facts: [{name: offsets, kafka: broker-1, groups: [billing], max_age: 1h}]
`

// TestConsumerGroups: the example policy keeps what a group has not read, by what the broker says
// of the group; what it has read goes at the next look, not only after the slow period; and while
// the broker does not answer, everything that depends on it stays.
func TestConsumerGroups(t *testing.T) {
	t.Parallel()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s := newSite(t)
	config := strings.Replace(groupsConfig, "sources: [", fmt.Sprintf("sources: [{name: broker-1, "+
		"layout: kafka, path: broker, kafka: {bootstrap: %q}}, ", c.ListenAddrs()[0]), 1)
	s.configure(config)
	guard, err := os.ReadFile("../../policies/examples/consumer_guard/consumer_guard.rego")
	if err != nil {
		t.Fatal(err)
	}
	s.put("consumer_guard.rego", string(guard))
	s.put("guards.yaml", "consumer_guards: {orders: [billing]}\n")
	commit(t, c, "orders", 0, 10)
	s.segments("orders/0", 3)
	s.segments("orders/1", 1)
	s.segments("clicks/0", 1)
	r := s.run(s.options())
	s.until("what was read is gone", func() bool {
		return s.local("orders/0") == 3 && s.local("clicks/0") == 1
	})
	s.until("the rest waits for the group", func() bool {
		x, err := r.Explain(t.Context(), tier.LogID{Table: "orders", Name: "0"}, 10)
		return err == nil && len(x.Decisions) > 0 && len(x.Decisions[0].Reasons) == 1 &&
			x.Decisions[0].Reasons[0].Text == "group billing has read up to 10, the segment ends at 20"
	})
	if n := s.local("orders/1"); n != 2 {
		t.Errorf("%d segments are left of a log of which the group has read nothing", n)
	}
	commit(t, c, "orders", 0, 30)
	s.until("all was read, and is gone", func() bool { return s.local("orders/0") == 1 })
	in, err := r.PolicyInput(t.Context(), tier.LogID{Table: "orders", Name: "1"}, 0, "")
	if err != nil || !strings.Contains(string(in.Input), `"offsets":{"billing":{"orders/1":0}}`) {
		t.Errorf("%s, %v", in.Input, err)
	}
	commit(t, c, "orders", 1, 5)
	c.Close()
	s.until("the broker is missed", func() bool {
		st, err := r.Status(t.Context())
		for _, why := range st.Reasons {
			if why.Code == tier.CodeFactUnknown && why.Alarm &&
				strings.Contains(why.Text, "offsets is not known: the broker of broker-1: ") {
				return err == nil
			}
		}
		return false
	})
	x, err := r.Explain(t.Context(), tier.LogID{Table: "orders", Name: "1"}, 0)
	if err != nil || x.Decisions[0].Reasons[0].Code != "not-consumed" {
		t.Errorf("%+v, %v", x, err)
	}
	if s.local("orders/1") != 2 {
		t.Error("something went while the broker did not answer")
	}
}

// TestNoSuchGroup: a group that the broker does not know leaves the fact unknown, which a run with
// an end tells too.
func TestNoSuchGroup(t *testing.T) {
	t.Parallel()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s := newSite(t)
	if err := os.MkdirAll(filepath.Join(s.dir, "broker"), 0o700); err != nil {
		t.Fatal(err)
	}
	config := strings.Replace(groupsConfig, "sources: [", fmt.Sprintf("sources: [{name: broker-1, "+
		"layout: kafka, path: broker, kafka: {bootstrap: %q}}, ", c.ListenAddrs()[0]), 1)
	s.configure(config)
	s.put("consumer_guard.rego", "package tierd.guard\n\ndeny contains \"behind\" if {\n"+
		"\tinput.facts.offsets.billing[input.log.id] < input.segment.next\n}\n")
	s.put("guards.yaml", "x: {}\n")
	s.segments("orders/0", 1)
	report, err := s.once(s.options())
	if err != nil {
		t.Fatal(err)
	}
	told := fmt.Sprint(report.Waiting, report.Alarms)
	if !strings.Contains(told, "group billing: the broker knows no such group") ||
		s.local("orders/0") != 2 {
		t.Errorf("%s; %d segments", told, s.local("orders/0"))
	}
	commit(t, c, "orders", 0, 9)
	if _, err := s.once(s.options()); err != nil || s.local("orders/0") != 2 {
		t.Errorf("read up to 9: %d segments, %v", s.local("orders/0"), err)
	}
	commit(t, c, "orders", 0, 10)
	if _, err := s.once(s.options()); err != nil || s.local("orders/0") != 1 {
		t.Errorf("read up to 10: %d segments, %v", s.local("orders/0"), err)
	}
	s.put("consumer_guard.rego", "package tierd.guard\n\ndeny contains \"behind\" if {\n"+
		"\tinput.facts.offsets.biling[input.log.id] < input.segment.next\n}\n")
	_, err = s.once(s.options())
	if err == nil || !strings.Contains(err.Error(),
		`input.facts.offsets has no field "biling"; did you mean "billing"?`) {
		t.Errorf("a group that is not configured: %v", err)
	}
}

// commit commits an offset for the group billing.
func commit(t *testing.T, c *kfake.Cluster, topic string, partition int32, offset int64) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var offsets kadm.Offsets
	offsets.AddOffset(topic, partition, offset, -1)
	if err := kadm.NewClient(client).CommitAllOffsets(t.Context(), "billing", offsets); err != nil {
		t.Fatal(err)
	}
}
