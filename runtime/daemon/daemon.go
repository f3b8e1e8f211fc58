// Package daemon runs tierd: it owns the goroutines, the clock, the metrics and the log lines, and
// joins the engine, the executor and the adapters.
//
// One mutex guards the engine. Scanners, workers and the ticker call step, which takes it, hands
// one event in and starts the effects that come out on bounded workers. Nothing else decides
// anything.
package daemon

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	thanos "github.com/thanos-io/objstore"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/objstore/limit"
	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/audit"
	"github.com/tierd/tierd/runtime/broker"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/exec"
	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/read"
	"github.com/tierd/tierd/runtime/tier"
)

// Options are what a run needs from the command. All fields up to Now are required.
type Options struct {
	ConfigPath string
	Host       config.Host
	// Bucket makes the client of the object store. It is handed in so that only the commands link
	// the providers.
	Bucket   func(ctx context.Context, b config.Bucket, log *slog.Logger) (thanos.Bucket, error)
	Log      *slog.Logger
	Registry *prometheus.Registry
	Version  string
	Now      func() time.Time
	// Disk tells what is used and free on the file system of a directory, in bytes.
	Disk     func(dir string) (used, free int64, err error)
	NoDelete bool
	// Accept is the digest of the remote data that the configuration may let go by turning tiering
	// off with the policy delete, beyond the limits.
	Accept string
	// Adopt takes the store's objects over from whoever owned the ledger id before.
	Adopt bool
	// StopPatience is how long a stop waits for copies under way before it abandons them; 0 is 20 s.
	StopPatience time.Duration
	// Progress is told after each step how far a run is; nil where nobody looks.
	Progress func(Progress)
	// LookEvery is how often the evaluations of policies are looked at; 0 is a second. One that has
	// been seen twelve times is taken for endless.
	LookEvery time.Duration
	// Pause waits between two tries of a scrub, and returns an error when ctx ends before; nil goes by
	// the clock that nobody sets.
	Pause func(ctx context.Context, d time.Duration) error
}

// Progress is how far a run is.
type Progress struct {
	UncopiedSegments, UncopiedBytes int64
	CopiedSegments, CopiedBytes     int64
	DeletedSegments, DeletedBytes   int64 // on local disk
	RemovedSegments, RemovedBytes   int64 // copies, from the store
	RemovedOrphans                  int64 // objects of the store that nothing names
}

// Daemon is one running tierd.
type Daemon struct {
	opts      Options
	log       *slog.Logger
	startedAt time.Time
	running   bool // false for a snapshot, which only reads
	metrics   *metrics

	lock     *dirLock
	reserve  *reserve
	ledger   *offsets.Ledger
	audit    *audit.Log
	store    *objstore.Store
	bucket   thanos.Bucket
	limiter  *limit.Limiter
	cache    *read.Cache
	reader   *read.Reader
	scrubber *scrubber
	kafka    *kafkaEndpoint // nil where it is off
	changes  changes
	sources  []*source
	exec     *exec.Executor
	pool     *pool
	done     counts
	retiring sync.WaitGroup  // plugins of generations that are over
	work     context.Context // of the effects; canceled when a stop has waited long enough

	gen      atomic.Pointer[generation]
	reloadMu sync.Mutex
	reload   atomic.Pointer[string] // why the last reload was refused
	pause    atomic.Pointer[tier.Reason]
	clocks   exec.Clocks
	began    time.Time // by a clock that nobody sets
	clockWhy atomic.Pointer[tier.Reason]
	ready    atomic.Bool
	stopping atomic.Bool
	fatal    chan error
	nudge    chan struct{} // the engine's next due time may have changed
	askFacts chan struct{} // another generation has facts to ask brokers about

	watchdog *watchdog

	evaluations *rego.Watch
	unwatch     func()     // ends the looks at them
	gauging     sync.Mutex // held while their gauge is set

	mu     sync.Mutex // guards engine
	engine *engine.Engine
}

// source is one configured source with what the daemon remembers of its scans.
type source struct {
	config.Source
	dir       *logdir.Source
	cluster   *broker.Cluster // nil where the configuration names none
	topics    topics
	watcher   *logdir.Watcher
	rescan    chan struct{}
	mu        sync.Mutex // guards what follows
	scannedAt time.Time
	logs      int
	trouble   *tier.Reason
	problems  []tier.Problem
}

// now is the wall time as the core counts it.
func (d *Daemon) now() tier.Time { return tier.TimeOf(d.opts.Now()) }

// step hands one event to the engine and starts what comes out. While the daemon stops, nothing new
// is started: what was not begun is as if it had never been thought of.
func (d *Daemon) step(ev engine.Event) {
	d.mu.Lock()
	effects := d.engine.Step(d.now(), ev)
	d.mu.Unlock()
	if d.stopping.Load() {
		return
	}
	for _, f := range effects {
		d.watchdog.begins(f, d.opts.Now(), d.pool.budget(f))
		d.pool.run(d.work, f)
	}
	select {
	case d.nudge <- struct{}{}:
	default:
	}
}

