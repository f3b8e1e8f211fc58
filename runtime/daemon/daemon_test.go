package daemon

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	thanos "github.com/thanos-io/objstore"
	"go.uber.org/goleak"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/tier"
)

func TestMain(m *testing.M) {
	if os.Getenv(inChild) != "" {
		m.Run()
		return
	}
	goleak.VerifyTestMain(m)
}

// site is a directory with everything a daemon needs, and a store in memory that can fail.
type site struct {
	t      *testing.T
	dir    string
	store  *fault.Mem
	bucket *fault.Bucket
	log    syncedLog
}

const siteConfig = `
data_dir: data
interval: 10ms
sources: [{name: wal, layout: plain, path: wal}]
bucket: {type: FILESYSTEM, config: {directory: bucket}}
defaults: {table.log.ttl: 7d, table.log.local-ttl: 1h}
copy: {timeout: 200ms}
`

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), store: fault.NewMem(time.Now)}
	s.bucket = fault.Wrap(s.store, nil)
	if err := os.Mkdir(filepath.Join(s.dir, "bucket"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.configure(siteConfig)
	return s
}

func (s *site) path() string { return filepath.Join(s.dir, "tierd.yaml") }

func (s *site) configure(text string) {
	s.t.Helper()
	if err := os.WriteFile(s.path(), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// segments writes closed segments of ten offsets, two hours old, and the active one behind them.
func (s *site) segments(log string, closed int) {
	s.t.Helper()
	dir := filepath.Join(s.dir, "wal", filepath.FromSlash(log))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	old := time.Now().Add(-2 * time.Hour)
	for i := range closed + 1 {
		name := filepath.Join(dir, fmt.Sprintf("%020d.log", 10*i))
		data := sha256.Sum256([]byte(name))
		if err := os.WriteFile(name, data[:], 0o600); err != nil {
			s.t.Fatal(err)
		}
		if err := os.Chtimes(name, old, old); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *site) local(log string) int {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "wal", filepath.FromSlash(log), "*.log"))
	if err != nil {
		s.t.Fatal(err)
	}
	return len(files)
}

func (s *site) options() Options {
	return Options{
		ConfigPath: s.path(), Host: config.OS(),
		Bucket: func(context.Context, config.Bucket, *slog.Logger) (thanos.Bucket, error) {
			return s.bucket, nil
		},
		Log:      slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Registry: prometheus.NewRegistry(), Version: "test", Now: time.Now, Disk: Disk,
		StopPatience: 100 * time.Millisecond,
	}
}

// once runs to the end, with no retries.
func (s *site) once(opts Options) (*Report, error) {
	return RunOnce(s.t.Context(), opts, time.Millisecond, quietly)
}

// quietly serves nobody.
func quietly(ctx context.Context, _ api.Backend, listening func()) error {
	listening()
	<-ctx.Done()
	return nil
}

// running is a daemon in the background.
type running struct {
	api.Backend
	stop func() error
}

// reload loads the configuration anew.
func (r *running) reload(accept string) error {
	_, err := r.Reload(context.Background(), accept)
	return err
}

// run starts the daemon and returns once it can be asked.
func (s *site) run(opts Options) *running {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	asked := make(chan api.Backend, 1)
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, opts, func(ctx context.Context, b api.Backend, listening func()) error {
			listening()
			asked <- b
			<-ctx.Done()
			return nil
		}, nil)
	}()
	r := &running{stop: sync.OnceValue(func() error {
		cancel()
		return <-done
	})}
	select {
	case r.Backend = <-asked:
	case err := <-done:
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = r.stop() })
	return r
}

