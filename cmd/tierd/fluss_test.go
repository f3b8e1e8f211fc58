package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const flussConfig = `
data_dir: data
sources: [{name: tablets, layout: fluss, path: tablets, local_delete: unlink}]
bucket: {type: FILESYSTEM, config: {directory: bucket}}
defaults: {table.log.ttl: 0, table.log.local-ttl: 1ms}
http: {listen: "off"}
`

// flussLab is a lab over a copy of a real tablet server's directory. That server is of a version
// that locks nothing: the files that later ones leave behind are put there.
func flussLab(t *testing.T, put ...string) *lab {
	t.Helper()
	l := newLab(t, flussConfig)
	l.write("bucket/.keep", "")
	if err := os.CopyFS(l.path("tablets"), os.DirFS("../../testdata/fluss/v0")); err != nil {
		t.Fatal(err)
	}
	for _, name := range put {
		l.write("tablets/"+name, "")
	}
	return l
}

// TestATabletServersDirectory copies, deletes, verifies and restores the logs of a real tablet
// server: all that is closed is in the store byte for byte, what is deleted comes back the same,
// and changelogs stay.
func TestATabletServersDirectory(t *testing.T) {
	t.Parallel()
	l := flussLab(t, ".lock", "disk.properties")
	original := files(t, "../../testdata/fluss/v0")
	code, stdout, stderr := l.tierd("run", "--once")
	if code != exitOK || !strings.Contains(stdout, "copied 10 segments") ||
		!strings.Contains(stdout, "deleted 8") ||
		!strings.Contains(stdout, "shop.customers/0: waiting until") {
		t.Fatalf("%d %s%s", code, stdout, stderr)
	}
	left := files(t, l.path("tablets"))
	for name, data := range original {
		now, there := left[name]
		// Snapshots that are of no segment's base are the server's to remove.
		segment := original[strings.TrimSuffix(name, filepath.Ext(name))+".log"] != nil
		gone := segment && !active(original, name) && !strings.HasPrefix(name, "shop/customers-5/")
		if there == gone || there && !bytes.Equal(now, data) {
			t.Errorf("%s: there %v, %d bytes; want %v, %d", name, there, len(now), !gone, len(data))
		}
	}
	for name := range left {
		if _, known := original[name]; !known && !strings.HasPrefix(name, ".") &&
			name != "disk.properties" {
			t.Errorf("%s came", name)
		}
	}
	if code, v := l.verify(); code != exitOK {
		t.Errorf("verify: %d %+v", code, v)
	}
	code, stdout, _ = l.tierd("explain", "shop.customers/0@10")
	if code != exitOK || !strings.Contains(stdout, "a table with a primary key") {
		t.Errorf("explain: %d %s", code, stdout)
	}
	restoredBuckets(t, l, original)
}

// restoredBuckets restores each table and compares it with the original.
func restoredBuckets(t *testing.T, l *lab, original map[string][]byte) {
	t.Helper()
	compared := 0
	for table, dir := range map[string]string{"shop.orders": "shop/orders-0/",
		"shop.visits": "shop/visits-3/", "shop.rows-1": "shop/rows-1-1/", "shop.again": "shop/again-7/",
		"shop.customers": "shop/customers-5/"} {
		to := l.path("restored-" + table)
		if code, r, stderr := l.restore(table, "--to", to); code != exitOK || r.Written == 0 {
			t.Fatalf("%s: %d %+v %s", table, code, r, stderr)
		}
		got := files(t, to)
		for name, data := range got {
			if strings.HasSuffix(name, "checkpoint") {
				compareCheckpoint(t, name, string(data), string(original[name]))
			} else if compared++; !bytes.Equal(data, original[name]) {
				t.Errorf("%s: %d bytes, %d in the original", name, len(data), len(original[name]))
			}
		}
		for name := range original {
			if _, ok := got[name]; !ok && strings.HasPrefix(name, dir) &&
				filepath.Ext(name) == ".log" && !active(original, name) {
				t.Errorf("%s is not restored", name)
			}
		}
	}
	if compared < 32 {
		t.Errorf("only %d files were compared", compared)
	}
}

// TestNothingIsUnlinkedWhereATabletServerMayRun: neither beside one that locks nothing, nor beside
// one that did not end cleanly. It copies, and says why it deletes nothing.
func TestNothingIsUnlinkedWhereATabletServerMayRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		put  []string
		take string
		want string
	}{
		"of a version that locks nothing": {put: []string{".lock"}, want: "disk.properties is not there"},
		"running, or crashed": {put: []string{".lock", "disk.properties"}, take: ".fluss_cleanshutdown",
			want: ".fluss_cleanshutdown is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := flussLab(t, c.put...)
			if c.take != "" {
				if err := os.Remove(l.path("tablets/" + c.take)); err != nil {
					t.Fatal(err)
				}
			}
			code, stdout, stderr := l.tierd("run", "--once")
			if code != exitRuntime || !strings.Contains(stdout, "copied 10 segments") ||
				!strings.Contains(stdout, "deleted 0") || !strings.Contains(stdout, c.want) {
				t.Errorf("%d %s%s", code, stdout, stderr)
			}
			for name := range files(t, "../../testdata/fluss/v0") {
				if _, err := os.Stat(l.path("tablets/" + name)); err != nil && name != c.take {
					t.Error(err)
				}
			}
		})
	}
}
