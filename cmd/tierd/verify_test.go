package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/verify"
)

const archiveConfig = `
data_dir: data
sources: [{name: broker, layout: kafka, path: kafka}, {name: wal, layout: plain, path: wal}]
bucket: {type: FILESYSTEM, config: {directory: bucket}}
defaults: {table.log.ttl: 0, table.log.local-ttl: 0}
tables: [{name: wal}, {name: epochs}, {name: transactions}, {name: "codec-*"}, {name: "orders*"},
  {name: append-time}, {name: odd-times}, {name: "headers*"}, {name: trimmed},
  {name: formerly-compacted, compacted: false}]
http: {listen: "off"}
`

// archived is a lab whose logs, of a real broker and plain ones, are in the store.
func archived(t *testing.T) *lab {
	t.Helper()
	l := newLab(t, archiveConfig)
	l.write("bucket/.keep", "")
	for i := range 66 { // so many that there is a checkpoint
		l.write(fmt.Sprintf("wal/many/%d.log", i), fmt.Sprintln("segment", i))
	}
	if err := os.CopyFS(l.path("kafka"), os.DirFS("../../testdata/kafka/v4")); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := l.tierd("run", "--once", "--no-delete"); code != exitOK {
		t.Fatalf("run: %d\n%s", code, stderr)
	}
	return l
}

// object finds an object by a part of its key and its ending.
func (l *lab) object(part, suffix string) string {
	l.t.Helper()
	found := ""
	err := filepath.Walk(l.path("bucket"), func(path string, info os.FileInfo, err error) error {
		if found == "" && err == nil && !info.IsDir() && strings.Contains(path, part) &&
			strings.HasSuffix(path, suffix) {
			found = path
		}
		return err
	})
	if err != nil || found == "" {
		l.t.Fatalf("no object with %s and %s: %v", part, suffix, err)
	}
	return found
}

// verify runs the command and returns what it found.
func (l *lab) verify(args ...string) (int, verified) {
	l.t.Helper()
	code, stdout, stderr := l.tierd(append([]string{"verify", "-o", "json"}, args...)...)
	var v verified
	if err := json.Unmarshal([]byte(stdout), &v); err != nil && code != exitUsage {
		l.t.Fatalf("%d %v\n%s%s", code, err, stdout, stderr)
	}
	return code, v
}

