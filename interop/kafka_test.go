package interop_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// clusters counts the clusters, each of which has an id of its own.
var clusters atomic.Int64

func newClusterID() string { return fmt.Sprintf("tierdinterop%08dAA", clusters.Add(1)) }

// kafkaNode is one process that is broker and controller.
type kafkaNode struct {
	id                 int
	dir                string
	client, controller string // addresses
	config             kafkaConfig
	clusterID          string
	process            *process
	t                  *testing.T
}

// kafka is a running cluster.
type kafka struct {
	t     *testing.T
	nodes []*kafkaNode
}

// kafkaConfig says which cluster to start.
type kafkaConfig struct {
	nodes  int
	secure string   // address of a listener with TLS and SASL; "" for none
	second bool     // each node has a second log directory
	extra  []string // lines of all settings
	from   string   // which class path; "" is kafka
	jvm    []string // options; none for small and slow brokers, which most tests want
}

// newKafka starts a cluster of so many nodes.
func newKafka(t *testing.T, nodes int) *kafka {
	t.Helper()
	return startKafka(t, kafkaConfig{nodes: nodes})
}

func startKafka(t *testing.T, c kafkaConfig) *kafka {
	t.Helper()
	k := &kafka{t: t}
	var voters []string
	id := newClusterID()
	for i := range c.nodes {
		n := &kafkaNode{id: i + 1, dir: t.TempDir(), client: freeAddress(t),
			controller: freeAddress(t), config: c, clusterID: id, t: t}
		k.nodes = append(k.nodes, n)
		voters = append(voters, fmt.Sprintf("%d@%s", n.id, n.controller))
	}
	for _, n := range k.nodes {
		n.format(strings.Join(voters, ","))
		n.start()
	}
	for _, n := range k.nodes {
		n.process.listens(n.client)
	}
	eventually(t, "the brokers know each other", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		m, err := k.admin().BrokerMetadata(ctx)
		if err == nil && len(m.Brokers) != c.nodes {
			err = fmt.Errorf("%d brokers", len(m.Brokers))
		}
		return err
	})
	return k
}

// data is the node's log directory.
func (n *kafkaNode) data() string { return filepath.Join(n.dir, "data") }

// second is the node's second log directory, where it has one.
func (n *kafkaNode) second() string { return filepath.Join(n.dir, "second") }

func (n *kafkaNode) format(voters string) {
	n.t.Helper()
	listeners := fmt.Sprintf("PLAINTEXT://%s,CONTROLLER://%s", n.client, n.controller)
	advertised, dirs := "PLAINTEXT://"+n.client, n.data()
	if n.config.second {
		dirs += "," + n.second()
	}
	if n.config.secure != "" {
		listeners += ",SECURE://" + n.config.secure
		advertised += ",SECURE://" + n.config.secure
	}
	lines := append([]string{
		"process.roles=broker,controller",
		fmt.Sprintf("node.id=%d", n.id),
		"controller.quorum.voters=" + voters,
		"listeners=" + listeners,
		"advertised.listeners=" + advertised,
		"controller.listener.names=CONTROLLER",
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL",
		"log.dirs=" + dirs,
		"auto.create.topics.enable=false",
		"log.retention.ms=-1",
		// All that the broker does by the clock, it does soon.
		"log.initial.task.delay.ms=100",
		"log.retention.check.interval.ms=1000",
		"log.segment.delete.delay.ms=500",
		"log.flush.offset.checkpoint.interval.ms=500",
		"log.flush.start.offset.checkpoint.interval.ms=1000",
		"replica.high.watermark.checkpoint.interval.ms=500",
		"group.initial.rebalance.delay.ms=0",
		"offsets.topic.num.partitions=1",
		fmt.Sprintf("offsets.topic.replication.factor=%d", min(n.config.nodes, 3)),
	}, n.config.extra...)
	settings := filepath.Join(n.dir, "server.properties")
	if err := os.WriteFile(settings, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		n.t.Fatal(err)
	}
	args := []string{"kafka.tools.StorageTool", "format", "--cluster-id", n.clusterID,
		"--config", settings}
	if n.config.secure != "" {
		for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
			args = append(args, "--add-scram", mechanism+"=[name=tierd,password=s3cr3t]")
		}
	}
	_, stderr, code := output(n.t, n.dir, nil, "java", n.java(args...)...)
	if code != 0 {
		n.t.Fatalf("format: exit code %d\n%s", code, stderr)
	}
}

func (n *kafkaNode) java(args ...string) []string {
	n.t.Helper()
	path, err := os.ReadFile(filepath.Join(systems, cmp.Or(n.config.from, "kafka"), "class-path"))
	if err != nil {
		n.t.Fatal(err)
	}
	jvm := n.config.jvm
	if jvm == nil {
		jvm = []string{"-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}
	}
	return slices.Concat(jvm, []string{"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp",
		strings.TrimSpace(string(path))}, args)
}

func (n *kafkaNode) start() {
	n.t.Helper()
	n.process = start(n.t, n.dir, fmt.Sprintf("kafka-%d", n.id), nil, "java",
		n.java("kafka.Kafka", filepath.Join(n.dir, "server.properties"))...)
}

// crash kills the node and starts it again.
func (n *kafkaNode) crash() {
	n.t.Helper()
	n.process.kill()
	n.start()
	n.process.listens(n.client)
}

func (k *kafka) bootstrap() string {
	list := make([]string, len(k.nodes))
	for i, n := range k.nodes {
		list[i] = n.client
	}
	return strings.Join(list, ",")
}

// connect makes a client of the cluster.
func (k *kafka) connect(opts ...kgo.Opt) *kgo.Client {
	k.t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(strings.Split(k.bootstrap(), ",")...),
		kgo.MetadataMinAge(100 * time.Millisecond)}, opts...)...)
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(c.Close)
	return c
}

func (k *kafka) admin() *kadm.Client { return kadm.NewClient(k.connect()) }

// smallSegments are the settings of a topic whose segments are full after about ten batches of a
// kilobyte or more.
func smallSegments(more ...string) map[string]*string {
	out := map[string]*string{}
	for _, line := range append([]string{"segment.index.bytes=128", "index.interval.bytes=1024",
		"retention.ms=-1"}, more...) {
		key, value, _ := strings.Cut(line, "=")
		out[key] = &value
	}
	return out
}

// create makes a topic.
func (k *kafka) create(topic string, partitions int32, replicas int16,
	settings map[string]*string) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	admin := k.admin()
	if _, err := admin.CreateTopic(ctx, partitions, replicas, settings, topic); err != nil {
		k.t.Fatal(err)
	}
	eventually(k.t, "the topic is there", func() error {
		d, err := admin.ListTopics(ctx, topic)
		if err == nil {
			err = d.Error()
		}
		return err
	})
}

// bounds are the earliest and the end offset of a partition, as the leader has them.
func (k *kafka) bounds(topic string, partition int32) (start, end int64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	admin := k.admin()
	defer admin.Close()
	s, err := admin.ListStartOffsets(ctx, topic)
	if err != nil {
		return 0, 0, err
	}
	e, err := admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return 0, 0, err
	}
	first, _ := s.Lookup(topic, partition)
	last, _ := e.Lookup(topic, partition)
	if first.Err != nil || last.Err != nil {
		return 0, 0, fmt.Errorf("%v, %v", first.Err, last.Err)
	}
	return first.Offset, last.Offset, nil
}
