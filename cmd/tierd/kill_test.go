package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// kills is small here, so that the tests end in seconds; "make crash" asks for more.
var (
	kills    = flag.Int("kills", 10, "how often TestKill kills tierd")
	killSeed = flag.Uint64("kill-seed", 0, "seed of TestKill; 0 draws one and prints it")
)

const killConfig = `
data_dir: data
interval: 20ms
sources: [{name: wal, layout: plain, path: wal}]
bucket: {type: FILESYSTEM, config: {directory: bucket}}
defaults: {table.log.ttl: 7d, table.log.local-ttl: 1ms}
limits: {max_delete_segments: 1000000000}
http: {listen: ""}
`

// TestKill starts the real command on a log that grows all the time, kills it at a random moment of
// its work, and starts it again. After each kill, and at the end, every byte ever written must be
// local or in the store, with the right hash: so no file went before its copy was there.
//
// A kill takes processes and not what the kernel has yet to write, so this says nothing of fsync.
// That each write is durable before anything relies on it is shown where a crash drops what was not
// synced: sim stops each sub-step of each effect so (TestEverySubStep, TestEveryRemoteSubStep), and
// the tests of each writer do it by vfs.Mem (audit TestCrashAnywhere, filesystem TestCrash, logdir
// TestDropCrashes, daemon TestDurableWrites, restore TestARestoreSurvivesEachFault, vfs
// TestMkdirAllIsDurable). bbolt's own writes are bbolt's.
func TestKill(t *testing.T) {
	t.Parallel()
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("replay with: go test ./cmd/tierd -run TestKill -kills %d -kill-seed %d", *kills, seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	for _, sub := range []string{"wal/orders/0", "wal/orders/1", "bucket"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	config := filepath.Join(dir, "tierd.yaml")
	if err := os.WriteFile(config, []byte(killConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	tierd := buildCommand(t)
	w := &growing{dir: dir, sums: map[string][32]byte{}, seen: map[string][32]byte{}}
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { w.grow(ctx, rand.New(rand.NewPCG(seed, 1))) })
	inWork := 0
	for i := range *kills {
		if killOne(t, tierd, dir, rng) {
			inWork++
		}
		if missing := w.missing(t); len(missing) > 0 {
			t.Fatalf("after kill %d of seed %d these are neither local nor in the store: %v",
				i, seed, missing)
		}
	}
	stop()
	done.Wait()
	if w.err != nil {
		t.Fatal(w.err)
	}
	if inWork < *kills/4 {
		t.Errorf("only %d of %d kills came while it worked: the test shows little", inWork, *kills)
	}
	w.settle(t, tierd, dir)
}

// killOne runs tierd and kills it, half of the times at any moment since its start, else at any
// moment of its work. It reports whether it was at work.
func killOne(t *testing.T, tierd, dir string, rng *rand.Rand) (worked bool) {
	t.Helper()
	cmd := exec.Command(tierd, "run", "--config", filepath.Join(dir, "tierd.yaml"))
	log := &ready{ready: make(chan struct{})}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.NewTimer(time.Duration(rng.Int64N(int64(800 * time.Millisecond))))
	if rng.IntN(2) == 0 {
		select {
		case <-log.ready:
			timer.Reset(time.Duration(rng.Int64N(int64(400 * time.Millisecond))))
		case <-time.After(30 * time.Second):
			t.Errorf("tierd is not ready after 30 s: %s", log.String())
		}
	}
	<-timer.C
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.Exited() {
		t.Fatalf("tierd ended by itself: %v\n%s", err, log.String())
	}
	return log.isReady()
}

// ready collects a process's log and tells when it says that it is ready.
type ready struct {
	mu    sync.Mutex
	text  bytes.Buffer
	said  bool
	ready chan struct{}
}

func (r *ready) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err := r.text.Write(p)
	if !r.said && bytes.Contains(r.text.Bytes(), []byte("msg=ready")) {
		r.said = true
		close(r.ready)
	}
	return n, err
}

func (r *ready) isReady() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.said
}

func (r *ready) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// growing is the program that writes the logs, and its own record of what it wrote.
type growing struct {
	dir  string
	mu   sync.Mutex
	sums map[string][32]byte // of closed segments, by path below dir
	seen map[string][32]byte // of objects in the bucket, which never change, by path
	err  error
}

// grow writes segments until ctx ends. A segment is whole once the next one of its log begins.
func (g *growing) grow(ctx context.Context, rng *rand.Rand) {
	next := [2]int64{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(rng.Int64N(int64(24 * time.Millisecond)))):
		}
		log := rng.IntN(2)
		data := make([]byte, 1+rng.IntN(64<<10))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		name := filepath.Join("wal", "orders", fmt.Sprint(log), fmt.Sprintf("%020d.log", next[log]))
		next[log] += 1 + rng.Int64N(100)
		g.mu.Lock()
		g.sums[name] = sha256.Sum256(data)
		g.mu.Unlock()
		// As a log does: the file is there at once and grows.
		if err := os.WriteFile(filepath.Join(g.dir, name), data, 0o600); err != nil {
			g.err = err
			return
		}
	}
}

