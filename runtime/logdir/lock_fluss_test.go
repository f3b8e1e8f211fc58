//go:build unix

package logdir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/logdir"
)

// TestTabletLock wants the lock to count only where it means that no tablet server runs: one that
// locks its directory, and that ended cleanly.
func TestTabletLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	lock := logdir.NewTabletLock(dir)
	refused := func(step, want string) {
		t.Helper()
		held, err := lock.TryLock()
		if held || err == nil || !strings.Contains(err.Error(), want) || lock.Held() {
			t.Errorf("%s: %v, %v, held %v; want %q", step, held, err, lock.Held(), want)
		}
	}
	refused("nothing there", "disk.properties is not there: want a tablet server that locks")
	put(".lock", ".fluss_cleanshutdown")
	refused("of a server that does not lock", "disk.properties is not there")
	put("disk.properties")
	if err := os.Remove(filepath.Join(dir, ".fluss_cleanshutdown")); err != nil {
		t.Fatal(err)
	}
	refused("it runs, or crashed", ".fluss_cleanshutdown is not there: want a tablet server that was")
	put(".fluss_cleanshutdown")
	says, stop := startBroker(t, dir)
	if held, err := lock.TryLock(); says != "held\n" || held || err != nil || lock.Held() {
		t.Errorf("while it is held: %v, %v", held, err)
	}
	stop()
	if held, err := lock.TryLock(); !held || err != nil || !lock.Held() {
		t.Errorf("after it ended: %v, %v", held, err)
	}
	says, stop = startBroker(t, dir)
	stop()
	if says != "busy\n" {
		t.Errorf("a tablet server beside tierd is %s", says)
	}
	// A server that does not heed the lock begins by taking its mark away.
	if err := os.Remove(filepath.Join(dir, ".fluss_cleanshutdown")); err != nil {
		t.Fatal(err)
	}
	refused("a server that does not lock began", ".fluss_cleanshutdown is not there")
	if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
}
