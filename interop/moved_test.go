package interop_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

// TestMovedPartition: a broker moves a partition to another of its directories, both of which are
// sources. Copying and dropping go on there, and nothing is lost or taken for something else.
func TestMovedPartition(t *testing.T) {
	t.Parallel()
	k := startKafka(t, kafkaConfig{nodes: 1, second: true})
	n := k.nodes[0]
	k.create("orders", 1, 1, smallSegments())
	h, stop := k.produce("orders", 300, 1500)
	from, to := n.data(), n.second()
	if _, err := os.Stat(filepath.Join(from, "orders-0")); err != nil {
		from, to = to, from
	}
	s, r := filesystem(t), newRig(t)
	source := func(name, dir string) string {
		return fmt.Sprintf("  - {name: %s, layout: kafka, path: %s, local_delete: delete-records,\n"+
			"     kafka: {bootstrap: %q}}\n", name, dir, k.bootstrap())
	}
	r.configure("sources:\n" + source("from", from) + source("to", to) + "bucket: " +
		s.bucket("", credentials{}) + "\nhttp: {listen: off}\ninterval: 500ms\n" + shortTTL)
	d := r.daemon()
	at := k.progress("the broker drops something", 100)
	move := kadm.AlterReplicaLogDirsReq{}
	move.Add(to, kadm.TopicsSet{"orders": {0: {}}})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	moved, err := k.admin().AlterBrokerReplicaLogDirs(ctx, int32(n.id), move)
	if err == nil {
		for _, m := range moved.Sorted() {
			err = errors.Join(err, m.Err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the partition is moved", func() error {
		left, err := filepath.Glob(filepath.Join(from, "orders-0*"))
		if _, there := os.Stat(filepath.Join(to, "orders-0")); there != nil || len(left) > 0 {
			err = errors.Join(err, there, fmt.Errorf("left are %v", left))
		}
		return err
	})
	k.progress("the broker goes on dropping", at+100)
	stop()
	eventually(t, "the files go there", func() error {
		names, err := filepath.Glob(filepath.Join(to, "orders-0", "*.log"))
		if err != nil || len(names) == 0 || filepath.Base(names[0]) == fmt.Sprintf("%020d.log", 0) {
			return errors.Join(err, fmt.Errorf("left are %v", names))
		}
		return d.ended()
	})
	d.stop()
	h.compare(t, restored(t, r, "orders/0"), k.consumed(k.bootstrap(), "orders"))
}
