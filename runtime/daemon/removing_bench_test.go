package daemon

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	thanos "github.com/thanos-io/objstore"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/tier"
)

// The store of the benchmark answers after so long, as those of the large providers do, and holds
// so many copies of each log of a table that is DISABLING with the policy delete. So many callers
// remove them at one time.
const (
	answerAfter  = 20 * time.Millisecond
	benchLogs    = 64
	benchEach    = 40
	benchCallers = 16
)

// slow is a hook of a store whose answers take their time.
func slow(fault.Op) fault.Effect {
	<-time.After(answerAfter)
	return fault.Effect{}
}

// disabling writes a ledger of logs with as many copies each, whose starts have moved, and the
// directory of the logs. So many callers may remove copies at one time.
func disabling(t testing.TB, dir string, logs, each, callers int) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.MkdirAll(filepath.Join(dir, "data"), 0o700))
	m, err := offsets.OpenBolt(filepath.Join(dir, "data", ledgerFile), offsets.BoltOptions{
		NewID: func() [16]byte { return [16]byte{1} }})
	check(err)
	at := tier.TimeOf(time.Now().Add(-time.Minute))
	l, err := offsets.NewBuilder(m, 0, at)
	check(err)
	check(l.Table(tier.TableState{Table: "orders", State: tier.Disabling, Epoch: 2, Since: at,
		Policy: tier.PolicyDelete, Entry: tier.GovernedByDefaults}))
	end := tier.Offset(10 * each)
	for i := range logs {
		id := tier.LogID{Table: "orders", Name: fmt.Sprint(i)}
		facts := make([]tier.Fact, each)
		for j := range facts {
			r := tier.Range{Base: tier.Offset(10 * j), Next: tier.Offset(10*j + 10)}
			c := &tier.Copy{Position: tier.Position(j), Epoch: 1, ModTime: at, FinishedAt: at,
				Verified: tier.VerifySize, Content: tier.Content{Range: r, LastNext: r.Next,
					Files: []tier.SourceFile{{FileDigest: tier.FileDigest{
						Name: fmt.Sprintf("%020d.log", r.Base), Size: 32}}}}}
			binary.BigEndian.PutUint64(c.Attempt[8:], uint64(i*each+j))
			facts[j] = tier.Fact{Position: c.Position, Epoch: 1, At: at, Copied: r.Next, Add: c}
		}
		_, err := l.Log(tier.LogState{Log: id, Source: "wal", Layout: tier.LayoutPlain, Epoch: 1,
			Next: tier.Position(each), LogStart: end, Moves: []tier.StartMove{{Start: end, At: at,
				Cause: tier.MoveDisabled}}}, facts)
		check(err)
		active := filepath.Join(dir, "wal", "orders", id.Name)
		check(os.MkdirAll(active, 0o700))
		check(os.WriteFile(filepath.Join(active, fmt.Sprintf("%020d.log", end)), nil, 0o600))
	}
	check(m.Close())
	check(os.WriteFile(filepath.Join(dir, "tierd.yaml"), fmt.Appendf(nil, `
data_dir: data
sources: [{name: wal, layout: plain, path: wal}]
bucket: {type: FILESYSTEM, config: {directory: bucket}}
defaults: {table.log.ttl: 0, remote.storage.enable: false, remote.log.disable.policy: delete}
limits: {remote_delete_grace: 0, remote_delete_workers: %d}
`, callers), 0o600))
}

// removing are the options of a daemon on what disabling wrote, and the bucket.
func removing(dir string, bucket thanos.Bucket) Options {
	return Options{
		ConfigPath: filepath.Join(dir, "tierd.yaml"), Host: config.OS(),
		Bucket: func(context.Context, config.Bucket, *slog.Logger) (thanos.Bucket, error) {
			return bucket, nil
		},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Registry: prometheus.NewRegistry(),
		Version: "test", Now: time.Now, Disk: Disk,
		Adopt: true, // the store has nothing of the ledger
	}
}

// TestAsManyRemovalsAsConfigured: limits.remote_delete_workers bounds how many deletions are with
// the store at one time, and more than one are.
func TestAsManyRemovalsAsConfigured(t *testing.T) {
	t.Parallel()
	const logs, each, callers = 12, 3, 3
	dir := t.TempDir()
	disabling(t, dir, logs, each, callers)
	var now, most atomic.Int64
	bucket := fault.Wrap(fault.NewMem(time.Now), func(op fault.Op) fault.Effect {
		if op.Kind == fault.OpDelete {
			n := now.Add(1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			<-time.After(answerAfter)
			now.Add(-1)
		}
		return fault.Effect{}
	})
	removeAll(t, removing(dir, bucket))
	if n := most.Load(); n < 2 || n > callers {
		t.Errorf("%d deletions at one time, want 2 to %d", n, callers)
	}
}

// BenchmarkRemove removes copies from a store that takes its time, and measures how many of them
// go in a second; and how many as many callers delete who do nothing else: a removal is a deletion
// and a look whether the object is gone.
func BenchmarkRemove(b *testing.B) {
	var took, alone time.Duration
	for b.Loop() {
		dir := b.TempDir()
		disabling(b, dir, benchLogs, benchEach, benchCallers)
		bucket := fault.Wrap(fault.NewMem(time.Now), slow)
		took += removeAll(b, removing(dir, bucket))
		alone += deleteAll(b, bucket)
	}
	n := float64(b.N * benchLogs * benchEach)
	b.ReportMetric(n/took.Seconds(), "removals/s")
	b.ReportMetric(n/alone.Seconds(), "deletions/s")
}

// removeAll lets a daemon run until no copy is left, and takes the time from when it is up.
func removeAll(t testing.TB, opts Options) (took time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	err := Run(ctx, opts, func(ctx context.Context, d api.Backend, listening func()) error {
		listening()
		defer cancel()
		began := time.Now()
		for {
			st, err := d.Status(ctx)
			if err != nil {
				return err
			}
			if st.Tables[0].Outstanding.Segments == 0 {
				took = time.Since(began)
				return nil
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(answerAfter):
			}
		}
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return took
}

// deleteAll makes the same calls of the store, by as many callers.
func deleteAll(b *testing.B, bucket thanos.Bucket) time.Duration {
	b.Helper()
	began := time.Now()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range benchCallers {
		wg.Go(func() {
			for {
				n := next.Add(1)
				if n > benchLogs*benchEach {
					return
				}
				key := fmt.Sprint(n)
				_ = bucket.Delete(b.Context(), key) // there is none, as there is none of a removal's
				_, _ = bucket.Attributes(b.Context(), key)
			}
		})
	}
	wg.Wait()
	return time.Since(began)
}
