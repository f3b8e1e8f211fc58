package interop_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// flussVersion is the release that the tests run, as in testdata/fluss/generate.sh.
const flussVersion = "0.9.1-incubating"

const flussConfig = `
data_dir: data
interval: 1s
sources: [{name: tablets, layout: fluss, path: %s, local_delete: unlink}]
bucket: {type: FILESYSTEM, config: {directory: bucket}}
defaults: {table.log.ttl: 0, table.log.local-ttl: 1s}
http: {listen: "off"}
`

// fluss is a running cluster of one tablet server, with its ZooKeeper and its coordinator in one
// process; see fluss/Serve.java.
type fluss struct {
	t    *testing.T
	dir  string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	errs string // path of what it logged
}

// flussPath is the class path of Fluss and of the program, which are fetched and compiled once.
func flussPath(t *testing.T) string {
	t.Helper()
	source, err := filepath.Abs("../testdata/fluss")
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(systems, "fluss-"+flussVersion)
	kept := filepath.Join(at, "class-path.txt")
	if _, err := os.Stat(kept); err != nil {
		if err := os.RemoveAll(at); err != nil {
			t.Fatal(err)
		}
		_, stderr, code := output(t, source, nil, "./class-path.sh", flussVersion, at)
		if code != 0 {
			t.Fatalf("fetch Fluss: %s", stderr)
		}
	}
	jars, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	classes := t.TempDir()
	_, stderr, code := output(t, ".", nil, "javac", "-cp", string(jars), "-d", classes,
		filepath.Join(source, "generator", "Cluster.java"), "fluss/Serve.java")
	if code != 0 {
		t.Fatal(stderr)
	}
	return classes + string(os.PathListSeparator) + string(jars)
}

