package daemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/objstore/limit"
	"github.com/tierd/tierd/objstore/retry"
	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/audit"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// AuditDir is the deletion log's directory in data_dir.
const AuditDir = "audit"

// auditFiles are the files of the deletion log.
const auditFiles = "audit-*.jsonl"

// ledgerFile is the ledger in data_dir, beside the deletion log, "lock", "reserve" and the socket.
const ledgerFile = "ledger.db"

// readersWait is how long a starting daemon waits for reading commands to finish their snapshot.
const readersWait = 10 * time.Second

// open makes everything ready that a run needs, in the order in which one thing relies on another:
// configuration and policies, the lock, ledger, audit log, store, sources; and restores the engine.
// Nothing is decided before Started.
func open(ctx context.Context, opts Options) (_ *Daemon, err error) {
	d := newDaemon(opts)
	defer func() {
		if err == nil {
			return
		}
		if g := d.gen.Load(); g != nil {
			err = roomWanted(err, g.config.DataDir)
		}
		err = errors.Join(err, d.close())
	}()
	g, err := d.loadGeneration(1)
	if err != nil {
		return nil, err
	}
	d.enforce(g)
	d.unwatch = look(d.evaluations, cmp.Or(opts.LookEvery, lookEvery), d.tellHung)
	c := g.config
	if err := vfs.MkdirAll(filepath.Join(c.DataDir, AuditDir), 0o700); err != nil {
		return nil, fmt.Errorf("data_dir: %w", err)
	}
	if d.lock, err = lockDir(c.DataDir); err != nil {
		return nil, err
	}
	if err := sameAge(c.DataDir); err != nil {
		return nil, err
	}
	if err := d.loadPlugins(g, false); err != nil {
		return nil, err
	}
	d.enforcePlugins(nil, g)
	d.reserve = openReserve(c.DataDir)
	d.tendReserve()
	if err := d.openLedger(c, false); err != nil {
		return nil, err
	}
	dir, err := vfs.OpenOS(filepath.Join(c.DataDir, AuditDir))
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	d.tellOfNoAudit(c.DataDir)
	if d.audit, err = audit.Open(dir, audit.Options{}); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	if err := d.openStore(ctx, c); err != nil {
		return nil, err
	}
	if err := d.openSources(c, false); err != nil {
		return nil, err
	}
	if err := d.openReader(true); err != nil {
		return nil, err
	}
	return d, d.restore()
}

// openSnapshot reads what lies in data_dir and looks at the sources, for commands where no daemon
// runs. It takes no lock but the ledger's shared one, and changes nothing.
func openSnapshot(ctx context.Context, opts Options) (*Daemon, error) {
	d, err := openReadOnly(ctx, opts, func(d *Daemon, c *config.Config) error {
		return d.openLedger(c, true)
	})
	if err != nil {
		return nil, err
	}
	if err := d.look(ctx); err != nil {
		return nil, errors.Join(err, d.close())
	}
	d.advise(ctx)
	return d, nil
}

// openReadOnly is openSnapshot before it looks at the sources, with a ledger that openLedger opens.
func openReadOnly(ctx context.Context, opts Options,
	openLedger func(*Daemon, *config.Config) error) (_ *Daemon, err error) {
	d := newDaemon(opts)
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	g, err := d.loadGeneration(1)
	if err != nil {
		return nil, err
	}
	d.enforce(g)
	// Whoever asks is told, and nobody else is there.
	d.unwatch = look(d.evaluations, cmp.Or(opts.LookEvery, lookEvery), func([]rego.Hung) {})
	if err := d.loadPlugins(g, true); err != nil {
		return nil, err
	}
	if err := openLedger(d, g.config); err != nil {
		return nil, err
	}
	if err := d.openStore(ctx, g.config); err != nil {
		return nil, err
	}
	if err := d.openSources(g.config, true); err != nil {
		return nil, err
	}
	if err := d.openReader(false); err != nil {
		return nil, err
	}
	return d, d.restore()
}

// look asks brokers about the facts that they know, and makes the engine see the sources and the
// pause file. Without Started it emits no effect, and nothing is shown as under way.
func (d *Daemon) look(ctx context.Context) error {
	g := d.gen.Load()
	askGroups(ctx, g.facts, g.config, d.now)
	if why := d.paused(g); why != nil {
		d.pause.Store(why)
		d.step(engine.Paused{Reason: why})
	}
	if why := d.clockStep(); why != nil {
		d.step(engine.ClockJudged{Reason: why})
	}
	if _, err := d.scanAll(ctx); err != nil {
		return err
	}
	return d.knownLosses(ctx)
}

func newDaemon(opts Options) *Daemon {
	d := &Daemon{opts: opts, log: opts.Log, startedAt: opts.Now(), began: time.Now(),
		engine:  engine.New(),
		metrics: newMetrics(opts.Registry), watchdog: newWatchdog(), fatal: make(chan error, 1),
		nudge: make(chan struct{}, 1), askFacts: make(chan struct{}, 1),
		work: context.Background(), evaluations: &rego.Watch{}}
	opts.Registry.MustRegister(newTableMetrics(func() ([]engine.Tally, tier.Time) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.engine.Tallies(), d.now()
	}))
	return d
}

