package interop_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// refused wants tierd to give the reason for the log, and the broker's log to begin where it did.
func refused(t *testing.T, r *rig, k *kafka, topic, code string) {
	t.Helper()
	before, _, err := k.bounds(topic, 0)
	if err != nil {
		t.Fatal(err)
	}
	within(t, patience, "status says "+code, func() error {
		l, err := r.log(topic + "/0")
		if err != nil {
			return err
		}
		for _, why := range l.Reasons {
			if why.Code == code {
				return nil
			}
		}
		return fmt.Errorf("%+v", l.Reasons)
	})
	if after, _, err := k.bounds(topic, 0); err != nil || after != before {
		t.Errorf("%s: the broker's log begins at %d after %d, %v", code, after, before, err)
	}
}

// filled is a cluster of one node with a topic of so many records, most of them in closed segments
// that the broker has synced.
func filled(t *testing.T, topic string, records int) *kafka {
	t.Helper()
	k := newKafka(t, 1)
	k.create(topic, 1, 1, smallSegments())
	_, stop := k.produce(topic, records, 1500)
	stop()
	return k
}

// copyOf copies a node's log directory as it is now.
func copyOf(t *testing.T, n *kafkaNode) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if _, stderr, code := output(t, n.dir, nil, "cp", "-a", n.data(), dir); code != 0 {
		t.Fatalf("cp: %s", stderr)
	}
	return dir
}

// TestOtherBrokers: nothing is deleted where the broker that would do it is not shown to be the one
// whose directory was copied, and status says why.
func TestOtherBrokers(t *testing.T) {
	t.Parallel()
	k, other := filled(t, "orders", 300), filled(t, "orders", 300)
	for name, c := range map[string]struct {
		code   string
		change func(t *testing.T, dir string) (*kafka, string)
	}{
		"out of reach": {"broker", func(t *testing.T, dir string) (*kafka, string) {
			return k, freeAddress(t)
		}},
		"of another cluster": {"other-log", func(*testing.T, string) (*kafka, string) {
			return other, other.bootstrap()
		}},
		"of another node": {"not-leader", func(t *testing.T, dir string) (*kafka, string) {
			at := filepath.Join(dir, "meta.properties")
			text, err := os.ReadFile(at)
			if err != nil {
				t.Fatal(err)
			}
			text = []byte(strings.Replace(string(text), "node.id=1", "node.id=2", 1))
			if err := os.WriteFile(at, text, 0o600); err != nil {
				t.Fatal(err)
			}
			return k, k.bootstrap()
		}},
		"of a log that begins earlier": {"prefix-blocked", func(t *testing.T, dir string) (*kafka,
			string) {
			oldest, err := filepath.Glob(filepath.Join(dir, "orders-0", fmt.Sprintf("%020d.*", 0)))
			if err != nil || len(oldest) == 0 {
				t.Fatalf("%v, %v", oldest, err)
			}
			for _, name := range oldest { // which the broker has still, and nobody copied
				if err := os.Remove(name); err != nil {
					t.Fatal(err)
				}
			}
			return k, k.bootstrap()
		}},
		"of a directory left behind": {"source-unread", func(*testing.T, string) (*kafka, string) {
			_, stop := k.produce("orders", 5, 1500) // which the directory has not
			stop()
			return k, k.bootstrap()
		}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			dir := copyOf(t, k.nodes[0])
			asked, bootstrap := c.change(t, dir)
			s := filesystem(t)
			r := newRig(t)
			r.configure(strings.Join([]string{
				fmt.Sprintf("sources: [{name: broker, layout: kafka, path: %s, "+
					"local_delete: delete-records, kafka: {bootstrap: %q}}]", dir, bootstrap),
				"bucket: " + s.bucket("", credentials{}), "http: {listen: off}", "interval: 500ms",
				shortTTL}, "\n"))
			before := segments(t, dir)
			d := r.daemon()
			refused(t, r, asked, "orders", c.code)
			d.stop()
			if got := segments(t, dir); !maps.Equal(got, before) {
				t.Errorf("%d segments are left of %d", len(got), len(before))
			}
		})
	}
}

// TestRecreated: a topic that is deleted and made again under the same name is another log. Nothing
// of it is deleted for what was copied of the first.
func TestRecreated(t *testing.T) {
	t.Parallel()
	k := filled(t, "orders", 300)
	s := filesystem(t)
	r := beside(t, s, k, k.nodes[0], shortTTL)
	d := r.daemon()
	k.progress("the broker drops something", 100)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := k.admin().DeleteTopics(ctx, "orders"); err != nil {
		t.Fatal(err)
	}
	k.create("orders", 1, 1, smallSegments())
	h, stop := k.produce("orders", 300, 1500)
	stop()
	refused(t, r, k, "orders", "recreated")
	start, _, err := k.bounds("orders", 0)
	if err != nil || start != 0 {
		t.Errorf("the new log begins at %d, %v", start, err)
	}
	d.stop()
	h.compare(t, &found{}, k.consumed(k.bootstrap(), "orders"))
}

// TestFollower: of three nodes only the one that leads is asked, by the tierd beside it; beside a
// follower nothing is, and its files go when the leader's do. When another leads, it is the other
// way round.
func TestFollower(t *testing.T) {
	t.Parallel()
	k := newKafka(t, 3)
	k.create("orders", 1, 3, smallSegments("min.insync.replicas=2"))
	h, stop := k.produce("orders", 300, 1500)
	leader := k.leader("orders")
	follower := k.nodes[leader.id%3]
	s := filesystem(t)
	r := beside(t, s, k, follower, shortTTL)
	d := r.daemon()
	refused(t, r, k, "orders", "not-leader")
	if got := follower.logs("orders-0"); got[0] != fmt.Sprintf("%020d.log", 0) {
		t.Errorf("beside a follower: %v", got)
	}
	leader.process.kill()
	eventually(t, "another node leads", func() error {
		if now := k.leader("orders"); now.id == leader.id {
			return fmt.Errorf("node %d leads", now.id)
		}
		return nil
	})
	if k.leader("orders").id != follower.id {
		// Of the two that are left the other one leads: let it be asked instead.
		d.stop()
		follower = k.leader("orders")
		s = filesystem(t)
		r = beside(t, s, k, follower, shortTTL)
		d = r.daemon()
	}
	start := k.progress("what leads now drops something", 100)
	leader.start()
	leader.process.listens(leader.client)
	eventually(t, "the files go beside the old leader too", func() error {
		if names := leader.logs("orders-0"); len(names) == 0 ||
			names[0] < fmt.Sprintf("%020d.log", start) {
			return fmt.Errorf("%v, and the log begins at %d", names, start)
		}
		return nil
	})
	stop()
	d.stop()
	h.compare(t, archived(t, s, "orders/0"), k.consumed(k.bootstrap(), "orders"))
}

// leader is the node that leads partition 0 of the topic.
func (k *kafka) leader(topic string) *kafkaNode {
	k.t.Helper()
	var leads *kafkaNode
	eventually(k.t, "the partition has a leader", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		admin := k.admin()
		defer admin.Close()
		d, err := admin.ListTopics(ctx, topic)
		if err != nil {
			return err
		}
		id := d[topic].Partitions[0].Leader
		if id < 1 || int(id) > len(k.nodes) {
			return fmt.Errorf("leader %d", id)
		}
		leads = k.nodes[id-1]
		return nil
	})
	return leads
}