// tick lets the engine see time pass, when something is due and at least once per interval.
func (d *Daemon) tick(ctx context.Context) error {
	for {
		d.tend()
		d.tellStalls()
		d.step(engine.Tick{})
		wait := d.gen.Load().config.Interval
		d.mu.Lock()
		due, ok := d.engine.NextDue()
		d.mu.Unlock()
		if ok {
			wait = min(wait, max(due.Sub(d.now()), time.Millisecond))
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-d.nudge:
			// A burst of results needs one look at the next due time, not one each.
			timer.Reset(min(wait, 50*time.Millisecond))
			select {
			case <-ctx.Done():
				timer.Stop()
				return nil
			case <-timer.C:
			}
		case <-timer.C:
		}
	}
}

// tend looks at the pause file and the disk.
func (d *Daemon) tend() {
	why := d.paused(d.gen.Load())
	if before := d.pause.Swap(why); (before == nil) != (why == nil) ||
		before != nil && *before != *why {
		if why != nil {
			d.log.Warn("deletions are paused", "code", why.Code, "why", why.Text)
		} else {
			d.log.Info("deletions go on")
		}
		d.step(engine.Paused{Reason: why})
	}
	d.tendReserve()
	d.cache.Tend()
	d.tendClock(d.work)
}

// paused says why nothing is deleted now; nil while deletions may happen. The gate asks it for each
// deletion: whoever touches the pause file wants the very next one stopped.
func (d *Daemon) paused(g *generation) *tier.Reason {
	file := g.config.Limits.PauseFile
	_, err := os.Lstat(file)
	why := func(code tier.Code, format string, args ...any) *tier.Reason {
		return &tier.Reason{Code: code, Text: fmt.Sprintf(format, args...)}
	}
	switch maxAge := g.config.Policies.MaxAge; {
	case d.stopping.Load():
		return why(tier.CodePaused, "tierd is stopping")
	case d.opts.NoDelete:
		return why(tier.CodeNoDelete, "started with --no-delete")
	case err == nil:
		return why(tier.CodePaused, "the pause file is there; remove it to let deletions go on: %s", file)
	case !errors.Is(err, fs.ErrNotExist):
		return why(tier.CodePaused, "the pause file cannot be looked for: %v", err)
	case maxAge > 0 && d.opts.Now().Sub(g.loadedAt) > maxAge:
		return why(tier.CodePolicyAge, "the policies were loaded %s, longer ago than "+
			"policies.max_policy_age of %s; reload them", g.loadedAt.UTC().Format(time.RFC3339), maxAge)
	}
	return nil
}

func (d *Daemon) tendReserve() {
	_, free, err := d.disk()
	if err != nil {
		d.log.Error("look at the disk", "err", err)
		return
	}
	changed, err := d.reserve.tend(free)
	switch {
	case err != nil:
		d.log.Error("tend the reserve", "err", err)
	case changed && d.reserve.held:
		d.log.Debug("the reserve is held", "free_bytes", free)
	case changed:
		d.log.Error("the disk of data_dir is full: the reserve was released, so that ledger and "+
			"audit can go on", "free_bytes", free)
	}
	if d.reserve.held {
		d.metrics.reserveHeld.Set(1)
	} else {
		d.metrics.reserveHeld.Set(0)
	}
}

// disk tells what is used and free on the disk of data_dir, in bytes.
func (d *Daemon) disk() (used, free int64, err error) {
	return d.opts.Disk(d.gen.Load().config.DataDir)
}

func (d *Daemon) node() gate.NodeFacts {
	used, free, err := d.disk()
	if err != nil {
		d.log.Error("look at the disk", "err", err)
	}
	return gate.NodeFacts{Name: nodeName(), DiskUsedBytes: used, DiskFreeBytes: free}
}

// newAttempt makes an id: the time in milliseconds in six bytes, and ten random ones. The time lets
// the ledger's index of ids grow at its end, where one page of it takes many; what makes the id new
// is chance. The operating system's source of it does not fail.
func newAttempt(now time.Time) tier.AttemptID {
	var id tier.AttemptID
	binary.BigEndian.PutUint64(id[:], uint64(now.UnixMilli())<<16)
	_, _ = rand.Read(id[6:])
	return id
}

// die ends the process: nothing is known to be durable any more.
func (d *Daemon) die(err error) {
	select {
	case d.fatal <- err:
	default:
	}
}

// reloadGeneration loads configuration, policies and data as one generation, and returns it. On an
// error the one that runs stays in force.
func (d *Daemon) reloadGeneration(accept string) (*generation, error) {
	d.reloadMu.Lock()
	defer d.reloadMu.Unlock()
	old := d.gen.Load()
	g, err := d.loadGeneration(old.number + 1)
	if err == nil {
		if key := fixed(old.config, g.config); key != "" {
			err = fmt.Errorf("%s changed: only a restart can do that", key)
		}
	}
	if err == nil {
		err = d.loadPlugins(g, false)
	}
	if err == nil {
		if err = d.refuses(old, g); err != nil {
			err = errors.Join(err, g.closePlugins())
		}
	}
	if err == nil {
		err = d.confirm(g, accept, "tierd reload")
	}
	if err != nil {
		text := err.Error()
		d.reload.Store(&text)
		d.metrics.reloadOK.Set(0)
		d.log.Error("reload refused; the running generation stays", "generation", old.number,
			"err", err)
		return nil, err
	}
	d.reload.Store(nil)
	g.facts.Adopt(old.facts)
	d.enforce(g)
	select {
	case d.askFacts <- struct{}{}:
	default:
	}
	d.enforcePlugins(old, g)
	d.step(engine.Reconfigured{Settings: g.settings()})
	for _, w := range g.config.Warnings {
		d.log.Warn(w.Error())
	}
	d.log.Info("reloaded", "generation", g.number, "policy_digest", g.policies.Digest())
	return g, nil
}

