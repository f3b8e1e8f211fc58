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
	endpoint := freeAddress(t)
	r := beside(t, s, k, n, shortTTL, fmt.Sprintf("kafka: {listen: %q}", endpoint))
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
	whole(t, k, h, endpoint, end)
	d.stop()
	t.Logf("%d records, the broker has [%d, %d)", h.count(), at, end)
	h.compare(t, archived(t, s, "orders/0"), k.consumed(k.bootstrap(), "orders"))
	audit(t, r)
}

// whole reads all that was ever acknowledged from tierd's own endpoint, by two clients: each gets
// each record once, in order, from whichever tier has it.
func whole(t *testing.T, k *kafka, h *history, endpoint string, end int64) {
	t.Helper()
	franz := k.read(endpoint, "orders", end)
	for i, o := range franz.offsets {
		if o != int64(i) || franz.values[o] != h.values[o] {
			t.Fatalf("franz-go: record %d has the offset %d and is %.40q, want %.40q", i, o,
				franz.values[o], h.values[int64(i)])
		}
	}
	stdout, stderr, code := output(t, t.TempDir(), nil, "java", k.nodes[0].java(
		"org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", endpoint, "--topic",
		"orders", "--partition", "0", "--offset", "earliest", "--max-messages", fmt.Sprint(end))...)
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	if code != 0 || int64(len(lines)) != end {
		t.Fatalf("the console consumer: exit code %d, %d records of %d\n%s", code, len(lines), end,
			stderr)
	}
	for i, line := range lines {
		if line != h.values[int64(i)] {
			t.Fatalf("the console consumer: record %d is %.40q, want %.40q", i, line,
				h.values[int64(i)])
		}
	}
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