// until asks until the answer is yes; a daemon works on its own time.
func (s *site) until(what string, yes func() bool) {
	s.t.Helper()
	give := time.After(30 * time.Second)
	for !yes() {
		select {
		case <-give:
			s.t.Fatalf("not within 30 s: %s\n%s", what, s.log.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

type syncedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *syncedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *syncedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestProgressCountsOnce: what was copied is not counted among what is left, too.
func TestProgressCountsOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.segments("orders/0", 1)
	opts := s.options()
	var most atomic.Int64
	opts.Progress = func(p Progress) {
		if n := p.CopiedSegments + p.UncopiedSegments; n > 1 {
			most.Store(n)
		}
	}
	if _, err := s.once(opts); err != nil {
		t.Fatalf("%v\n%s", err, s.log.String())
	}
	if n := most.Load(); n != 0 {
		t.Errorf("of 1 segment %d were told", n)
	}
}

func TestRunOnceCopiesAndDeletes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.segments("orders/0", 3)
	s.segments("orders/1", 2)
	r, err := s.once(s.options())
	if err != nil {
		t.Fatalf("%v\n%s", err, s.log.String())
	}
	if r.CopiedSegments != 5 || r.DeletedSegments != 5 || r.UncopiedSegments != 0 {
		t.Errorf("%+v, want 5 copied and 5 deleted", r.Progress)
	}
	if len(r.Alarms) > 0 {
		t.Errorf("alarms: %+v", r.Alarms)
	}
	if n := s.local("orders/0") + s.local("orders/1"); n != 2 {
		t.Errorf("%d files are left, want the 2 active ones", n)
	}
}

func TestNoDelete(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.segments("orders/0", 3)
	opts := s.options()
	opts.NoDelete = true
	r, err := s.once(opts)
	if err != nil || r.CopiedSegments != 3 || r.DeletedSegments != 0 {
		t.Fatalf("%+v %v, want 3 copied and none deleted", r, err)
	}
	if len(r.Waiting) == 0 || r.Waiting[0].Reason.Code != tier.CodeNoDelete {
		t.Errorf("waiting %+v, want the reason %s", r.Waiting, tier.CodeNoDelete)
	}
}

// Aiven 590, 820: a hung upload stalled all. Here its call never comes back and ignores its
// context: the other log goes on, and status says what is being waited for.
func TestAHungUploadStallsNoOtherLog(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.segments("orders/0", 1)
	s.segments("orders/1", 5)
	hang := make(chan struct{})
	defer close(hang)
	s.bucket.SetHook(func(op fault.Op) fault.Effect {
		if op.Kind == fault.OpUpload && strings.Contains(op.Key, "/orders/0/") {
			<-hang
			return fault.Effect{Err: errors.New("the connection was lost")}
		}
		return fault.Effect{}
	})
	r := s.run(s.options())
	s.until("orders/1 is copied and deleted", func() bool { return s.local("orders/1") == 1 })
	s.until("status tells of the hung copy", func() bool {
		st, err := r.Status(t.Context())
		return err == nil && strings.Contains(fmt.Sprint(st.Logs), string(tier.CodeUnknownOutcome))
	})
	if s.local("orders/0") != 2 {
		t.Error("a segment went whose copy never came back")
	}
}

func TestTheSecondDaemonIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.segments("orders/0", 1)
	s.run(s.options())
	_, err := s.once(s.options())
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "data/lock") {
		t.Fatalf("%v, want ErrInUse with the path of the lock", err)
	}
}

// Alertmanager 1152, 2372: a reload answered 200 for a bad file.
func TestABadReloadKeepsTheRunningGeneration(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.segments("orders/0", 1)
	r := s.run(s.options())
	for name, text := range map[string]string{
		"a key that is not known": siteConfig + "colour: red\n",
		"policies that are gone":  siteConfig + "policies: {paths: [./nowhere]}\n",
		"another data_dir":        strings.Replace(siteConfig, "data_dir: data", "data_dir: other", 1),
	} {
		s.configure(text)
		if err := r.reload(""); api.CodeOf(err) != api.CodeConfig {
			t.Errorf("%s: reload says %v", name, err)
		}
		st, err := r.Status(t.Context())
		if err != nil || st.Generation.Number != 1 || st.Generation.Error == nil {
			t.Errorf("%s: generation %+v, want the first one, with the error", name, st.Generation)
		}
	}
	s.configure(strings.Replace(siteConfig, "local-ttl: 1h", "local-ttl: 3h", 1))
	if err := r.reload(""); err != nil {
		t.Fatal(err)
	}
	if st, err := r.Status(t.Context()); err != nil || st.Generation.Number != 2 ||
		st.Generation.Error != nil {
		t.Errorf("generation %+v, want the second one, without an error", st.Generation)
	}
}

// TestTheDigestInForce: metrics name the policies and data in force, and no others.
func TestTheDigestInForce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	opts := s.options()
	r := s.run(opts)
	digests := func() (out []string) {
		families, err := opts.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "tierd_policies_info" {
					out = append(out, m.GetLabel()[0].GetValue())
				}
			}
		}
		return out
	}
	before := digests()
	s.configure(siteConfig + "policies: {paths: [hold.rego]}\n")
	s.put("hold.rego", "package tierd.hold\n\ndeny contains \"x\" if true\n")
	if err := r.reload(""); err != nil {
		t.Fatal(err)
	}
	st, err := r.Status(t.Context())
	after := digests()
	if err != nil || len(before) != 1 || len(after) != 1 || before[0] == after[0] ||
		after[0] != st.Generation.PolicyDigest {
		t.Errorf("before %v, after %v, in force %s, %v", before, after, st.Generation.PolicyDigest, err)
	}
}

func TestAReloadChangesWhatIsDeletedAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.configure(strings.Replace(siteConfig, "local-ttl: 1h", "local-ttl: 3h", 1))
	s.segments("orders/0", 2)
	r := s.run(s.options())
	s.until("all is copied", func() bool {
		st, err := r.Status(t.Context())
		return err == nil && len(st.Logs) == 1 && st.Logs[0].Remote.Segments == 2
	})
	if s.local("orders/0") != 3 {
		t.Fatal("a segment went before its time")
	}
	s.configure(siteConfig)
	if err := r.reload(""); err != nil {
		t.Fatal(err)
	}
	s.until("both are deleted", func() bool { return s.local("orders/0") == 1 })
}

func TestAStoreThatCannotBeReached(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.segments("orders/0", 1)
	var down atomic.Bool
	down.Store(true)
	s.bucket.SetHook(func(fault.Op) fault.Effect {
		if down.Load() {
			return fault.Effect{Err: errors.New("connection refused")}
		}
		return fault.Effect{}
	})
	_, err := s.once(s.options())
	if err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Fatalf("run --once: %v, want what the store said", err)
	}
	r := s.run(s.options())
	s.until("it says that it tries again", func() bool {
		return strings.Contains(s.log.String(), "the store cannot be reached; nothing is decided")
	})
	if h, err := r.Health(t.Context()); err != nil || h.Ready {
		t.Fatalf("health %+v %v, want not ready", h, err)
	}
	down.Store(false)
	s.until("it is ready when the store is back", func() bool {
		h, err := r.Health(t.Context())
		return err == nil && h.Ready
	})
	s.until("and works", func() bool { return s.local("orders/0") == 1 })
}

// OPA 4338: a stale policy was kept without a way to fail closed.
func TestPoliciesThatAreTooOldStopDeletionsOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.segments("orders/0", 1)
	s.configure(siteConfig + "policies: {max_policy_age: 1h}\n")
	opts := s.options()
	var skip atomic.Int64
	opts.Now = func() time.Time { return time.Now().Add(time.Duration(skip.Load())) }
	opts.NoDelete = true
	r := s.run(opts)
	s.until("it is copied", func() bool {
		st, err := r.Status(t.Context())
		return err == nil && len(st.Logs) == 1 && st.Logs[0].Remote.Segments == 1
	})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	opts = s.options()
	opts.Now = func() time.Time { return time.Now().Add(time.Duration(skip.Load())) }
	d, err := open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.close() }()
	if why := d.paused(d.gen.Load()); why != nil {
		t.Fatalf("paused at once: %+v", why)
	}
	skip.Store(int64(2 * time.Hour))
	if why := d.paused(d.gen.Load()); why == nil || why.Code != tier.CodePolicyAge {
		t.Fatalf("%+v, want %s", why, tier.CodePolicyAge)
	}
}

func TestThePauseFileStopsTheNextDeletion(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.segments("orders/0", 1)
	pause := filepath.Join(s.dir, "PAUSE")
	if err := os.WriteFile(pause, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := s.once(s.options())
	if err != nil || r.DeletedSegments != 0 {
		t.Fatalf("%+v %v, want nothing deleted", r, err)
	}
	if err := os.Remove(pause); err != nil {
		t.Fatal(err)
	}
	if r, err = s.once(s.options()); err != nil || r.DeletedSegments != 1 {
		t.Fatalf("%+v %v, want one deleted", r, err)
	}
}

func TestTheStoreOfAnotherOwnerIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.segments("orders/0", 1)
	if _, err := s.once(s.options()); err != nil {
		t.Fatal(err)
	}
	// The data_dir is copied, and a second tierd started on the copy.
	moved := filepath.Join(s.dir, "moved")
	if err := os.Rename(filepath.Join(s.dir, "data"), moved); err != nil {
		t.Fatal(err)
	}
	s.configure(strings.Replace(siteConfig, "data_dir: data", "data_dir: moved", 1))
	if _, err := s.once(s.options()); err == nil || !strings.Contains(err.Error(), "another tierd") {
		t.Fatalf("%v, want that the store belongs to another tierd", err)
	}
}
