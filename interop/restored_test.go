package interop_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestRestored: what is archived is restored, with the checkpoints that a broker keeps, and takes
// the place of the only log of a broker, which serves every record of it.
func TestRestored(t *testing.T) {
	t.Parallel()
	k := newKafka(t, 1)
	k.create("orders", 1, 1, smallSegments())
	_, stop := k.produce("orders", 400, 1500)
	stop()
	s := filesystem(t)
	r := beside(t, s, k, k.nodes[0], shortTTL)
	var archive *found
	eventually(t, "the broker writes its checkpoints, and all that is closed is copied", func() error {
		r.must("run", "--once", "--no-delete")
		if archive = archived(t, s, "orders/0"); len(archive.offsets) < 300 {
			return fmt.Errorf("%d records are archived", len(archive.offsets))
		}
		return nil
	})
	k.nodes[0].process.stop()
	// The broker keeps its cluster's metadata, and with them the topic's id.
	n := k.nodes[0]
	err := errors.Join(os.RemoveAll(filepath.Join(n.data(), "orders-0")),
		os.Remove(filepath.Join(n.data(), ".kafka_cleanshutdown")))
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "restored")
	r.must("restore", "orders", "--to", to)
	if _, stderr, code := output(t, n.dir, nil, "cp", "-a", to+"/.", n.data()); code != 0 {
		t.Fatal(stderr)
	}
	n.start()
	n.process.listens(n.client)
	got := k.consumed(k.bootstrap(), "orders")
	if len(got.offsets) != len(archive.offsets) {
		t.Errorf("the broker serves %d records, archived are %d", len(got.offsets),
			len(archive.offsets))
	}
	for i, o := range archive.offsets {
		if i < len(got.offsets) && (got.offsets[i] != o || got.values[o] != archive.values[o]) {
			t.Fatalf("offset %d is %.40q, archived is %.40q", o, got.values[o], archive.values[o])
		}
	}
}