func (d *Daemon) openLedger(c *config.Config, readOnly bool) error {
	wait := readersWait
	if readOnly {
		wait = 0 // whoever holds it is a daemon, which is asked instead
	}
	m, err := offsets.OpenBolt(filepath.Join(c.DataDir, ledgerFile), offsets.BoltOptions{
		ReadOnly: readOnly, LockWait: wait,
		NewID: func() (id [16]byte) {
			_, _ = rand.Read(id[:])
			return id
		}})
	if errors.Is(err, tier.ErrVanished) {
		return fmt.Errorf("%w; no tierd has run on this data_dir: tierd run, or tierd run --once", err)
	}
	if err != nil {
		return err
	}
	d.ledger, err = offsets.Open(m)
	return err
}

func (d *Daemon) openStore(ctx context.Context, c *config.Config) error {
	raw, err := d.opts.Bucket(ctx, c.Bucket, d.log)
	if err != nil {
		return fmt.Errorf("bucket: %w", err)
	}
	d.bucket = raw
	return d.decorate(c, d.ledger.ID())
}

// decorate makes the store of the ledger on the bucket: bounded, and tried again.
func (d *Daemon) decorate(c *config.Config, ledger string) (err error) {
	// What a worker sends at the configured rate must never look like a hang.
	slowest := int64(bytesPerSecondMin)
	if rate := c.Copy.BytesPerSecond; rate > 0 {
		slowest = max(min(slowest, rate/int64(4*c.Copy.Workers)), 1)
	}
	d.limiter, err = limit.New(c.Copy.BytesPerSecond, time.Now, retry.Sleep)
	if err != nil {
		return err
	}
	repeated, err := robust(limit.Wrap(d.bucket, d.limiter), c.Copy.Timeout, slowest)
	if err != nil {
		return err
	}
	d.store, err = objstore.New(repeated, ledger)
	return err
}

func (d *Daemon) openSources(c *config.Config, readOnly bool) error {
	table := func(name string) (tier.Table, bool) { return d.gen.Load().config.Table(name) }
	for _, cs := range c.Sources {
		s, err := openSource(cs, table, readOnly)
		if err != nil {
			return err
		}
		d.sources = append(d.sources, s)
	}
	d.exec = d.executor()
	d.pool = newPool(d.exec, c.Copy.Workers, deleters, removers(c.Limits))
	d.pool.timeout = func() time.Duration { return d.gen.Load().config.Copy.Timeout }
	d.pool.post, d.pool.fatal = d.step, d.die
	d.pool.begun, d.pool.ended, d.pool.late = d.metrics.begun, d.result, d.deletedLate
	d.pool.posted = func(f engine.Effect, r engine.Result) {
		d.lookAgain(f, r)
		d.progress() // not before: the engine would count what was copied among what is left
	}
	return nil
}

// restore gives the engine all that the ledger holds, before the first decision.
func (d *Daemon) restore() error {
	d.step(engine.Reconfigured{Settings: d.gen.Load().settings()})
	err := d.ledger.RestoreTables(func(t tier.TableState) error {
		d.step(engine.RestoredTable{State: t})
		return nil
	})
	if err != nil {
		return err
	}
	left := map[tier.LogID][]engine.Tombstone{}
	for _, id := range d.ledger.Logs() {
		tombstones, err := d.ledger.Tombstones(id)
		if err != nil {
			return err
		}
		for _, t := range tombstones {
			left[id] = append(left[id], engine.Tombstone{Position: t.Position, At: t.At})
		}
	}
	err = d.ledger.Restore(func(s tier.LogState, copies []tier.Remote, a []tier.Attempt) error {
		d.step(engine.Restored{State: s, Copies: copies, Attempts: a, Tombstones: left[s.Log]})
		return nil
	})
	if err != nil {
		return err
	}
	return d.scrubber.load()
}

// close gives everything back that was opened; the lock last.
func (d *Daemon) close() error {
	var errs []error
	if d.unwatch != nil {
		d.unwatch()
	}
	if g := d.gen.Load(); g != nil && g.plugins != nil {
		errs = append(errs, g.plugins.close())
	}
	d.retiring.Wait()
	for _, s := range d.sources {
		errs = append(errs, s.close())
	}
	if d.cache != nil {
		errs = append(errs, d.cache.Close())
	}
	if d.bucket != nil {
		errs = append(errs, d.bucket.Close())
	}
	if d.audit != nil {
		errs = append(errs, d.audit.Close())
	}
	if d.ledger != nil {
		errs = append(errs, d.ledger.Close())
	}
	if d.lock != nil {
		errs = append(errs, d.lock.Close())
	}
	return errors.Join(errs...)
}

// sameAge refuses a data_dir that has a deletion log and no ledger: with a new one, all that was
// archived would be forgotten without a word.
func sameAge(dataDir string) error {
	ledger := filepath.Join(dataDir, ledgerFile)
	if info, err := os.Lstat(ledger); err == nil && info.Size() > 0 {
		return nil
	}
	records, err := filepath.Glob(filepath.Join(dataDir, AuditDir, auditFiles))
	if err != nil || len(records) == 0 {
		return err
	}
	for _, r := range records {
		if info, err := os.Lstat(r); err == nil && info.Size() > 0 {
			return fmt.Errorf("%s is missing or empty, and %s has records: put the ledger back, or make "+
				"one of what the store has: tierd rebuild", ledger, r)
		}
	}
	return nil
}
