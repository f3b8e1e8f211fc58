package broker

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Topic is what the cluster is configured to do with a topic's records.
type Topic struct {
	Deletes bool // the broker's own retention deletes
	Compact bool // it compacts
	Tiered  bool // by the broker's own remote storage
	// Retention and RetentionBytes are the broker's limits, of time and of one partition's size;
	// negative where there is none.
	Retention      time.Duration
	RetentionBytes int64
}

// The topic's settings that matter. Source: TopicConfig of Apache Kafka.
const (
	keyPolicy         = "cleanup.policy"
	keyRetention      = "retention.ms"
	keyRetentionBytes = "retention.bytes"
	keyTiered         = "remote.storage.enable"
)

// Topics says what is configured for the topics, by name, and why it is not known of the others.
// An error is one of all: then nothing is known of those that are in neither.
func (c *Cluster) Topics(ctx context.Context, names []string) (known map[string]Topic,
	refused map[string]error, err error) {
	known, refused = map[string]Topic{}, map[string]error{}
	if len(names) == 0 {
		return known, refused, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req := kmsg.NewPtrDescribeConfigsRequest()
	for _, name := range names {
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, name
		r.ConfigNames = []string{keyPolicy, keyRetention, keyRetentionBytes, keyTiered}
		req.Resources = append(req.Resources, r)
	}
	for _, shard := range c.client.RequestSharded(ctx, req) {
		if shard.Err != nil {
			return known, refused, fmt.Errorf("describe configs: %w", shard.Err)
		}
		resp, ok := shard.Resp.(*kmsg.DescribeConfigsResponse)
		if !ok {
			continue
		}
		for _, r := range resp.Resources {
			err := kerr.ErrorForCode(r.ErrorCode)
			if err == nil {
				known[r.ResourceName], err = topicOf(r.Configs)
			}
			if err != nil {
				delete(known, r.ResourceName)
				refused[r.ResourceName] = fmt.Errorf("describe configs of the topic %s: %w",
					r.ResourceName, err)
			}
		}
	}
	for _, name := range names {
		if _, ok := known[name]; !ok && refused[name] == nil {
			refused[name] = fmt.Errorf("describe configs of the topic %s: no answer", name)
		}
	}
	return known, refused, nil
}

// topicOf reads the settings that the broker names. One that it leaves out it does not know.
func topicOf(configs []kmsg.DescribeConfigsResponseResourceConfig) (t Topic, err error) {
	t.Retention, t.RetentionBytes = -1, -1
	for _, x := range configs {
		if x.Value == nil {
			continue
		}
		switch x.Name {
		case keyPolicy:
			for word := range strings.SplitSeq(*x.Value, ",") {
				t.Deletes = t.Deletes || strings.TrimSpace(word) == "delete"
				t.Compact = t.Compact || strings.TrimSpace(word) == "compact"
			}
		case keyRetention:
			ms, err := limit(x.Name, *x.Value)
			if err != nil {
				return t, err
			}
			t.Retention = time.Duration(min(ms, longestMS)) * time.Millisecond
		case keyRetentionBytes:
			if t.RetentionBytes, err = limit(x.Name, *x.Value); err != nil {
				return t, err
			}
		case keyTiered:
			t.Tiered = *x.Value == "true"
		}
	}
	return t, nil
}

// longestMS is the longest time that a time.Duration can be, in milliseconds.
const longestMS = int64(math.MaxInt64 / time.Millisecond)

func limit(name, value string) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is %q, and no number", name, value)
	}
	return max(n, -1), nil
}

// refusal says why the topic's records cannot or must not be deleted by DeleteRecords; "" if
// nothing is known against it.
func (t Topic) refusal() string {
	switch {
	case t.Compact:
		return keyPolicy + " of the topic has compact: the broker rewrites what was copied"
	case !t.Deletes:
		return keyPolicy + " of the topic does not have delete: the broker refuses to"
	case t.Tiered:
		return keyTiered + " of the topic is true: it would delete what the broker itself has tiered"
	}
	return ""
}

// topicID is the id as partition.metadata has it.
func topicID(id [16]byte) string { return base64.RawURLEncoding.EncodeToString(id[:]) }
