package interop_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestRestored: what is archived is restored into a directory that a new broker is started on, and
// the broker serves every record of it.
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
	// A new broker of the same topic id: its own metadata are kept, its log is replaced.
	n := k.nodes[0]
	if err := os.RemoveAll(filepath.Join(n.data(), "orders-0")); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "restored")
	r.must("restore", "orders", "--to", to)
	if _, stderr, code := output(t, n.dir, nil, "cp", "-a", filepath.Join(to, "orders-0"),
		filepath.Join(n.data(), "orders-0")); code != 0 {
		t.Fatal(stderr)
	}
	for _, name := range []string{"recovery-point-offset-checkpoint", "log-start-offset-checkpoint",
		"replication-offset-checkpoint", ".kafka_cleanshutdown"} {
		err := os.Remove(filepath.Join(n.data(), name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
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
