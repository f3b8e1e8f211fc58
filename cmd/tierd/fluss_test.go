package main

import (
	"bytes"
	"fmt"
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

// flussLab is a lab over a copy of a real tablet server's directory, and what that has.
func flussLab(t *testing.T, set string) (l *lab, original map[string][]byte) {
	t.Helper()
	l = newLab(t, flussConfig)
	l.write("bucket/.keep", "")
	from := filepath.Join("../../testdata/fluss", set)
	if err := os.CopyFS(l.path("tablets"), os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return l, files(t, from)
}

const changelogDir = "shop/customers-5/"

// closedIn counts the segments that another follows, and those of them that are of no changelog.
func closedIn(original map[string][]byte) (all, appends int) {
	for name := range original {
		if filepath.Ext(name) == ".log" && !active(original, name) {
			all++
			if !strings.HasPrefix(name, changelogDir) {
				appends++
			}
		}
	}
	return all, appends
}

// TestATabletServersDirectory copies, deletes, verifies and restores the logs of a real tablet
// server: all that is closed is in the store byte for byte, what is deleted comes back the same,
// and changelogs stay.
func TestATabletServersDirectory(t *testing.T) {
	t.Parallel()
	for _, set := range []string{"v0", "v1"} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			l, original := flussLab(t, set)
			if set == "v0" {
				// That server is of a version that locks nothing: here is what later ones leave.
				l.write("tablets/.lock", "")
				l.write("tablets/disk.properties", "")
			}
			tierTablets(t, l, original)
			restoredBuckets(t, l, original)
		})
	}
}

// tierTablets copies and deletes all that may be, and compares what is left with the original.
func tierTablets(t *testing.T, l *lab, original map[string][]byte) {
	t.Helper()
	all, appends := closedIn(original)
	code, stdout, stderr := l.tierd("run", "--once")
	if code != exitOK || all < 9 ||
		!strings.Contains(stdout, fmt.Sprintf("copied %d segments", all)) ||
		!strings.Contains(stdout, fmt.Sprintf("deleted %d", appends)) ||
		!strings.Contains(stdout, "shop.customers/0: waiting until") {
		t.Fatalf("%d closed: %d %s%s", all, code, stdout, stderr)
	}
	left := files(t, l.path("tablets"))
	for name, data := range original {
		now, there := left[name]
		// Snapshots that are of no segment's base are the server's to remove.
		segment := original[strings.TrimSuffix(name, filepath.Ext(name))+".log"] != nil
		gone := segment && !active(original, name) && !strings.HasPrefix(name, changelogDir)
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
	if compared < 30 {
		t.Errorf("only %d files were compared", compared)
	}
}

// TestNothingIsUnlinkedWhereATabletServerMayRun: neither beside one that locks nothing, nor beside
// one that did not end cleanly. It copies, and says why it deletes nothing.
func TestNothingIsUnlinkedWhereATabletServerMayRun(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]string{"v0": "disk.properties is not there",
		"v1-live": ".fluss_cleanshutdown is not there"} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			l, original := flussLab(t, set)
			l.write("tablets/.lock", "")
			all, _ := closedIn(original)
			code, stdout, stderr := l.tierd("run", "--once")
			if code != exitRuntime || !strings.Contains(stdout, "deleted 0") ||
				!strings.Contains(stdout, fmt.Sprintf("copied %d segments", all)) ||
				!strings.Contains(stdout, want) {
				t.Errorf("%d %s%s", code, stdout, stderr)
			}
			for name := range original {
				if _, err := os.Stat(l.path("tablets/" + name)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