// missing looks for every segment in its directory, and else in the bucket.
func (g *growing) missing(t *testing.T) (out []string) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	remote := g.remote(t)
	newest := map[string]string{}
	for name := range g.sums {
		dir := filepath.Dir(name)
		newest[dir] = max(newest[dir], name)
	}
	for name, sum := range g.sums {
		data, err := os.ReadFile(filepath.Join(g.dir, name))
		switch {
		case name == newest[filepath.Dir(name)]:
			// It may be half written just now; nobody may delete it, though.
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		case err == nil && sha256.Sum256(data) == sum:
		case g.inTrash(name, sum) || remote[sum]:
		default:
			out = append(out, name)
		}
	}
	return out
}

// inTrash looks for a segment that a kill caught between two names.
func (g *growing) inTrash(name string, sum [32]byte) bool {
	trash := filepath.Join(g.dir, filepath.Dir(name), ".tierd-trash", filepath.Base(name))
	for _, ending := range []string{".pending", ".dead"} {
		if data, err := os.ReadFile(trash + ending); err == nil && sha256.Sum256(data) == sum {
			return true
		}
	}
	return false
}

// remote hashes the objects of segments in the bucket.
func (g *growing) remote(t *testing.T) map[[32]byte]bool {
	t.Helper()
	there := map[[32]byte]bool{}
	bucket := filepath.Join(g.dir, "bucket")
	err := filepath.WalkDir(bucket, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(p, ".log") {
			return err
		}
		if _, known := g.seen[p]; !known {
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			g.seen[p] = sha256.Sum256(data)
		}
		there[g.seen[p]] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return there
}

// settle lets tierd finish in peace: all but the newest segment of each log are copied and deleted,
// and the audit record is whole.
func (g *growing) settle(t *testing.T, tierd, dir string) {
	t.Helper()
	for _, args := range [][]string{{"run", "--once"}, {"audit", "verify"}} {
		cmd := exec.Command(tierd, append(args, "--config", filepath.Join(dir, "tierd.yaml"))...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("tierd %v: %v\n%s", args, err, out)
		}
	}
	if missing := g.missing(t); len(missing) > 0 {
		t.Fatalf("at the end these are neither local nor in the store: %v", missing)
	}
	left, err := filepath.Glob(filepath.Join(dir, "wal", "orders", "*", "*.log"))
	if err != nil || len(left) != 2 {
		t.Fatalf("%d segments are left, want the newest of each of 2 logs: %v %v", len(left), left, err)
	}
	t.Logf("%d segments written, all accounted for", len(g.sums))
}

// buildCommand compiles the real command once.
func buildCommand(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tierd")
	cmd := exec.Command("go", "build", "-o", path, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}
