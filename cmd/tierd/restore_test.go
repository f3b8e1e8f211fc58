package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// restore runs the command.
func (l *lab) restore(args ...string) (int, restored, string) {
	l.t.Helper()
	code, stdout, stderr := l.tierd(append([]string{"restore", "-o", "json"}, args...)...)
	var r restored
	if err := json.Unmarshal([]byte(stdout), &r); err != nil && code == exitOK {
		l.t.Fatalf("%d %v\n%s%s", code, err, stdout, stderr)
	}
	return code, r, stderr
}

// TestRestoreCountsWhatItMakes: a broker's directory has more files than the store.
func TestRestoreCountsWhatItMakes(t *testing.T) {
	t.Parallel()
	for want, out := range map[string]restored{
		"out: 6 files written; and 5, such as checkpoints, for the program that opens them\n": {
			To: "out", Written: 6, texts: 5},
		"out: 1 file written, 5 already there; and 5, such as checkpoints, for the program that " +
			"opens them\n": {To: "out", Written: 1, Kept: 5, texts: 5},
		"out: 6 files written\n": {To: "out", Written: 6},
	} {
		p := &page{}
		printRestored(p, &out)
		if got := p.String(); !strings.HasSuffix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// files reads all files below a directory, by their paths in it.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, errRel := filepath.Rel(dir, path)
		out[rel] = data
		if err == nil {
			err = errRel
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// active reports whether the file is of the segment that was being written, or of the broker as a
// whole: what docs/reading.md says is not restored.
func active(original map[string][]byte, name string) bool {
	dir, file := filepath.Split(name)
	if len(file) < 20 {
		return true
	}
	for other := range original {
		// A segment is closed where another with a higher base has records.
		if d, f := filepath.Split(other); d == dir && strings.HasSuffix(f, ".log") && f[:20] > file[:20] {
			return false
		}
	}
	return true
}

// TestARestoredDirectoryIsTheOriginal compares every file of real partitions with what comes back
// from the store, after the source has lost them.
func TestARestoredDirectoryIsTheOriginal(t *testing.T) {
	t.Parallel()
	l := archived(t)
	original := files(t, "../../testdata/kafka/v4")
	times := map[string]int64{}
	for name := range original {
		info, err := os.Stat(filepath.Join(l.path("kafka"), name))
		if err != nil {
			t.Fatal(err)
		}
		times[name] = info.ModTime().UnixNano()
	}
	if err := os.RemoveAll(l.path("kafka")); err != nil {
		t.Fatal(err)
	}
	compared, texts := 0, 0
	for _, table := range []string{"epochs", "transactions", "codec-gzip", "orders-2024", "odd-times",
		"append-time", "headers_and.nulls", "formerly-compacted"} {
		to := l.path("restored-" + table)
		if code, r, stderr := l.restore(table, "--to", to, "--dry-run"); code != exitOK || r.Files == 0 {
			t.Fatalf("%s, dry: %d %+v %s", table, code, r, stderr)
		}
		if _, err := os.Stat(to); err == nil {
			t.Fatalf("%s: a dry run wrote", table)
		}
		code, r, stderr := l.restore(table, "--to", to)
		if code != exitOK || r.Written != r.Files || r.Files == 0 {
			t.Fatalf("%s: %d %+v %s", table, code, r, stderr)
		}
		got := files(t, to)
		for name, data := range got {
			switch {
			case strings.HasSuffix(name, "checkpoint"):
				texts++
				compareCheckpoint(t, name, string(data), string(original[name]))
			case !bytes.Equal(data, original[name]):
				t.Errorf("%s: %d bytes, %d in the original", name, len(data), len(original[name]))
			case strings.HasSuffix(name, "partition.metadata"):
				texts++
			default:
				compared++
				info, err := os.Stat(filepath.Join(to, name))
				if err != nil || info.ModTime().UnixNano() != times[name] {
					t.Errorf("%s: %v, its time is not that of the original", name, err)
				}
			}
		}
		for name := range original {
			if _, ok := got[name]; !ok && strings.HasPrefix(name, table) && !active(original, name) {
				t.Errorf("%s is not restored", name)
			}
		}
	}
	if compared < 100 || texts < 40 {
		t.Errorf("only %d files and %d texts were compared", compared, texts)
	}
}

// TestOlderDirectoriesComeBack: of brokers of old, and of one that was running.
func TestOlderDirectoriesComeBack(t *testing.T) {
	t.Parallel()
	for set, tables := range map[string][]string{"magic0": {"codec-gzip", "codec-none"},
		"magic1": {"codec-lz4", "append-time", "upgraded"}, "v4-live": {"events"}} {
		l := newLab(t, `
data_dir: data
sources: [{name: broker, layout: kafka, path: kafka}]
bucket: {type: FILESYSTEM, config: {directory: bucket}}
defaults: {table.log.ttl: 0}
`)
		l.write("bucket/.keep", "")
		from := filepath.Join("../../testdata/kafka", set)
		if err := os.CopyFS(l.path("kafka"), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := l.tierd("run", "--once", "--no-delete"); code != exitOK {
			t.Fatalf("%s: %d\n%s", set, code, stderr)
		}
		if code, v := l.verify(); code != exitOK {
			t.Errorf("%s: %d %+v", set, code, v)
		}
		for _, table := range tables {
			to := l.path("restored-" + table)
			if code, r, stderr := l.restore(table, "--to", to); code != exitOK || r.Written == 0 {
				t.Errorf("%s: %s: %d %+v %s", set, table, code, r, stderr)
			}
			for name, got := range files(t, to) {
				want, err := os.ReadFile(filepath.Join(from, name))
				if !strings.HasSuffix(name, "checkpoint") && (err != nil || !bytes.Equal(got, want)) {
					t.Errorf("%s: %s: %v, %d bytes of %d", set, name, err, len(got), len(want))
				}
			}
		}
	}
}

// compareCheckpoint wants each line of a restored checkpoint in the original, but for ends: what
// was not copied yet is not there.
func compareCheckpoint(t *testing.T, name, got, original string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if len(lines) < 2 || lines[0] != "0" || !strings.HasSuffix(got, "\n") {
		t.Errorf("%s: %q", name, got)
		return
	}
	for _, line := range lines[2:] {
		if strings.Contains(name, "leader-epoch") && !strings.Contains(original, "\n"+line+"\n") {
			t.Errorf("%s: %q is not in the original %q", name, line, original)
		}
		if i := strings.LastIndexByte(line, ' '); !strings.Contains(original, "\n"+line[:i]+" ") &&
			!strings.Contains(name, "log-start") && !strings.Contains(name, "leader-epoch") {
			t.Errorf("%s: %q is of no partition of the original %q", name, line, original)
		}
	}
}

// TestARestoreGoesOnWhereItStopped plays a kill: some files are there, one is half, the marker says
// that it is not complete.
func TestARestoreGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	l := archived(t)
	to := l.path("out")
	log := l.object("logs/epochs/0/", "140.log")
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(log); err != nil { // the store is out of order meanwhile
		t.Fatal(err)
	}
	code, _, stderr := l.restore("epochs/0", "--to", to, "--workers", "1")
	if code != exitRuntime || !strings.Contains(stderr, "is not complete") {
		t.Fatalf("%d %s", code, stderr)
	}
	if _, err := os.Stat(filepath.Join(to, ".tierd-restore.json")); err != nil {
		t.Error(err)
	}
	l.write("out/epochs-0/00000000000000000140.log.tierd-part", "half")
	if err := os.WriteFile(log, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"epochs/1"}, {"epochs"}, {"epochs/0", "--from", "71"}} {
		if code, _, stderr := l.restore(append(args, "--to", to)...); code == exitOK ||
			!strings.Contains(stderr, "not of this restore") {
			t.Errorf("%v into the restore of another: %d %s", args, code, stderr)
		}
	}
	code, r, stderr := l.restore("epochs/0", "--to", to)
	if code != exitOK || !r.Resumed || r.Kept == 0 || r.Written == 0 {
		t.Errorf("%d %+v %s", code, r, stderr)
	}
	for name, got := range files(t, to) {
		want, err := os.ReadFile(filepath.Join("../../testdata/kafka/v4", name))
		if strings.Contains(name, "checkpoint") {
			continue
		}
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, %d bytes of %d", name, err, len(got), len(want))
		}
	}
	// A kill just before it could say so: it is complete, and that is no error.
	if code, r, stderr := l.restore("epochs/0", "--to", to); code != exitOK || r.Written > 0 ||
		r.Kept != r.Files {
		t.Errorf("once more: %d %+v %s", code, r, stderr)
	}
	l.write("out/notes", "mine")
	if code, _, stderr := l.restore("epochs/0", "--to", to); code == exitOK ||
		!strings.Contains(stderr, "not empty") {
		t.Errorf("beside a file of somebody else's: %d %s", code, stderr)
	}
}

// TestARestoreReplacesNothing: a file that is not what a restore would have left stays as it is.
func TestARestoreReplacesNothing(t *testing.T) {
	t.Parallel()
	l := archived(t)
	to := l.path("out")
	log := l.object("logs/epochs/0/", "140.log")
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(log, data, 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := l.restore("epochs/0", "--to", to)
	if code != exitRuntime || !strings.Contains(stderr, "damaged") {
		t.Errorf("of a damaged object: %d %s", code, stderr)
	}
	if _, err := os.Stat(filepath.Join(to, "epochs-0/00000000000000000140.log")); err == nil {
		t.Error("a damaged file was restored")
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(log, data, 0o600); err != nil {
		t.Fatal(err)
	}
	mine := "out/epochs-0/00000000000000000140.log"
	for _, content := range []string{"mine", string(data[:len(data)-1]) + "x"} {
		l.write(mine, content)
		code, _, stderr := l.restore("epochs/0", "--to", to)
		kept, err := os.ReadFile(l.path(mine))
		if code != exitRuntime || !strings.Contains(stderr, "not of this restore") || err != nil ||
			string(kept) != content {
			t.Errorf("over a foreign file: %d %s %v", code, stderr, err)
		}
	}
}

// TestTwoRestoresNeedTwoDirectories: the second one neither writes nor names anything, and is let
// in when the first has ended.
func TestTwoRestoresNeedTwoDirectories(t *testing.T) {
	t.Parallel()
	l := archived(t)
	to := t.TempDir()
	first, err := lockTarget(to)
	if err != nil {
		t.Fatal(err)
	}
	code, _, stderr := l.restore("epochs/0", "--to", to)
	if code != exitRuntime || !strings.Contains(stderr, to+": another tierd restores into it") {
		t.Errorf("beside another: %d %s", code, stderr)
	}
	if got := files(t, to); len(got) > 0 {
		t.Errorf("beside another it wrote %v", got)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if code, r, stderr := l.restore("epochs/0", "--to", to); code != exitOK || r.Written == 0 {
		t.Errorf("then: %d %+v %s", code, r, stderr)
	}
}

func TestAPartIsRestored(t *testing.T) {
	t.Parallel()
	l := archived(t)
	for _, tc := range []struct {
		args     []string
		segments int64
		code     int
	}{
		{[]string{"epochs/0"}, 4, exitOK},
		{[]string{"epochs/0", "--from", "100"}, 3, exitOK},
		{[]string{"epochs/0", "--until", "2000-01-01T00:00:00Z"}, 1, exitOK},
		{[]string{"epochs/0", "--until", "2100-01-01T00:00:00Z"}, 4, exitOK},
		{[]string{"epochs/0", "--from", "100000"}, 0, exitUsage},
		{[]string{"epochs/0", "--from", "-1"}, 0, exitUsage},
		{[]string{"epochs", "--from", "10"}, 0, exitUsage},
		{[]string{"epochs/0", "--until", "2100-01-01"}, 4, exitOK},
		{[]string{"epochs/0", "--until", "yesterday"}, 0, exitUsage},
		{[]string{"epochs/0", "--until", "9999-01-01T00:00:00Z"}, 0, exitUsage},
		{[]string{"epochs/0", "--until", "1970-01-01T00:00:00Z"}, 0, exitUsage},
		{[]string{"epochs/0", "--until", "1960-01-01T00:00:00Z"}, 0, exitUsage},
		{[]string{"epochs/9"}, 0, exitUsage},
	} {
		code, r, stderr := l.restore(append(tc.args, "--dry-run", "--to", l.path("out"))...)
		if code != tc.code || code == exitOK && r.Logs[0].Segments != tc.segments {
			t.Errorf("%v: %d %+v %s", tc.args, code, r, stderr)
		}
	}
	code, r, stderr := l.restore("epochs/0", "--from", "100", "--to", l.path("part"))
	if code != exitOK || r.Logs[0].Base != 100 {
		t.Fatalf("%d %+v %s", code, r, stderr)
	}
	start, err := os.ReadFile(l.path("part/log-start-offset-checkpoint"))
	if err != nil || string(start) != "0\n1\nepochs 0 100\n" {
		t.Errorf("%q %v", start, err)
	}
	code, r, _ = l.restore("wal/orders", "--to", l.path("plain"))
	got := files(t, l.path("plain"))
	if code != exitOK || len(got) != 1 || string(got["wal/orders/0.log"]) != "12345678\n" {
		t.Errorf("%d %+v %v", code, r, got)
	}
}
