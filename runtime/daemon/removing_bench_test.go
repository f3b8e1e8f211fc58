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
// so many copies of each log of a table that is DISABLING with the policy delete.
const (
	answerAfter = 20 * time.Millisecond
	benchLogs   = 64
	benchEach   = 40
)

// slow is a hook of a store whose answers take their time.
func slow(fault.Op) fault.Effect {
	<-time.After(answerAfter)
	return fault.Effect{}
}

// disabling writes a ledger whose starts have moved, and the directory of its logs.
func disabling(b *testing.B, dir string) {
	b.Helper()
	check := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
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
	end := tier.Offset(10 * benchEach)
	for i := range benchLogs {
		id := tier.LogID{Table: "orders", Name: fmt.Sprint(i)}
		facts := make([]tier.Fact, benchEach)
		for j := range facts {
			r := tier.Range{Base: tier.Offset(10 * j), Next: tier.Offset(10*j + 10)}
			c := &tier.Copy{Position: tier.Position(j), Epoch: 1, ModTime: at, FinishedAt: at,
				Verified: tier.VerifySize, Content: tier.Content{Range: r, LastNext: r.Next,
					Files: []tier.SourceFile{{FileDigest: tier.FileDigest{
						Name: fmt.Sprintf("%020d.log", r.Base), Size: 32}}}}}
			binary.BigEndian.PutUint64(c.Attempt[8:], uint64(i*benchEach+j))
			facts[j] = tier.Fact{Position: c.Position, Epoch: 1, At: at, Copied: r.Next, Add: c}
		}
		_, err := l.Log(tier.LogState{Log: id, Source: "wal", Layout: tier.LayoutPlain, Epoch: 1,
			Next: benchEach, LogStart: end, Moves: []tier.StartMove{{Start: end, At: at,
				Cause: tier.MoveDisabled}}}, facts)
		check(err)
		active := filepath.Join(dir, "wal", "orders", id.Name)
		check(os.MkdirAll(active, 0o700))
		check(os.WriteFile(filepath.Join(active, fmt.Sprintf("%020d.log", end)), nil, 0o600))
	}
	check(m.Close())
	check(os.WriteFile(filepath.Join(dir, "tierd.yaml"), []byte(`
data_dir: data
sources: [{name: wal, layout: plain, path: wal}]
bucket: {type: FILESYSTEM, config: {directory: bucket}}
defaults: {table.log.ttl: 0, remote.storage.enable: false, remote.log.disable.policy: delete}
limits: {remote_delete_grace: 0}
`), 0o600))
}

// BenchmarkRemove removes copies from a store that takes its time, and measures how many of them
// go in a second; and how many as many callers delete who do nothing else: a removal is a deletion
// and a look whether the object is gone.
func BenchmarkRemove(b *testing.B) {
	var removing, alone time.Duration
	for b.Loop() {
		dir := b.TempDir()
		disabling(b, dir)
		bucket := fault.Wrap(fault.NewMem(time.Now), slow)
		removing += removeAll(b, Options{
			ConfigPath: filepath.Join(dir, "tierd.yaml"), Host: config.OS(),
			Bucket: func(context.Context, config.Bucket, *slog.Logger) (thanos.Bucket, error) {
				return bucket, nil
			},
			Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Registry: prometheus.NewRegistry(),
			Version: "test", Now: time.Now,
		})
		alone += deleteAll(b, bucket)
	}
	n := float64(b.N * benchLogs * benchEach)
	b.ReportMetric(n/removing.Seconds(), "removals/s")
	b.ReportMetric(n/alone.Seconds(), "deletions/s")
}

// removeAll lets a daemon run until no copy is left, and takes the time from when it is up.
func removeAll(b *testing.B, opts Options) (took time.Duration) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
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
		b.Fatal(err)
	}
	return took
}

// deleteAll makes the same calls of the store, by as many callers as removals may be with it.
func deleteAll(b *testing.B, bucket thanos.Bucket) time.Duration {
	b.Helper()
	began := time.Now()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range removals {
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
