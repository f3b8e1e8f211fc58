package daemon

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tierd/tierd/runtime/broker"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/tier"
)

// topicsEvery is how often clusters are asked what they do with their topics.
const topicsEvery = time.Minute

// newTopicsTimeout bounds how long a scan waits for what the cluster says of topics that are new.
const newTopicsTimeout = 5 * time.Second

// topics is what the cluster of a source said last of its topics.
type topics struct {
	mu     sync.Mutex
	tables []string // of the source, as scanned last
	asked  map[string]bool
	known  map[string]broker.Topic
	alarms []tier.Reason
}

// compacted tells what the cluster said of a topic; unknown where it did not.
func (t *topics) compacted(name string) tier.Truth {
	t.mu.Lock()
	defer t.mu.Unlock()
	topic, ok := t.known[name]
	if !ok {
		return tier.Unknown
	}
	return tier.TruthOf(topic.Compact)
}

// wrong is what wants an operator.
func (t *topics) wrong() []tier.Reason {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.alarms)
}

// scanned takes what a scan found, and reports whether a table is among it that was not found
// before.
func (t *topics) scanned(logs []tier.LogID) (found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tables = tablesOf(logs)
	if t.asked == nil {
		t.asked = map[string]bool{}
	}
	for _, name := range t.tables {
		found = found || !t.asked[name]
		t.asked[name] = true
	}
	return found
}

// tablesOf are the tables of the logs, which ascend, each once.
func tablesOf(logs []tier.LogID) []string {
	var out []string
	for _, id := range logs {
		if n := len(out); n == 0 || out[n-1] != id.Table {
			out = append(out, id.Table)
		}
	}
	return out
}

// look asks the cluster. What it said before of a topic that it does not answer for is kept.
func (t *topics) look(ctx context.Context, cluster *broker.Cluster,
	table func(string) (tier.Table, bool)) []tier.Reason {
	t.mu.Lock()
	names := slices.DeleteFunc(slices.Clone(t.tables), func(name string) bool {
		x, governed := table(name)
		return !governed || !x.Tiering
	})
	t.mu.Unlock()
	known, refused, err := cluster.Topics(ctx, names)
	var alarms []tier.Reason
	if err != nil {
		alarms = append(alarms, tier.Reason{Code: tier.CodeBroker, Text: fmt.Sprintf(
			"the broker cannot be asked what it does with its topics: %v", err)})
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[string]broker.Topic{}
	}
	for _, name := range names {
		if why := refused[name]; why != nil {
			alarms = append(alarms, tier.Reason{Code: tier.CodeBroker, Text: why.Error()})
		}
		topic, ok := known[name]
		if !ok {
			continue
		}
		t.known[name] = topic
		x, _ := table(name)
		alarms = append(alarms, tooShort(topic, x)...)
	}
	t.alarms = alarms
	return alarms
}

// tooShort says where the broker's own retention can take what tierd has not copied yet: where it
// is shorter than the time, or smaller than the size, that tierd keeps of a log on disk.
func tooShort(b broker.Topic, t tier.Table) (out []tier.Reason) {
	if !b.Deletes {
		return nil
	}
	add := func(format string, args ...any) {
		out = append(out, tier.Reason{Code: tier.CodeBrokerLimits,
			Text: fmt.Sprintf(format, args...) + ": the broker can delete what is not copied yet"})
	}
	if b.Retention >= 0 && (t.LocalTTL == 0 || b.Retention < t.LocalTTL) {
		keeps := "for ever"
		if t.LocalTTL > 0 {
			keeps = config.FormatDuration(t.LocalTTL)
		}
		add("retention.ms of the topic %s is %s, and table.log.local-ttl %s", t.Name,
			config.FormatDuration(b.Retention), keeps)
	}
	switch {
	case b.RetentionBytes < 0:
	case !t.LocalBytes.Set:
		add("retention.bytes of the topic %s is %d, and table.log.local-bytes unset", t.Name,
			b.RetentionBytes)
	case b.RetentionBytes < t.LocalBytes.Value:
		add("retention.bytes of the topic %s is %d, and table.log.local-bytes %d", t.Name,
			b.RetentionBytes, t.LocalBytes.Value)
	}
	return out
}

// tendTopics asks the source's cluster again and again, and tells of what changed.
func (d *Daemon) tendTopics(ctx context.Context, s *source) error {
	if s.cluster == nil {
		return nil
	}
	var before []tier.Reason
	for {
		alarms := s.topics.look(ctx, s.cluster, d.gen.Load().config.Table)
		if ctx.Err() != nil {
			return nil
		}
		for _, why := range alarms {
			if !slices.Contains(before, why) {
				d.log.Error("topic", "source", s.Name, "code", why.Code, "why", why.Text)
			}
		}
		if before = alarms; !slices.ContainsFunc(alarms, func(r tier.Reason) bool {
			return r.Code == tier.CodeBroker
		}) {
			d.metrics.lastSuccess.WithLabelValues("topics").SetToCurrentTime()
		}
		if pause(ctx, topicsEvery) != nil {
			return nil
		}
	}
}