func newFluss(t *testing.T) *fluss {
	t.Helper()
	f := &fluss{t: t, dir: t.TempDir()}
	f.errs = filepath.Join(f.dir, "fluss.log")
	log, err := os.Create(f.errs)
	if err != nil {
		t.Fatal(err)
	}
	f.cmd = exec.Command("java", "--add-opens=java.base/java.nio=ALL-UNNAMED", "-Xmx768m",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", flussPath(t), "Serve", f.dir)
	f.cmd.Dir, f.cmd.Stderr = f.dir, log
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, errOut := f.cmd.StdoutPipe()
	in, errIn := f.cmd.StdinPipe()
	if err := errors.Join(errOut, errIn, f.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	f.in, f.out = in, bufio.NewScanner(out)
	t.Cleanup(func() {
		_ = f.cmd.Process.Kill()
		_ = f.cmd.Wait()
		_ = log.Close()
		if text, err := os.ReadFile(f.errs); t.Failed() && err == nil {
			t.Logf("the end of %s:\n%s", f.errs, text[max(0, len(text)-4000):])
		}
	})
	f.answer("start")
	return f
}

// data is the tablet server's directory.
func (f *fluss) data() string { return filepath.Join(f.dir, "data") }

// tell has the cluster do what the line says, and returns what it answers.
func (f *fluss) tell(format string, args ...any) []string {
	f.t.Helper()
	line := fmt.Sprintf(format, args...)
	if _, err := fmt.Fprintln(f.in, line); err != nil {
		f.t.Fatal(err)
	}
	return f.answer(line)
}

// answer reads up to the "ok". A cluster that hangs is ended.
func (f *fluss) answer(to string) (lines []string) {
	f.t.Helper()
	limit := time.AfterFunc(patience, func() { _ = f.cmd.Process.Kill() })
	defer limit.Stop()
	for f.out.Scan() {
		line := f.out.Text()
		if why, failed := strings.CutPrefix(line, "error "); failed {
			f.t.Fatalf("%s: %s", to, why)
		}
		if line == "ok" {
			return lines
		}
		lines = append(lines, line)
	}
	f.t.Fatalf("%s: the cluster ended: %v", to, f.out.Err())
	return nil
}

// closed are the segments of a bucket's directory that another follows, by name, with their
// SHA-256.
func closed(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := segments(t, dir)
	names := []string{}
	for name := range all {
		names = append(names, name)
	}
	if len(names) > 0 {
		delete(all, slices.Max(names))
	}
	return all
}

// TestFluss: beside a real tablet server tierd copies what is closed, also when it is killed in
// between, and deletes nothing. What the server lost is restored, and the server serves every
// record of it.
func TestFluss(t *testing.T) {
	t.Parallel()
	f := newFluss(t)
	r := newRig(t)
	r.configure(fmt.Sprintf(flussConfig, f.data()))
	if err := os.Mkdir(r.path("bucket"), 0o700); err != nil {
		t.Fatal(err)
	}
	days := map[string]string{"2024-01-01": "shop/visits-0/2024-01-01-p0/log-0",
		"2024-01-02": "shop/visits-0/2024-01-02-p1/log-0"}
	daemon := r.daemon()
	const step = 500 // records; a segment takes as many
	for i := 0; i < 5*step; i += step {
		for day := range days {
			f.tell("append %s %d %d", day, i, step)
		}
		f.tell("upsert %d %d", i, step)
		if i == 2*step {
			daemon.kill()
			daemon = r.daemon()
		}
	}
	inBucket := func(dir string) error {
		stored := map[string]bool{}
		for _, sum := range segments(t, r.path("bucket")) {
			stored[sum] = true
		}
		local := closed(t, filepath.Join(f.data(), dir))
		if len(local) < 2 {
			return fmt.Errorf("%s has %d closed segments", dir, len(local))
		}
		for name, sum := range local {
			if !stored[sum] {
				return fmt.Errorf("%s/%s is not in the bucket", dir, name)
			}
		}
		return nil
	}
	for _, dir := range append([]string{"shop/customers-1/log-0"}, days["2024-01-01"],
		days["2024-01-02"]) {
		eventually(t, "all that is closed is copied", func() error { return inBucket(dir) })
	}
	s, err := r.status()
	if err != nil || !slices.ContainsFunc(s.Sources[0].Reasons, func(r reason) bool {
		return r.Code == "source-in-use" && strings.Contains(r.Text, "disk.properties is not there")
	}) {
		t.Errorf("%v, the source says %+v", err, s.Sources)
	}
	r.must("verify")
	daemon.stop()
	for _, dir := range days {
		if len(segments(t, filepath.Join(f.data(), dir))) < 3 {
			t.Errorf("segments of %s were deleted beside the server", dir)
		}
	}
	f.restored(r, days)
	f.unlinked(r, days)
}

// restored puts what tierd restores in the place of what the stopped server had, and compares what
// the server says of it then.
func (f *fluss) restored(r *rig, days map[string]string) {
	f.t.Helper()
	f.tell("stop")
	to := r.path("restored")
	r.must("restore", "shop.visits", "--to", to)
	ends := map[string]int64{}
	for day, dir := range days {
		l, err := r.log("shop.visits/" + day + "-0")
		if err != nil || l.CopiedOffset == nil {
			f.t.Fatalf("%v, %+v", err, l)
		}
		ends[day] = *l.CopiedOffset
		if err := errors.Join(os.RemoveAll(filepath.Join(f.data(), dir)),
			os.CopyFS(filepath.Join(f.data(), dir), os.DirFS(filepath.Join(to, dir)))); err != nil {
			f.t.Fatal(err)
		}
	}
	for _, name := range []string{"high-watermark-checkpoint", "recovery-point-offset-checkpoint"} {
		f.merge(name, filepath.Join(to, name))
	}
	if err := os.Remove(filepath.Join(f.data(), ".fluss_cleanshutdown")); err != nil {
		f.t.Fatal(err)
	}
	f.tell("start")
	for day, end := range ends {
		got := f.tell("read %s", day)
		if int64(len(got)) != end || end < 1000 {
			f.t.Errorf("%s: the server has %d records, archived are %d", day, len(got), end)
		}
		for i, line := range got {
			if want := fmt.Sprintf("%d %064d", i, i); line != want {
				f.t.Fatalf("%s: record %q, want %q", day, line, want)
			}
		}
	}
	// And it takes new ones behind them.
	f.tell("append 2024-01-01 %d 10", ends["2024-01-01"])
	if got := f.tell("read 2024-01-01"); int64(len(got)) != ends["2024-01-01"]+10 {
		f.t.Errorf("%d records after 10 more", len(got))
	}
}

// unlinked has tierd delete while the server is stopped, whose directory is made to look like one
// of a version that locks it, and wants the server to begin where the directory does then.
func (f *fluss) unlinked(r *rig, days map[string]string) {
	f.t.Helper()
	f.tell("stop")
	for _, name := range []string{".lock", "disk.properties"} {
		if err := os.WriteFile(filepath.Join(f.data(), name), nil, 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
	changelog := segments(f.t, filepath.Join(f.data(), "shop/customers-1/log-0"))
	r.must("run", "--once")
	if got := segments(f.t, filepath.Join(f.data(), "shop/customers-1/log-0")); !maps.Equal(got,
		changelog) {
		f.t.Errorf("of the changelog %d segments are left, there were %d", len(got), len(changelog))
	}
	f.tell("start")
	for day, dir := range days {
		left := slices.Sorted(maps.Keys(segments(f.t, filepath.Join(f.data(), dir))))
		start, err := strconv.ParseInt(strings.TrimSuffix(left[0], ".log"), 10, 64)
		if err != nil || start == 0 {
			f.t.Fatalf("%s: %v are left, %v", day, left, err)
		}
		got := f.tell("read %s", day)
		if len(got) == 0 || got[0] != fmt.Sprintf("%d %064d", start, start) {
			f.t.Errorf("%s: %d records, from %.1q on, want them from %d", day, len(got), got, start)
		}
	}
	f.tell("upsert 0 10") // of the table that was recovered from its changelog
}

// merge replaces the lines of a checkpoint that are of the buckets in another one.
func (f *fluss) merge(name, from string) {
	f.t.Helper()
	at := filepath.Join(f.data(), name)
	byBucket := map[string]string{}
	for _, file := range []string{at, from} {
		text, err := os.ReadFile(file)
		if err != nil {
			f.t.Fatal(err)
		}
		for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[2:] {
			byBucket[line[:strings.LastIndexByte(line, ' ')]] = line
		}
	}
	text := fmt.Sprintf("0\n%d\n", len(byBucket))
	for _, line := range byBucket {
		text += line + "\n"
	}
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}
