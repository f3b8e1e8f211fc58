package interop_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// place makes a topic of one partition on the nodes, the first of which is to lead it.
func (k *kafka) place(topic string, settings map[string]*string, nodes ...*kafkaNode) {
	k.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	topicReq := kmsg.NewCreateTopicsRequestTopic()
	topicReq.Topic, topicReq.NumPartitions, topicReq.ReplicationFactor = topic, -1, -1
	assignment := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
	for _, n := range nodes {
		assignment.Replicas = append(assignment.Replicas, int32(n.id))
	}
	topicReq.ReplicaAssignment = append(topicReq.ReplicaAssignment, assignment)
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = key, settings[key]
		topicReq.Configs = append(topicReq.Configs, c)
	}
	req.Topics = append(req.Topics, topicReq)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	resp, err := req.RequestWith(ctx, k.connect())
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

// leads waits until the node leads partition 0 of the topic, with so many replicas in sync.
func (k *kafka) leads(topic string, n *kafkaNode, insync int) {
	k.t.Helper()
	within(k.t, 2*patience, fmt.Sprintf("node %d leads", n.id), func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		admin := k.admin()
		defer admin.Close()
		d, err := admin.ListTopics(ctx, topic)
		if err != nil {
			return err
		}
		if p := d[topic].Partitions[0]; p.Leader != int32(n.id) || len(p.ISR) < insync {
			_, err := admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, kadm.TopicsSet{topic: {0: {}}})
			return errors.Join(err, fmt.Errorf("node %d leads, %v are in sync", p.Leader, p.ISR))
		}
		return nil
	})
}

// TestUncleanElection: a node that missed the newest records comes to lead, and others are written
// in their place. The copies of the old ones let none of the new ones go: those are copied anew,
// and in the end every record that the cluster has acknowledged since is in one of the tiers, where
// readers are given it.
func TestUncleanElection(t *testing.T) {
	t.Parallel()
	k := newKafka(t, 3)
	first, behind := k.nodes[0], k.nodes[1] // the third one is there for the controllers' quorum
	k.place("orders", smallSegments("unclean.leader.election.enable=true"), first, behind)
	k.leads("orders", first, 2)
	h, stop := k.produce("orders", 150, 1500)
	stop()
	behind.process.kill()
	k.leads("orders", first, 1)
	_, stop = k.produce("orders", 200, 1500)
	stop()
	s := filesystem(t)
	r := beside(t, s, k, first, "defaults: {table.log.ttl: 0, table.log.local-ttl: 1h}")
	d := r.daemon()
	eventually(t, "what is to be rewritten is copied", func() error {
		l, err := r.log("orders/0")
		if err == nil && (l.CopiedOffset == nil || *l.CopiedOffset < 250) {
			err = fmt.Errorf("copied offset %v", l.CopiedOffset)
		}
		return err
	})
	d.stop()
	first.process.kill()
	behind.start()
	behind.process.listens(behind.client)
	k.leads("orders", behind, 1)
	_, end, err := k.bounds("orders", 0)
	if err != nil || end >= 350 {
		t.Fatalf("the log ends at %d, %v: nothing was lost", end, err)
	}
	h.cut(end)
	rewritten, stop := k.produce("orders", 250, 1400)
	stop()
	first.start()
	first.process.listens(first.client)
	k.leads("orders", first, 2)
	r.configure(strings.Replace(r.text(), "table.log.local-ttl: 1h", "table.log.local-ttl: 1s", 1))
	d = r.daemon()
	within(t, 2*patience, "the broker drops what was rewritten", func() error {
		start, _, err := k.bounds("orders", 0)
		if err == nil && start < 300 {
			l, _ := r.log("orders/0")
			err = fmt.Errorf("the broker's log begins at %d: %+v", start, l)
		}
		return errors.Join(err, d.ended())
	})
	d.stop()
	maps.Copy(h.values, rewritten.values)
	h.compare(t, restored(t, r, "orders/0"), k.consumed(k.bootstrap(), "orders"))
}

// cut forgets the records from the offset on, which the cluster has lost.
func (h *history) cut(end int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.values, func(o int64, _ string) bool { return o >= end })
}

func (r *rig) text() string {
	r.t.Helper()
	text, err := os.ReadFile(r.path("tierd.yaml"))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// restored reads what tierd gives back of the log.
func restored(t *testing.T, r *rig, log string) *found {
	t.Helper()
	to := filepath.Join(t.TempDir(), "restored")
	r.must("restore", log, "--to", to)
	topic, partition, _ := strings.Cut(log, "/")
	paths, err := filepath.Glob(filepath.Join(to, topic+"-"+partition, "*.log"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%v, %v", paths, err)
	}
	f := &found{}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range decode(t, topic, p, data) {
			f.add(rec)
		}
	}
	return f
}
