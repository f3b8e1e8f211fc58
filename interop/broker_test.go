package interop_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// beside is a tierd beside the node that has the broker drop what is copied.
func beside(t *testing.T, s *store, k *kafka, n *kafkaNode, more ...string) *rig {
	t.Helper()
	r := newRig(t)
	r.configure(strings.Join(append([]string{
		fmt.Sprintf("sources: [{name: broker, layout: kafka, path: %s, local_delete: delete-records,\n"+
			"  kafka: {bootstrap: %q}}]", n.data(), k.bootstrap()),
		"bucket: " + s.bucket(s.address, credentials{}),
		"http: {listen: off}", "interval: 500ms"}, more...), "\n"))
	return r
}

// shortTTL lets everything go from the disk a second after it was written.
const shortTTL = "defaults: {table.log.ttl: 0, table.log.local-ttl: 1s}"

// logs are the base names of the partition's segments on disk.
func (n *kafkaNode) logs(partition string) []string {
	n.t.Helper()
	paths, err := filepath.Glob(filepath.Join(n.data(), partition, "*.log"))
	if err != nil {
		n.t.Fatal(err)
	}
	for i, p := range paths {
		paths[i] = filepath.Base(p)
	}
	return paths
}

// TestDeleteRecords: while a producer goes on, and tierd and the broker are killed in between, the
// broker drops what is copied and expired, and nothing else; every acknowledged record is in one of
// the tiers, once, in order.
func TestDeleteRecords(t *testing.T) {
	t.Parallel()
	s := filesystem(t)
	k := newKafka(t, 1)
	n := k.nodes[0]
	k.create("orders", 1, 1, smallSegments())
	h, stop := k.produce("orders", 300, 1500)
	r := beside(t, s, k, n, shortTTL)
	d := r.daemon()
	progress := func(what string, beyond int64) int64 {
		t.Helper()
		var start int64
		eventually(t, what, func() (err error) {
			if start, _, err = k.bounds("orders", 0); err == nil && start <= beyond {
				err = fmt.Errorf("the broker's log begins at %d", start)
			}
			return err
		})
		return start
	}
	at := progress("the broker drops something", 100)
	d.kill()
	d = r.daemon()
	at = progress("tierd goes on after it was killed", at)
	n.crash()
	at = progress("all goes on after the broker was killed", at)
	d.kill()
	n.crash()
	d = r.daemon()
	progress("all goes on after both were killed", at)
	stop()
	at, end, err := k.bounds("orders", 0)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the files go", func() error {
		if names := n.logs("orders-0"); len(names) == 0 || names[0] < fmt.Sprintf("%020d.log", at) {
			return fmt.Errorf("%v, and the log begins at %d", names, at)
		}
		return nil
	})
	d.stop()
	t.Logf("%d records, the broker has [%d, %d)", h.count(), at, end)
	h.compare(t, archived(t, s, "orders/0"), k.consumed(k.bootstrap(), "orders"))
	audit(t, r)
}

// audit wants the record of deletions to be whole, and each deletion in it to have an outcome.
func audit(t *testing.T, r *rig) {
	t.Helper()
	r.must("audit", "verify")
	files, err := filepath.Glob(r.path("tierd-data/audit/*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil || !strings.Contains(string(text), "delete_local") {
		t.Errorf("the record names no deletion: %v", err)
	}
}
