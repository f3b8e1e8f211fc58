package kafka

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tierd/tierd/runtime/tier"
)

// topicsAge is how old the list of topics may be.
const topicsAge = time.Second

// sparseMax is how many partitions that are not here are listed for each one that is. A topic with
// larger gaps is listed with what is here, which some clients refuse.
const sparseMax = 1000

// topic is one topic and its partitions that are here, ascending.
type topic struct {
	name       string
	id         [16]byte // zero where there is none
	partitions []int32
}

// topics is the list of all topics, made anew once in a while: a log has no order that would make
// it cheap to find by topic.
type topics struct {
	list func() []Log
	now  func() time.Time

	mu      sync.Mutex
	current *catalog
	made    time.Time
}

// catalog is a list of topics. It is immutable.
type catalog struct {
	all    []*topic // ascending by name
	byName map[string]*topic
	byID   map[[16]byte]*topic
}

func (t *topics) get() *catalog {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.now(); t.current == nil || now.Sub(t.made) >= topicsAge || now.Before(t.made) {
		t.current, t.made = newCatalog(t.list()), now
	}
	return t.current
}

// newCatalog sorts logs into topics. A topic has an id if all its partitions agree on it: where
// they do not, the topic was made anew while some of its old partitions are still here, and clients
// do without an id.
func newCatalog(logs []Log) *catalog {
	c := &catalog{byName: map[string]*topic{}, byID: map[[16]byte]*topic{}}
	mixed := map[string]bool{}
	for _, l := range logs {
		n, err := strconv.ParseInt(l.ID.Name, 10, 32)
		if err != nil || n < 0 || strconv.FormatInt(n, 10) != l.ID.Name {
			continue // no partition of Kafka's
		}
		id := parseTopicID(l.TopicID)
		t := c.byName[l.ID.Table]
		if t == nil {
			t = &topic{name: l.ID.Table, id: id}
			c.byName[t.name], c.all = t, append(c.all, t)
		}
		mixed[t.name] = mixed[t.name] || t.id != id
		t.partitions = append(t.partitions, int32(n))
	}
	slices.SortFunc(c.all, func(a, b *topic) int { return cmp.Compare(a.name, b.name) })
	for _, t := range c.all {
		slices.Sort(t.partitions)
		if mixed[t.name] {
			t.id = [16]byte{}
		}
		if t.id != ([16]byte{}) {
			c.byID[t.id] = t
		}
	}
	return c
}

// parseTopicID reads 22 characters of base64; what is none gives the zero id.
func parseTopicID(s string) (id [16]byte) {
	if b, err := base64.RawURLEncoding.DecodeString(s); err == nil && len(b) == len(id) {
		copy(id[:], b)
	}
	return id
}

// logID names a partition.
func logID(topic string, partition int32) tier.LogID {
	return tier.LogID{Table: topic, Name: strconv.Itoa(int(partition))}
}

// span is how many partitions are listed: all up to the last one, unless the gaps are too large.
func (t *topic) span() int32 {
	if last := t.partitions[len(t.partitions)-1]; int64(last) <
		int64(len(t.partitions))*sparseMax {
		return last + 1
	}
	return int32(len(t.partitions))
}

// The bits of authorized operations (source: KIP-430): what may be done here.
const (
	mayRead             = 1 << 3
	mayDescribe         = 1 << 8
	mayDescribeConfigs  = 1 << 10
	operationsOfTopic   = mayRead | mayDescribe | mayDescribeConfigs
	operationsOfCluster = mayDescribe | mayDescribeConfigs
)

// answerBytes is what one element of a list takes, decoded and encoded together.
const answerBytes = 300

// room waits until the shared memory has room for an answer of n elements. What it returns gives
// the room back.
func (c *conn) room(ctx context.Context, n int64) (func(), error) {
	limits := &c.s.cfg.Limits
	weight := min(n*answerBytes, limits.RequestsBytesMax)
	if weight <= connBytes {
		return func() {}, nil
	}
	wait, cancel := context.WithTimeout(ctx, limits.Read)
	defer cancel()
	if err := c.s.answers.Acquire(wait, weight); err != nil {
		return nil, fmt.Errorf("no room for an answer of %d elements within %v", n, limits.Read)
	}
	return func() { c.s.answers.Release(weight) }, nil
}

