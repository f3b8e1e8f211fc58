package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tierd/tierd/runtime/tier"
)

// askTimeout bounds one question to the cluster, with all its requests. They are repeated by
// whoever asks, who wants to know why there was no answer.
const askTimeout = 30 * time.Second

// Offsets that mean something else in ListOffsets.
const (
	latest   = -1
	earliest = -2
)

// Cluster is a client of one cluster. Methods are safe for concurrent use.
type Cluster struct{ client *kgo.Client }

// New makes a client. Nobody is asked yet.
func New(c Config) (*Cluster, error) {
	opts, err := Options(c)
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(opts, kgo.RequestRetries(1))...)
	if err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	return &Cluster{client}, nil
}

// Close ends all connections. It is idempotent.
func (c *Cluster) Close() error {
	c.client.Close()
	return nil
}

// partition is the log's partition as the cluster's metadata have it.
type partition struct {
	topic       string
	number      int32
	cluster     string
	id          string // of the topic
	leader      int32
	leaderEpoch int32
}

// Look says what the cluster says of the partition now: who leads it, where it begins and ends
// there, what would refuse a deletion, and where the epochs end for the leader.
func (c *Cluster) Look(ctx context.Context, id tier.LogID, epochs []tier.LeaderEpoch) (
	tier.Owner, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	p, err := c.find(ctx, id)
	if err != nil {
		return tier.Owner{}, err
	}
	o := tier.Owner{Cluster: p.cluster, Incarnation: p.id, Node: p.leader,
		LeaderEpoch: tier.LeaderEpoch(p.leaderEpoch)}
	// The high watermark first: what is looked at later can only have more.
	high, err := c.offset(ctx, p, latest)
	if err != nil {
		return o, err
	}
	start, err := c.offset(ctx, p, earliest)
	if err != nil {
		return o, err
	}
	o.HighWatermark, o.Start = tier.Offset(high), tier.Offset(start)
	known, refused, err := c.Topics(ctx, []string{p.topic})
	if err == nil {
		err = refused[p.topic]
	}
	if err != nil {
		return o, err
	}
	o.Refusal = known[p.topic].refusal()
	for _, e := range epochs {
		end, err := c.epochEnd(ctx, p, e)
		if err != nil {
			return o, err
		}
		o.Ends = append(o.Ends, end)
	}
	return o, nil
}

// DeleteBelow has the node drop what is below the offset, if it leads the partition of the topic
// with the id now, and still in the term of the look. It returns where the log begins then. The
// request goes to that node alone: where another leads by then, nobody drops anything.
func (c *Cluster) DeleteBelow(ctx context.Context, id tier.LogID, node int32, topicID string,
	term tier.LeaderEpoch, offset tier.Offset) (tier.Offset, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	p, err := c.find(ctx, id)
	switch {
	case err != nil:
		return 0, err
	case p.id != topicID:
		return 0, fmt.Errorf("%s: the topic has the id %s now, and not %s", id, p.id, topicID)
	case p.leader != node:
		return 0, fmt.Errorf("%s: node %d leads now, and not %d", id, p.leader, node)
	case p.leaderEpoch != int32(term):
		return 0, fmt.Errorf("%s: node %d leads in the epoch %d now, and was looked at in %d", id, node,
			p.leaderEpoch, term)
	}
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = int32(askTimeout.Milliseconds() / 2)
	topic := kmsg.NewDeleteRecordsRequestTopic()
	topic.Topic = p.topic
	part := kmsg.NewDeleteRecordsRequestTopicPartition()
	part.Partition, part.Offset = p.number, int64(offset)
	topic.Partitions = append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	resp, err := askLeader[*kmsg.DeleteRecordsResponse](ctx, c, p, req, "delete records")
	if err != nil {
		return 0, err
	}
	for _, t := range resp.Topics {
		for _, r := range t.Partitions {
			if t.Topic == p.topic && r.Partition == p.number {
				return tier.Offset(r.LowWatermark), p.refused("delete records", r.ErrorCode)
			}
		}
	}
	return 0, p.unanswered("delete records")
}