// refuses says why a generation must not follow the old one now: a table whose tiering is being
// disabled cannot be enabled, and tiering as a whole cannot be switched off under a table that is
// not DISABLED.
func (d *Daemon) refuses(old, g *generation) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if why := d.engine.Refuses(g.settings()); why != nil {
		return fmt.Errorf("%s: %s", why.Code, why.Text)
	}
	if tiered := d.engine.Tiered(); old.config.SystemEnable && !g.config.SystemEnable &&
		len(tiered) > 0 {
		return fmt.Errorf("remote.log.storage.system.enable is false, and not DISABLED: %s, the "+
			"first of them %q: set remote.storage.enable: false for them first, and wait until "+
			"tierd status says DISABLED", tier.Count(len(tiered), "table"), tiered[0])
	}
	return nil
}

// enforce puts a generation in force for the executor.
func (d *Daemon) enforce(g *generation) {
	d.gen.Store(g)
	if d.limiter != nil {
		if err := d.limiter.SetLimit(g.config.Copy.BytesPerSecond); err != nil {
			d.log.Error("set the rate of uploads", "err", err)
		}
	}
	d.metrics.generation.Set(float64(g.number))
	d.metrics.reloaded.Set(float64(g.loadedAt.Unix()))
	d.metrics.policies.Reset()
	d.metrics.policies.WithLabelValues(g.policies.Digest()).Set(1)
	d.metrics.reloadOK.Set(1)
	d.gaugePolicies()
}

// result writes the log line of an effect that ended. Failures are repeated by the engine, with
// backoff, so each is worth one line.
func (d *Daemon) result(f engine.Effect, r engine.Result, took time.Duration) {
	d.metrics.ended(f, r, took)
	d.watchdog.ends(f, r, d.opts.Now())
	d.done.add(f, r)
	switch r := r.(type) {
	case engine.Failed:
		d.log.Warn("effect failed", "effect", effectName(f), "code", r.Reason.Code,
			"why", r.Reason.Text)
	case engine.Copied:
		d.log.Info("copied", "what", effectName(f), "bytes", r.Remote.Bytes,
			"copied_offset", r.Offset, "took", took.Round(time.Millisecond))
	case engine.Deleted:
		d.tellDeleted(f.(engine.Delete).Log, r)
	case engine.LossKnown:
		d.log.Info("damaged, and its loss was accepted", "what", effectName(f))
	case engine.HoleDone:
		d.log.Error("offsets are in neither tier; a hole is recorded", "log",
			f.(engine.RecordHole).Log.String(), "range", r.Hole.Range.String(), "cause", r.Hole.Cause)
	}
}

func (d *Daemon) tellDeleted(log tier.LogID, r engine.Deleted) {
	for _, s := range r.Gone {
		d.log.Info("deleted", "log", log.String(), "segment", s.Range.String(), "bytes", s.Bytes)
	}
	if r.Kept != nil {
		for _, why := range r.Kept.Reasons {
			d.log.Debug("kept", "log", log.String(), "segment", r.Kept.Segment.Range.String(),
				"code", why.Code, "why", why.Text, "rule", why.Rule)
		}
	}
}

// deletedLate tells of a deletion that was given up, and ended for the metrics then, what it came
// to all the same.
func (d *Daemon) deletedLate(f engine.Delete, r engine.Deleted) {
	d.metrics.went(f, r)
	d.watchdog.ends(f, r, d.opts.Now())
	d.done.add(f, r)
	d.tellDeleted(f.Log, r)
}

func (d *Daemon) executor() *exec.Executor {
	byName := make(map[string]exec.Source, len(d.sources))
	for _, s := range d.sources {
		byName[s.Name] = s.dir
	}
	return exec.New(exec.Config{
		Ledger: notedLedger{d.ledger}, Store: d.store, Audit: d.told(d.audit),
		Removing:   make(chan struct{}, d.gen.Load().config.Limits.RemoteDeleteWorkers),
		Source:     func(name string) exec.Source { return byName[name] },
		Generation: func() *exec.Generation { return d.gen.Load().exec },
		Now:        d.now,
		NewAttempt: func() tier.AttemptID { return newAttempt(d.opts.Now()) },
		Sound: func(log tier.LogID, pos tier.Position) (tier.Truth, string) {
			return d.scrubber.sound(log, pos)
		},
		Trouble: func(p tier.Problem) {
			d.log.Warn("source", "path", p.Path, "code", p.Code, "why", p.Text)
		},
	})
}
