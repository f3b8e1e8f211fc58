package interop_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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

// lastFlag is for runs by hand: make interop INTEROP='-run TestDeleteRecords -last=5m'.
var lastFlag = flag.Duration("last", 0, "how long TestDeleteRecords goes on at least")

// TestDeleteRecords: while a producer goes on, and tierd and the broker are killed in between, the
// broker drops what is copied and expired, and nothing else. Three clients read all the while from
// tierd's own endpoint: each gets every acknowledged record once, in order.
func TestDeleteRecords(t *testing.T) {
	t.Parallel()
	s := filesystem(t)
	k := newKafka(t, 1)
	n := k.nodes[0]
	k.create("kept", 1, 1, smallSegments())
	k.create("orders", 1, 1, smallSegments())
	_, stop := k.produce("kept", 50, 1500)
	stop()
	h, stop := k.produce("orders", 300, 1500)
	endpoint := freeAddress(t)
	r := beside(t, s, k, n, shortTTL, "tables: [{name: kept, table.log.local-ttl: 30d}, {name: '*'}]",
		fmt.Sprintf("kafka: {listen: %q}", endpoint))
	d := r.daemon()
	d.listens(endpoint)
	readers := follow(t, k, endpoint)
	at := k.progress("the broker drops something", 100)
	began := time.Now()
	for round := 0; round < 3 || time.Since(began) < *lastFlag; round++ {
		// In turn: tierd, the broker, and both.
		what := []string{"tierd", "the broker", "tierd and the broker"}[round%3]
		if round%3 != 1 {
			d.kill()
		}
		if round%3 != 0 {
			n.crash()
		}
		if round%3 != 1 {
			d = r.daemon()
		}
		at = k.progress(fmt.Sprintf("all goes on after %s was killed, %d", what, round), at)
	}
	stop()
	_, end, err := k.bounds("orders", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range readers {
		f.whole(h, end)
	}
	settled(t, r, k, "orders")
	if at, _, err := k.bounds("kept", 0); err != nil || at != 0 {
		t.Errorf("of a table that keeps its segments the broker's log begins at %d, %v", at, err)
	}
	d.stop()
	t.Logf("%d records in %s", h.count(), time.Since(began))
	h.compare(t, archived(t, s, "orders/0"), k.consumed(k.bootstrap(), "orders"))
	audit(t, r)
}

// progress waits until the broker's log of orders begins beyond the offset, and returns where.
func (k *kafka) progress(what string, beyond int64) (start int64) {
	k.t.Helper()
	eventually(k.t, what, func() (err error) {
		if start, _, err = k.bounds("orders", 0); err == nil && start <= beyond {
			err = fmt.Errorf("the broker's log begins at %d", start)
		}
		return err
	})
	return start
}

// settled waits until the broker has dropped all that is copied, and just that: its log begins at
// the copied offset, and the older files are gone. All that is copied is over its TTL by then.
func settled(t *testing.T, r *rig, k *kafka, topic string) {
	t.Helper()
	eventually(t, "the broker keeps what is not copied, and nothing else", func() error {
		start, _, err := k.bounds(topic, 0)
		if err != nil {
			return err
		}
		l, err := r.log(topic + "/0")
		if err != nil {
			return err
		}
		files := k.nodes[0].logs(topic + "-0")
		if l.CopiedOffset == nil || *l.CopiedOffset != start || len(files) == 0 ||
			files[0] != fmt.Sprintf("%020d.log", start) {
			return fmt.Errorf("it begins at %d, has %v, and %+v", start, files, l)
		}
		return nil
	})
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