// TestVerifyFindsEachDamage plants one damage after the other in a store of real segments, and
// wants each to be found, and nothing else.
func TestVerifyFindsEachDamage(t *testing.T) {
	t.Parallel()
	l := archived(t)
	if code, v := l.verify(); code != exitOK || len(v.Findings) > 0 || v.Read != v.Segments ||
		v.Segments < 30 || v.BytesRead < 1<<20 {
		t.Fatalf("nothing is wrong yet: %d %+v", code, v)
	}
	flip := func(at int) func([]byte) []byte {
		return func(p []byte) []byte { p[(at+len(p))%len(p)] ^= 1; return p }
	}
	cut := func(p []byte) []byte { return p[1:] }
	longer := func(p []byte) []byte { return append(p, 0) }
	empty := func([]byte) []byte { return nil }
	for name, tc := range map[string]struct {
		part, suffix string
		damage       func([]byte) []byte // nil removes the object
		kind         verify.Kind
	}{
		"lost records":     {"logs/epochs/0/", ".log", nil, verify.KindLost},
		"lost index":       {"logs/epochs/0/", ".index", nil, verify.KindLost},
		"cut records":      {"logs/epochs/0/", ".log", cut, verify.KindSize},
		"longer records":   {"logs/epochs/0/", ".log", longer, verify.KindSize},
		"empty records":    {"logs/epochs/0/", ".log", empty, verify.KindSize},
		"first bit":        {"logs/epochs/0/", ".log", flip(0), verify.KindContent},
		"last bit":         {"logs/epochs/0/", ".log", flip(-1), verify.KindContent},
		"bit of an index":  {"logs/epochs/0/", ".timeindex", flip(3), verify.KindContent},
		"plain bit":        {"logs/wal/orders/", ".log", flip(2), verify.KindContent},
		"lost entry":       {"logs/epochs/0/manifest/", ".json", nil, verify.KindManifest},
		"damaged entry":    {"logs/epochs/0/manifest/", ".json", flip(40), verify.KindManifest},
		"cut entry":        {"logs/epochs/0/manifest/", ".json", cut, verify.KindManifest},
		"bit of a txn":     {"logs/transactions/0/", ".txnindex", flip(3), verify.KindContent},
		"cut snapshot":     {"logs/epochs/0/", ".snapshot", cut, verify.KindSize},
		"lost owner":       {"", "owner.json", nil, verify.KindOwner},
		"damaged owner":    {"", "owner.json", flip(40), verify.KindOwner},
		"lost checkpoint":  {"logs/wal/many/manifest/L1-", ".json", nil, verify.KindManifest},
		"bit of one":       {"logs/wal/many/manifest/L1-", ".json", flip(40), verify.KindManifest},
		"entry in a block": {"logs/wal/many/manifest/00000000000000", ".json", nil, verify.KindManifest},
		"lost plain entry": {"logs/wal/orders/manifest/", ".json", nil, verify.KindManifest},
	} {
		key := l.object(tc.part, tc.suffix)
		data, err := os.ReadFile(key)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(key); err != nil {
			t.Fatal(err)
		}
		if tc.damage != nil {
			if err := os.WriteFile(key, tc.damage(slices.Clone(data)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		code, v := l.verify()
		wrong := slices.ContainsFunc(v.Findings, func(f finding) bool { return f.Kind != tc.kind })
		if code != exitCheck || len(v.Findings) != 1 || wrong {
			t.Errorf("%s: %d %+v", name, code, v.Findings)
		}
		if code, v := l.verify("odd-times"); code != exitOK || v.Logs != 3 {
			t.Errorf("%s: another table: %d %+v", name, code, v)
		}
		if err := os.WriteFile(key, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, v := l.verify(); code != exitOK || len(v.Findings) > 0 {
		t.Errorf("all is as it was: %d %+v", code, v)
	}
}

// TestVerifyListsWhatIsNobodys: an old object that nothing names fails, a young one is told.
func TestVerifyListsWhatIsNobodys(t *testing.T) {
	t.Parallel()
	l := archived(t)
	mine := l.object("logs/epochs/0/", ".log")
	attempt := filepath.Base(filepath.Dir(mine))
	other := strings.ReplaceAll(mine, attempt, attempt[:len(attempt)-4]+"ffff")
	if err := os.MkdirAll(filepath.Dir(other), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, []byte("orphan"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, v := l.verify("--read-data-subset", "0%")
	if code != exitOK || len(v.Findings) != 1 || v.Findings[0].Kind != verify.KindOrphan ||
		v.Read != 0 {
		t.Errorf("a young orphan: %d %+v", code, v)
	}
	old := time.Now().Add(-49 * time.Hour)
	if err := os.Chtimes(other, old, old); err != nil {
		t.Fatal(err)
	}
	code, v = l.verify("epochs/0")
	if code != exitCheck || len(v.Findings) != 1 || !v.Findings[0].Fails {
		t.Errorf("an old orphan: %d %+v", code, v)
	}
	if code, _ = l.verify("epochs/1"); code != exitOK {
		t.Errorf("of another log: %d", code)
	}
	code, text, _ := l.tierd("verify", "epochs/0")
	if code != exitCheck || !strings.Contains(text, "! epochs/0: orphan: nothing names it") {
		t.Errorf("%d %s", code, text)
	}
}

func TestVerifyRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	l := archived(t)
	for _, args := range [][]string{{"--read-data-subset", "5"}, {"--read-data-subset", "101%"},
		{"--read-data-subset", "-1%"}, {"--read-data-subset", "NaN%"}, {"none"}, {"epochs/7"},
		{"--workers", "0"}} {
		if code, _ := l.verify(args...); code != exitUsage {
			t.Errorf("%v: %d", args, code)
		}
	}
}

// TestVerifyReadsAPart: a subset reads some copies, not all, and not always the same.
func TestVerifyReadsAPart(t *testing.T) {
	t.Parallel()
	l := archived(t)
	some := map[int64]bool{}
	for range 6 {
		code, v := l.verify("--read-data-subset", "30%")
		if code != exitOK || v.Read == 0 || v.Read == v.Segments {
			t.Errorf("%d, %d of %d copies", code, v.Read, v.Segments)
		}
		some[v.BytesRead] = true
	}
	if len(some) < 2 {
		t.Error("the same part each time")
	}
}

// TestTheArchiveIsCheckedBesideADaemon: verify and restore ask the daemon for what there should be.
func TestTheArchiveIsCheckedBesideADaemon(t *testing.T) {
	t.Parallel()
	l := archived(t)
	l.start("ready")
	if code, v := l.verify("epochs"); code != exitOK || v.Read == 0 || v.Read != v.Segments {
		t.Errorf("%d %+v", code, v)
	}
	code, r, stderr := l.restore("epochs", "--to", l.path("out"))
	if code != exitOK || r.Written == 0 {
		t.Errorf("%d %+v %s", code, r, stderr)
	}
	if err := os.Remove(l.object("logs/epochs/0/", ".index")); err != nil {
		t.Fatal(err)
	}
	if code, v := l.verify("epochs"); code != exitCheck || len(v.Findings) != 1 {
		t.Errorf("%d %+v", code, v)
	}
}