func (c *conn) metadata(ctx context.Context, h header, req *kmsg.MetadataRequest) (*answer, error) {
	catalog := c.s.topics.get()
	resp := req.ResponseKind().(*kmsg.MetadataResponse)
	wanted := catalog.all
	if all := req.Topics == nil || h.version == 0 && len(req.Topics) == 0; !all {
		wanted = nil
		seen := map[*topic]bool{} // asked for twice, a topic is listed once
		for i := range req.Topics {
			t, code := catalog.find(&req.Topics[i])
			if code != 0 {
				resp.Topics = append(resp.Topics, unknownTopic(&req.Topics[i], code))
			} else if !seen[t] {
				seen[t] = true
				wanted = append(wanted, t)
			}
		}
	}
	var n int64
	for _, t := range wanted {
		n += 1 + int64(t.span())
	}
	release, err := c.room(ctx, n)
	if err != nil {
		return nil, err
	}
	host, port := c.advertised()
	b := kmsg.NewMetadataResponseBroker()
	b.NodeID, b.Host, b.Port = NodeID, host, port
	resp.Brokers = []kmsg.MetadataResponseBroker{b}
	resp.ControllerID = NodeID
	resp.ClusterID = &c.s.cfg.ClusterID
	resp.AuthorizedOperations = -1 << 31
	if req.IncludeClusterAuthorizedOperations {
		resp.AuthorizedOperations = operationsOfCluster
	}
	for _, t := range wanted {
		resp.Topics = append(resp.Topics, t.describe(req.IncludeTopicAuthorizedOperations))
	}
	a := c.encode(h, resp, resp.IsFlexible())
	a.release = release
	return a, nil
}

// find finds a topic by its id or its name.
func (c *catalog) find(t *kmsg.MetadataRequestTopic) (*topic, int16) {
	if t.Topic == nil {
		if found := c.byID[t.TopicID]; found != nil {
			return found, 0
		}
		return nil, kerr.UnknownTopicID.Code
	}
	if found := c.byName[*t.Topic]; found != nil {
		return found, 0
	}
	if !tier.LegalTopic(*t.Topic) {
		return nil, kerr.InvalidTopicException.Code
	}
	return nil, kerr.UnknownTopicOrPartition.Code
}

func unknownTopic(t *kmsg.MetadataRequestTopic, code int16) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	out.ErrorCode, out.Topic, out.TopicID = code, t.Topic, t.TopicID
	return out
}

// describe lists the partitions. Those that are not here have no leader.
func (t *topic) describe(operations bool) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	out.Topic, out.TopicID = &t.name, t.id
	if operations {
		out.AuthorizedOperations = operationsOfTopic
	}
	here := []int32{NodeID}
	out.Partitions = make([]kmsg.MetadataResponseTopicPartition, 0, t.span())
	add := func(n, leader int32, code int16, replicas []int32) {
		p := kmsg.NewMetadataResponseTopicPartition()
		p.Partition, p.Leader, p.ErrorCode, p.Replicas, p.ISR = n, leader, code, replicas, replicas
		out.Partitions = append(out.Partitions, p)
	}
	dense := int64(t.span()) > int64(t.partitions[len(t.partitions)-1])
	for _, n := range t.partitions {
		for dense && int64(len(out.Partitions)) < int64(n) {
			add(int32(len(out.Partitions)), -1, kerr.LeaderNotAvailable.Code, nil)
		}
		add(n, NodeID, 0, here)
	}
	return out
}

func (c *conn) describeCluster(_ context.Context, h header, req *kmsg.DescribeClusterRequest) (
	*answer, error) {
	resp := req.ResponseKind().(*kmsg.DescribeClusterResponse)
	if h.version >= 1 && req.EndpointType != 1 {
		resp.ErrorCode = kerr.UnsupportedEndpointType.Code
		resp.EndpointType = req.EndpointType
		return c.encode(h, resp, resp.IsFlexible()), nil
	}
	host, port := c.advertised()
	b := kmsg.NewDescribeClusterResponseBroker()
	b.NodeID, b.Host, b.Port = NodeID, host, port
	resp.ClusterID, resp.ControllerID = c.s.cfg.ClusterID, NodeID
	resp.Brokers = []kmsg.DescribeClusterResponseBroker{b}
	if req.IncludeClusterAuthorizedOperations {
		resp.ClusterAuthorizedOperations = operationsOfCluster
	}
	return c.encode(h, resp, resp.IsFlexible()), nil
}

// describeConfigs gives no configuration: that of the source's broker is not known here, and tools
// that ask for it go on with none.
func (c *conn) describeConfigs(_ context.Context, h header, req *kmsg.DescribeConfigsRequest) (
	*answer, error) {
	catalog := c.s.topics.get()
	resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
	for i := range req.Resources {
		r := &req.Resources[i]
		out := kmsg.NewDescribeConfigsResponseResource()
		out.ResourceType, out.ResourceName = r.ResourceType, r.ResourceName
		switch r.ResourceType {
		case kmsg.ConfigResourceTypeTopic:
			if catalog.byName[r.ResourceName] == nil {
				out.ErrorCode = kerr.UnknownTopicOrPartition.Code
			}
		case kmsg.ConfigResourceTypeBroker:
			if r.ResourceName != "" && r.ResourceName != strconv.Itoa(int(NodeID)) {
				out.ErrorCode = kerr.InvalidRequest.Code
			}
		default:
			out.ErrorCode = kerr.InvalidRequest.Code
		}
		resp.Resources = append(resp.Resources, out)
	}
	return c.encode(h, resp, resp.IsFlexible()), nil
}
