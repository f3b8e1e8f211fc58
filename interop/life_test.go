package interop_test

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestStores takes logs through a life on each store: they are copied, the copies are read back,
// the local files go, tiering is turned off and on with both policies, and in the end all expires.
func TestStores(t *testing.T) {
	t.Parallel()
	for name, begin := range stores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			r := newRig(t)
			r.env = s.env(s.address)
			wal(t, r.path("wal/a"), 5, 200_000)
			wal(t, r.path("wal/b"), 3, 1)
			before := segments(t, r.path("wal"))

			keep := "defaults: {table.log.ttl: 0, table.log.local-ttl: 1d}"
			r.configure(s.config(s.address, credentials{}, keep))
			r.must("check")
			r.must("run", "--once")
			closed := stored(t, s, before)
			if want := 4 + 2; len(closed) != want {
				t.Fatalf("%d closed segments are in the store, want %d", len(closed), want)
			}
			onlyOpen(t, r, before, closed)
			r.must("verify")
			restore(t, r, before, closed)

			toggle(t, s, r, before, closed)
			expire(t, s)
		})
	}
}

// restore wants the restored segments to be as they were.
func restore(t *testing.T, r *rig, before map[string]string, closed []string) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "restored")
	r.must("restore", "wal", "--to", to)
	want := map[string]string{}
	for _, p := range closed {
		want[p] = before[p]
	}
	got := map[string]string{}
	for p, sum := range segments(t, to) {
		got[strings.TrimPrefix(p, "wal/")] = sum
	}
	if !maps.Equal(got, want) {
		t.Errorf("restored are %v, want %v", slices.Sorted(maps.Keys(got)), closed)
	}
}

// stored wants every object with records to be one of the segments, byte for byte, and returns the
// paths of those that the store has.
func stored(t *testing.T, s *store, before map[string]string) []string {
	t.Helper()
	var found []string
	for _, key := range s.records(t) {
		at, sum := "", sum(s.read(t, key))
		for _, p := range slices.Sorted(maps.Keys(before)) {
			if before[p] == sum && path.Base(key) == path.Base(p) {
				at = p
			}
		}
		if at == "" {
			t.Errorf("%s is no segment, or not as it was", key)
		}
		found = append(found, at)
	}
	slices.Sort(found)
	return found
}

// onlyOpen wants the copied segments to be gone from the disk, and the others to be as they were.
func onlyOpen(t *testing.T, r *rig, before map[string]string, closed []string) {
	t.Helper()
	want := maps.Clone(before)
	for _, p := range closed {
		delete(want, p)
	}
	if got := segments(t, r.path("wal")); !maps.Equal(got, want) {
		t.Errorf("left on disk are %v, want %v", slices.Sorted(maps.Keys(got)),
			slices.Sorted(maps.Keys(want)))
	}
}

// toggle turns tiering off and on by both policies: retain keeps all, delete removes all.
func toggle(t *testing.T, s *store, r *rig, before map[string]string, closed []string) {
	t.Helper()
	const defaults = "defaults: {table.log.ttl: 0, table.log.local-ttl: 1d, " +
		"remote.log.disable.policy: "
	limits := "limits: {remote_delete_grace: 0s}"
	off := defaults + "%, remote.storage.enable: false}"
	d := func(text string) *process {
		r.configure(s.config(s.address, credentials{}, limits, text))
		return r.daemon()
	}
	p := d(strings.Replace(off, "%", "retain", 1))
	first := r.table("wal", "DISABLED")
	p.stop()
	readBack(t, s, r, before, closed)
	if got := stored(t, s, before); !slices.Equal(got, closed) {
		t.Errorf("retain left %v of %v", got, closed)
	}
	p = d(defaults + "retain}")
	if again := r.table("wal", "ENABLED"); again != first+1 {
		t.Errorf("tier epoch %d after %d", again, first)
	}
	p.stop()
	p = d(strings.Replace(off, "%", "delete", 1))
	eventually(t, "the objects go", func() error { return none(s.records(t)) })
	r.table("wal", "DISABLED")
	p.stop()
}

// readBack reads each closed segment through tierd, which has none of them on disk any more: as
// records, and as a file.
func readBack(t *testing.T, s *store, r *rig, before map[string]string, closed []string) {
	t.Helper()
	address := freeAddress(t)
	r.configure(strings.Replace(r.text(), "http: {listen: off}",
		fmt.Sprintf("http: {listen: %q}", address), 1))
	p := r.daemon()
	p.listens(address)
	r.table("wal", "DISABLED")
	for _, name := range closed {
		base, err := strconv.Atoi(strings.TrimSuffix(path.Base(name), ".log"))
		if err != nil {
			t.Fatal(err)
		}
		for _, ask := range []string{fmt.Sprintf("records?offset=%d&max_bytes=1", base),
			fmt.Sprintf("segment?base=%d", base)} {
			url := fmt.Sprintf("http://%s/api/v1/logs/wal/%s/%s", address, path.Dir(name), ask)
			if got := sum(get(t, url)); got != before[name] {
				t.Errorf("%s: %s is not as it was", s.name, ask)
			}
		}
	}
	p.stop()
}

// expire copies logs whose records are over the table's TTL: they leave the store again.
func expire(t *testing.T, s *store) {
	t.Helper()
	r := newRig(t)
	r.env = s.env(s.address)
	wal(t, r.path("wal/a"), 4, 1000)
	r.configure(s.config(s.address, credentials{},
		"defaults: {table.log.ttl: 10d, table.log.local-ttl: 1d}"))
	r.must("run", "--once")
	if n := len(s.records(t)); n != 3 {
		t.Fatalf("%d segments are in the store, want 3", n)
	}
	r.configure(s.config(s.address, credentials{}, "limits: {remote_delete_grace: 0s}",
		"defaults: {table.log.ttl: 1d}"))
	p := r.daemon()
	eventually(t, "the objects go", func() error { return none(s.records(t)) })
	l, err := r.log("wal/a")
	if err != nil || l.LogStart == nil || *l.LogStart != 3000 {
		t.Errorf("log start %v, want 3000: %v", l.LogStart, err)
	}
	p.stop()
	if _, err := os.Stat(filepath.Join(r.path("wal"), "a", "00000000000000003000.log")); err != nil {
		t.Error(err)
	}
}

// none is an error while there are objects.
func none(keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	return fmt.Errorf("%d objects: %s ...", len(keys), keys[0])
}