// find looks the partition up in the cluster's metadata.
func (c *Cluster) find(ctx context.Context, id tier.LogID) (partition, error) {
	number, err := strconv.ParseInt(id.Name, 10, 32)
	if err != nil {
		return partition{}, fmt.Errorf("%s is no partition", id)
	}
	p := partition{topic: id.Table, number: int32(number)}
	req := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr(p.topic)
	req.Topics = append(req.Topics, topic)
	req.AllowAutoTopicCreation = false
	answer, err := c.client.Request(ctx, req)
	if err != nil {
		return p, fmt.Errorf("%s: metadata: %w", id, err)
	}
	resp, ok := answer.(*kmsg.MetadataResponse)
	if !ok {
		return p, p.unanswered("metadata")
	}
	if resp.ClusterID != nil {
		p.cluster = *resp.ClusterID
	}
	for _, t := range resp.Topics {
		if t.Topic == nil || *t.Topic != p.topic {
			continue
		}
		if err := p.refused("metadata", t.ErrorCode); err != nil {
			return p, err
		}
		p.id = topicID(t.TopicID)
		for _, x := range t.Partitions {
			if x.Partition == p.number {
				p.leader, p.leaderEpoch = x.Leader, x.LeaderEpoch
				return p, p.refused("metadata", x.ErrorCode)
			}
		}
	}
	return p, p.refused("metadata", kerr.UnknownTopicOrPartition.Code)
}

// offset asks the leader for its earliest offset or its high watermark.
func (c *Cluster) offset(ctx context.Context, p partition, which int64) (int64, error) {
	const what = "list offsets"
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = p.topic
	part := kmsg.NewListOffsetsRequestTopicPartition()
	part.Partition, part.CurrentLeaderEpoch, part.Timestamp = p.number, p.leaderEpoch, which
	topic.Partitions = append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	resp, err := askLeader[*kmsg.ListOffsetsResponse](ctx, c, p, req, what)
	if err != nil {
		return 0, err
	}
	for _, t := range resp.Topics {
		for _, r := range t.Partitions {
			if t.Topic == p.topic && r.Partition == p.number {
				return r.Offset, p.refused(what, r.ErrorCode)
			}
		}
	}
	return 0, p.unanswered(what)
}

// epochEnd asks the leader where the epoch ends for it.
func (c *Cluster) epochEnd(ctx context.Context, p partition, e tier.LeaderEpoch) (
	tier.EpochEnd, error) {
	const what = "offset for leader epoch"
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.ReplicaID = -1
	topic := kmsg.NewOffsetForLeaderEpochRequestTopic()
	topic.Topic = p.topic
	part := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	part.Partition, part.CurrentLeaderEpoch, part.LeaderEpoch = p.number, p.leaderEpoch, int32(e)
	topic.Partitions = append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	resp, err := askLeader[*kmsg.OffsetForLeaderEpochResponse](ctx, c, p, req, what)
	if err != nil {
		return tier.EpochEnd{}, err
	}
	for _, t := range resp.Topics {
		for _, r := range t.Partitions {
			if t.Topic == p.topic && r.Partition == p.number {
				return tier.EpochEnd{Asked: e, Epoch: tier.LeaderEpoch(r.LeaderEpoch),
					End: tier.Offset(r.EndOffset)}, p.refused(what, r.ErrorCode)
			}
		}
	}
	return tier.EpochEnd{}, p.unanswered(what)
}

// askLeader sends a request to the node that leads the partition, and to no other.
func askLeader[R kmsg.Response](ctx context.Context, c *Cluster, p partition, req kmsg.Request,
	what string) (R, error) {
	var none R
	if p.leader < 0 {
		return none, fmt.Errorf("%s/%d has no leader now", p.topic, p.number)
	}
	answer, err := c.client.Broker(int(p.leader)).Request(ctx, req)
	if err != nil {
		return none, fmt.Errorf("%s/%d: %s: node %d: %w", p.topic, p.number, what, p.leader, err)
	}
	resp, ok := answer.(R)
	if !ok {
		return none, p.unanswered(what)
	}
	return resp, nil
}

// refused is the error that a code of the protocol means; nil for none.
func (p partition) refused(what string, code int16) error {
	err := kerr.ErrorForCode(code)
	if err == nil {
		return nil
	}
	if known := (*kerr.Error)(nil); errors.As(err, &known) {
		return fmt.Errorf("%s/%d: %s: %s: %s", p.topic, p.number, what, known.Message,
			strings.TrimSuffix(known.Description, "."))
	}
	return fmt.Errorf("%s/%d: %s: %w", p.topic, p.number, what, err)
}

func (p partition) unanswered(what string) error {
	return fmt.Errorf("%s/%d: %s: the broker answered for something else", p.topic, p.number, what)
}
