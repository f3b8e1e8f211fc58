package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/audit"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/exec"
	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/plugin"
	"github.com/tierd/tierd/runtime/read"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/verify"
	"github.com/tierd/tierd/runtime/vfs"
)

// SourceName is the name of the world's only source.
const SourceName = "wal"

// stepsMax bounds how many effects one Run performs: more than that is a livelock.
const stepsMax = 1_000

// ErrCrashed is what a process gives back that was stopped in the middle.
var ErrCrashed = errors.New("the process was stopped")

// Config is what a world begins with. It may be changed at any time; Reload makes it count.
type Config struct {
	Tables    func(name string) (tier.Table, bool)
	Policies  *rego.Set
	Workers   int
	Brake     tier.Brake
	Verify    tier.VerifyMode
	Delete    tier.LocalDelete
	Tolerance time.Duration
	AskAgain  time.Duration
	Layout    tier.Layout // of the source; empty is plain
	Next      logdir.Next
	// ClosedAfter closes the last segment; not with NextFollowing.
	ClosedAfter time.Duration
	Grace       time.Duration
	OrphanAge   time.Duration
	// Extern gives the user's facts, as exec.Generation has it. It may be nil: there are none.
	Extern func(now tier.Time, log tier.LogID) (known map[string]any,
		unknown []tier.UnknownFact)
	// Node describes the machine. The zero value is one without a disk.
	Node gate.NodeFacts
	// Plugins are asked what to copy first, and what to hold or keep; nil is none.
	Plugins *plugin.Set
	HoldMax time.Duration
	// LedgerDir has a directory where the ledger shall lie in a real bbolt file; empty keeps it in
	// memory. It is of one world, which must be observed.
	LedgerDir string
	// Hung is told of an evaluation of policies or properties that does not end, where they were
	// loaded with a rego.Watch that somebody looks at. It may be nil, and must not wait for anything.
	Hung func(error)
	// MaxClockStep is as in the configuration; with 0 there is only one clock.
	MaxClockStep time.Duration
}

// World is everything outside the process, and the process.
type World struct {
	Config  Config
	Now     tier.Time
	Disk    *vfs.Mem
	Objects *fault.Mem
	Bucket  *fault.Bucket
	Medium  *offsets.Memory
	Paused  bool
	// Skew is how far the store's clock is ahead of the machine's.
	Skew time.Duration
	// Drift is how much faster the machine's clock runs than the store's, in parts per million; NTP
	// is what becomes of that.
	Drift int
	NTP   ntp

	// Trace is told of each effect with its result, in order. It may be nil.
	Trace func(engine.Effect, engine.Result)
	// Trouble is told of what the executor finds worth a log line. It may be nil.
	Trouble func(tier.Problem)
	// Before is called before each effect; an error stops the process there. It may be nil.
	Before func(engine.Effect) error
	// Watch decides about each operation of the process. It may be nil, and must not use the
	// ledger's medium.
	Watch func(Point) Fate
	// Asked is told of each question that the gate puts to the policies, with their answer. It may
	// be nil.
	Asked func(*gate.Facts, rego.Evaluation, error)
	// Stepped is told of each event that the engine took, and what it began with it; nil is nobody.
	Stepped func(engine.Event, []engine.Effect)
	// Answered is told what the plugins answered to each question, and which of them gave no answer.
	// It may be nil.
	Answered func(engine.Selected, []plugin.Fault)

	// driftedApart counts how often clocks did not agree of which one drifts.
	driftedApart int

	mended     int // objects of manifests that were said again
	attempts   uint64
	probes     uint64
	generation uint64
	emitted    engine.EffectID // the last effect of the process
	since      engine.EffectID // the last one that older settings decided
	current    *call           // that is being performed; nil for none
	process    *process
	oracle     *Oracle
	door       *fault.Bucket // the process's own, before Bucket
	acting     bool          // what happens now is the process's doing
	stopped    bool          // nothing of the process happens any more
	points     int
	passed     time.Duration // since the beginning, however clocks were set
	cause      error         // of failures on the disk; EIO where it is nil
	vanished   bool          // the source's directory is elsewhere
	bad        []badCopy
	reading    verify.Reading

	audited    auditTruth
	manifests  map[tier.LogID]*manifestTruth
	ledgerRead ledgerRead
	filesRead  filesRead
	paths      map[string]parsedPath // all that were ever looked at
	bolt       *onBolt               // nil while no process has it
	boltKnown  bool                  // the file must hold what was committed
	openBolt   func(at string) (*offsets.Bolt, error)
	storeRead  storeRead
	remembered *remembered // of the policies; nil where they are asked each time
}

// process is one life of tierd.
type process struct {
	engine *engine.Engine
	exec   *exec.Executor
	ledger *offsets.Ledger
	audit  *audit.Log
	store  *objstore.Store
	source *logdir.Source
	asker  asker
	reader *read.Reader // made when somebody reads
	queue  []engine.Effect
	calls  []*call // effects under way, the last one begun last
	// unheard are the logs of which a call that was given up may have changed what the ledger has.
	unheard   map[string]bool
	clock     *tier.Reason // why the clock is not trusted
	clocks    exec.Clocks
	comparing bool  // clocks are being compared
	err       error // why it ended
}

// ownLock is the lock of a broker's directory beside which no broker runs.
type ownLock struct{}

// TryLock implements logdir.Locker.
func (ownLock) TryLock() (bool, error) { return true, nil }

// Held implements logdir.Locker.
func (ownLock) Held() bool { return true }

// Unlock implements logdir.Locker.
func (ownLock) Unlock() error { return nil }

// The directories of the world's disk.
const (
	sourceDir    = "wal"
	auditDir     = "audit"
	elsewhereDir = "elsewhere"
)

// pattern names the segments of the source.
var pattern = regexp.MustCompile(logdir.DefaultPattern)

// NewWorld returns a world with an empty disk and store, and no process yet.
func NewWorld(c Config, now tier.Time) (*World, error) {
	w := &World{Config: c, Now: now, openBolt: openBolt, manifests: map[tier.LogID]*manifestTruth{},
		paths:     map[string]parsedPath{},
		storeRead: storeRead{parsed: map[string]objstore.Key{}, names: map[tier.ObjectKey]string{}}}
	w.Disk = vfs.NewMem(func() tier.Time { return w.Now })
	for _, dir := range []string{sourceDir, auditDir} {
		if err := w.Disk.Mkdir(dir); err != nil {
			return nil, err
		}
	}
	if err := w.Disk.Sync("."); err != nil {
		return nil, err
	}
	w.Objects = fault.NewMem(func() time.Time { return w.Now.Add(w.Skew).Std() })
	w.Bucket = fault.Wrap(w.Objects, nil)
	w.Medium = offsets.NewMemory([16]byte{1})
	w.door = fault.Wrap(deaf{w.Bucket}, w.onStore)
	w.wire()
	return w, nil
}

// Start begins a process on what disk, store and ledger hold, as the daemon does: it restores,
// resolves announced deletions, and only then decides.
func (w *World) Start() error {
	p := &process{engine: engine.New(), unheard: map[string]bool{}}
	w.process = p
	if w.oracle != nil {
		clear(w.oracle.keeps)
	}
	return w.act(w.start)
}

// act lets the process do something. Whatever it makes of it, a process that was stopped has ended.
func (w *World) act(do func() error) error {
	p, before := w.process, w.acting
	if p.err != nil {
		return p.err
	}
	w.acting = true
	err := do()
	w.acting = false
	if w.stopped {
		err = ErrCrashed
	}
	p.err = cmp.Or(p.err, err) // what was done in between may have ended it
	if w.oracle != nil {
		w.oracle.rest()
	}
	w.acting = before
	return p.err
}

// aside lets the world do something by its own hand, in the middle of what the process does.
func (w *World) aside(do func()) {
	before := w.acting
	w.acting = false
	do()
	w.acting = before
}

func (w *World) start() error {
	p := w.process
	if err := w.open(p); err != nil {
		return err
	}
	w.since, w.emitted = 0, 0
	if w.oracle != nil {
		w.oracle.configured()
	}
	w.step(w.reconfigured())
	err := p.ledger.RestoreTables(func(t tier.TableState) error {
		w.step(engine.RestoredTable{State: t})
		return nil
	})
	if err == nil {
		left := map[tier.LogID][]engine.Tombstone{}
		for _, id := range p.ledger.Logs() {
			tombstones, terr := p.ledger.Tombstones(id)
			if terr != nil {
				return terr
			}
			for _, t := range tombstones {
				left[id] = append(left[id], engine.Tombstone{Position: t.Position, At: t.At})
			}
		}
		err = p.ledger.Restore(func(s tier.LogState, c []tier.Remote, a []tier.Attempt) error {
			w.step(engine.Restored{State: s, Copies: c, Attempts: a, Tombstones: left[s.Log]})
			return nil
		})
	}
	w.remind()
	if err == nil {
		err = p.exec.ResolveIntents(context.Background())
	}
	if err == nil {
		w.step(engine.Started{})
	}
	return err
}

func (w *World) open(p *process) (err error) {
	medium, err := w.medium()
	if err != nil {
		return err
	}
	if p.ledger, err = offsets.Open(medium); err != nil {
		return err
	}
	dir, err := w.Disk.Sub(auditDir)
	if err != nil {
		return err
	}
	if p.audit, err = audit.Open(dir, audit.Options{}); err != nil {
		return err
	}
	if p.store, err = objstore.New(heard{w.door, w}, p.ledger.ID()); err != nil {
		return err
	}
	if p.source, err = w.openSource(); err != nil {
		return err
	}
	p.exec = exec.New(exec.Config{
		Ledger: p.ledger, Store: p.store, Audit: p.audit,
		Source: func(name string) exec.Source {
			if name != SourceName {
				return nil
			}
			return p.source
		},
		Generation: w.execGeneration, Now: w.now, NewAttempt: w.newAttempt,
		Sound: w.sound, Trouble: w.trouble,
	})
	return nil
}

// openSource opens the source on the disk that the machine has now.
func (w *World) openSource() (*logdir.Source, error) {
	disk := w.Disk
	return logdir.Open(logdir.Config{Name: SourceName,
		Layout:      cmp.Or(w.Config.Layout, tier.LayoutPlain),
		Root:        func() (vfs.Dir, error) { return disk.Sub(sourceDir) },
		LocalDelete: w.Config.Delete, Next: w.Config.Next, ClosedAfter: w.Config.ClosedAfter,
		Lock: ownLock{}, Pattern: pattern})
}

func (w *World) trouble(p tier.Problem) {
	if w.Trouble != nil {
		w.Trouble(p)
	}
}

func (w *World) now() tier.Time { return w.Now }

func (w *World) newAttempt() tier.AttemptID {
	w.attempts++
	var id tier.AttemptID
	for i := range 8 {
		id[15-i] = byte(w.attempts >> (8 * i))
	}
	return id
}

func (w *World) execGeneration() *exec.Generation {
	g := w.generationNow()
	if w.Config.Plugins != nil {
		g.Plugins = w.askPlugins
	}
	return g
}

func (w *World) generationNow() *exec.Generation {
	c := &w.Config
	node := c.Node
	node.Name = "sim"
	return &exec.Generation{Number: w.generation,
		Table: c.Tables, Gate: gate.New(asked{w, c.Policies}), Brake: c.Brake,
		Tolerance: tier.Time(c.Tolerance), Verify: c.Verify,
		Paused: w.pause,
		Input:  c.Policies.RecordJSON,
		Clocks: w.clocks,
		Grace:  tier.Time(c.Grace), OrphanAge: tier.Time(c.OrphanAge),
		Extern: c.Extern,
		Node:   func() gate.NodeFacts { return node }}
}

// asked lets the world see what the policies are asked, and what they say.
type asked struct {
	w   *World
	set *rego.Set
}

// asking is the context of a question to policies or properties.
func (w *World) asking(ctx context.Context) context.Context {
	if w.Config.Hung == nil {
		return ctx
	}
	return rego.WhenHung(ctx, w.Config.Hung)
}

// Decide implements gate.Policies.
func (a asked) Decide(ctx context.Context, f *gate.Facts) (gate.Decision, error) {
	var e rego.Evaluation
	var err error
	ctx = a.w.asking(ctx)
	if a.w.Asked == nil {
		e.Decision, err = a.set.Decide(ctx, f)
	} else {
		e, err = a.w.remembered.evaluate(a.set, f, func() (rego.Evaluation, error) {
			return a.set.EvaluateFacts(ctx, f)
		})
		a.w.Asked(f, e, err)
	}
	if o := a.w.oracle; o != nil {
		o.answered(f, err == nil && e.Delete)
	}
	return e.Decision, err
}

func (w *World) reconfigured() engine.Reconfigured {
	w.generation++
	c := &w.Config
	return engine.Reconfigured{Settings: engine.Settings{
		Generation: w.generation, Table: c.Tables,
		LocalDelete: func(string) tier.LocalDelete { return w.Config.Delete },
		Workers:     c.Workers, Deleters: c.Workers, Brake: c.Brake,
		Tolerance: tier.Time(c.Tolerance), AskAgain: tier.Time(c.AskAgain),
		Backoff:    engine.Backoff{Min: tier.Time(time.Second), Max: tier.Time(time.Minute)},
		ExpireRule: c.Policies.Expires(), ExpireRemoteRule: c.Policies.ExpiresRemote(),
		Removers: c.Workers, Grace: tier.Time(c.Grace), OrphanAge: tier.Time(c.OrphanAge),
		SweepEvery: tier.Time(c.OrphanAge),
		Plugins:    c.Plugins != nil, HoldMax: tier.Time(c.HoldMax), SelectEvery: selectEvery,
	}}
}

// Reload makes the changed configuration count, as one generation, unless the engine refuses it.
func (w *World) Reload() error {
	ev := w.reconfigured()
	if why := w.process.engine.Refuses(ev.Settings); why != nil {
		w.generation-- // the one that runs stays in force
		return fmt.Errorf("%s: %s", why.Code, why.Text)
	}
	w.since = w.emitted
	if w.oracle != nil {
		w.oracle.configured()
	}
	w.step(ev)
	return nil
}

// SetPaused plays the pause file.
func (w *World) SetPaused(paused bool) {
	w.Paused = paused
	w.step(engine.Paused{Reason: w.pause()})
}

func (w *World) pause() *tier.Reason {
	if !w.Paused {
		return nil
	}
	return &tier.Reason{Code: tier.CodePaused, Text: "the pause file is there"}
}

// orders lets the process do what an operator wants of it. The error is why the process ended, or a
// tier.ErrRefused, which ends none.
func (w *World) orders(do func() error) error {
	refused := error(nil)
	err := w.act(func() error {
		err := do()
		if errors.Is(err, tier.ErrRefused) {
			refused, err = err, nil
		}
		return err
	})
	return cmp.Or(err, refused)
}

// Resume plays "tierd resume".
func (w *World) Resume(table string) error {
	return w.orders(func() error {
		at := w.Now
		_, err := w.process.ledger.Append(context.Background(),
			tier.TableResumed{Table: table, At: at})
		if w.oracle != nil {
			w.oracle.resumed(table, at)
		}
		if err == nil {
			w.step(engine.Resumed{Table: table})
		}
		return err
	})
}

// Drop plays "tierd drop", with its confirmation.
func (w *World) Drop(table string) error {
	return w.orders(func() error {
		cfg, governed := w.Config.Tables(table)
		state := w.process.ledger.Table(table)
		if !state.Frozen(cfg, governed) || w.process.engine.Busy(table) {
			return fmt.Errorf("%w: table %s is governed, or busy", tier.ErrRefused, table)
		}
		_, err := w.process.ledger.Append(context.Background(),
			tier.TableDropped{Table: table, At: w.Now})
		if w.oracle != nil {
			w.oracle.dropped(table)
		}
		if err == nil {
			w.step(engine.TableDropped{State: w.process.ledger.Table(table)})
		}
		return err
	})
}

func (w *World) step(ev engine.Event) {
	p := w.process
	began := p.engine.Step(w.Now, ev)
	p.queue = append(p.queue, began...)
	if w.oracle != nil {
		w.oracle.proposed(ev, began)
	}
	for _, f := range began {
		w.emitted = max(w.emitted, f.EffectID())
	}
	if w.Stepped != nil {
		w.Stepped(ev, began)
	}
}

// Advance lets so much time pass on the machine's clock.
func (w *World) Advance(d time.Duration) {
	w.Now = w.Now.Add(d)
	w.passed += max(d, 0)
	w.apart(d)
}

// Run scans and performs until a scan brings nothing new and nothing is left to start. Effects that
// wait for a time stay. The error is why the process ended, if it did.
func (w *World) Run() error {
	for steps := 0; ; {
		changed, err := w.Scan()
		if err != nil {
			return err
		}
		w.step(engine.Tick{})
		acted := len(w.process.queue) > 0
		for len(w.process.queue) > 0 {
			if steps++; steps > stepsMax {
				return fmt.Errorf("more than %d effects in one run: a livelock", stepsMax)
			}
			if err := w.Perform(0); err != nil {
				return err
			}
		}
		if !changed && !acted {
			return nil
		}
	}
}

// Scan looks at the source once.
func (w *World) Scan() (changed bool, err error) {
	if err := w.tendClock(); err != nil {
		return false, err
	}
	err = w.act(func() error {
		res, err := w.process.source.Scan(context.Background(), w.Now)
		if err != nil {
			return err
		}
		if res.Empty && w.process.engine.Emptied(SourceName) {
			res.Trouble = nil
		}
		for _, s := range res.Scans {
			w.step(engine.Scanned{Scan: s})
		}
		w.step(engine.SourceScanned{Source: SourceName, Logs: res.Logs, Trouble: res.Trouble})
		changed = len(res.Scans) > 0
		return nil
	})
	return changed, err
}

// Queued are the effects that were emitted and not performed.
func (w *World) Queued() []engine.Effect { return w.process.queue }

// call is an effect that is being performed.
type call struct {
	effect     engine.Effect
	cancel     context.CancelFunc
	givenUp    bool
	generation uint64 // of the settings, when it began
}

// decided reports whether what is being done was decided by the settings that are in force.
func (w *World) decided() bool {
	return w.current != nil && w.current.effect.EffectID() > w.since
}

// asks reports whether what is being done began under the settings that are in force: then whatever
// it asks for leave was asked by them.
func (w *World) asks() bool {
	return w.current != nil && w.current.generation == w.generation
}

// changing reports whether a step of the table's tiering is decided, and not made.
func (w *World) changing(table string) bool {
	is := func(f engine.Effect) bool {
		c, ok := f.(engine.ChangeTier)
		return ok && c.Table == table
	}
	p := w.process
	return slices.ContainsFunc(p.queue, is) ||
		slices.ContainsFunc(p.calls, func(c *call) bool { return is(c.effect) })
}

// GiveUp plays a caller that waits no more for the effect that is under way longest: as the daemon
// does, it ends the effect's context and answers in its place, and lets it go on.
func (w *World) GiveUp() {
	p := w.process
	for _, c := range p.calls {
		if c.givenUp || p.err != nil {
			continue
		}
		c.givenUp = true
		c.cancel()
		failed := engine.Failed{Reason: tier.Reason{Code: tier.CodeUnknownOutcome,
			Text: "it did not come back"}}
		if a, ok := p.exec.Attempt(c.effect.EffectID()); ok {
			failed.Attempt = &a
		}
		w.heard(c.effect, failed)
		w.step(engine.Finished{ID: c.effect.EffectID(), Result: failed})
		return
	}
}

// zombie reports whether nobody waits any more for what is being done.
func (w *World) zombie() bool {
	calls := w.process.calls
	return len(calls) > 0 && calls[len(calls)-1].givenUp
}

// Perform performs the i-th queued effect and feeds its result back. While it asks the store, a
// test may perform others.
func (w *World) Perform(i int) error {
	p := w.process
	if p.err != nil {
		return p.err
	}
	f := p.queue[i]
	p.queue = append(p.queue[:i:i], p.queue[i+1:]...)
	if w.Before != nil {
		if p.err = w.Before(f); p.err != nil {
			return p.err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{effect: f, cancel: cancel, generation: w.generation}
	p.calls = append(p.calls, c)
	before := w.current
	w.current = c
	defer func() { w.current = before }()
	return w.act(func() error {
		defer cancel()
		r, err := p.exec.Do(ctx, f)
		p.calls = p.calls[:len(p.calls)-1]
		p.unheard[subject(f)] = p.unheard[subject(f)] || c.givenUp
		if err != nil || p.err != nil || w.stopped {
			return err
		}
		if c.givenUp {
			w.step(engine.Late{Effect: f, Result: r})
			return nil
		}
		w.heard(f, r)
		if w.Trace != nil {
			w.Trace(f, r)
		}
		w.step(engine.Finished{ID: f.EffectID(), Result: r})
		return nil
	})
}

// Crash stops the machine: it ends the process at once and drops what was not synced, as choose
// says (see vfs.Mem.Crash); the store keeps what reached it.
func (w *World) Crash(choose func(label string, n int) int) {
	w.Disk = w.Disk.Crash(choose)
	if w.oracle != nil {
		w.oracle.crashed()
	}
	lost := w.Medium.Lossy()
	if lost && w.oracle != nil {
		w.oracle.bury()
	}
	w.ended(w.Medium.Crash(), lost)
}

// Kill ends the process alone: what it wrote is there, and what it did not sync is still not.
func (w *World) Kill() {
	w.Disk = w.Disk.Pass()
	kept := w.Medium.Clone() // the machine has it, and writes it
	w.Medium.Crash()
	w.ended(kept, false)
}

// ended is the end of a process, with what it leaves of the ledger. Where commits were lost it is
// an older one.
func (w *World) ended(medium *offsets.Memory, lost bool) {
	w.letGo()
	w.Medium = medium
	w.wire()
	if lost {
		w.boltKnown = false
	}
	if lost && w.oracle != nil {
		w.oracle.forget()
		w.oracle.old = true
	}
	w.stopped = false
	if w.process != nil {
		w.process.err = ErrCrashed
		w.process.asker.forget()
	}
	if w.oracle != nil {
		w.oracle.changed = true
		w.oracle.rest()
	}
}

// Ended is why the process ended; nil while it runs.
func (w *World) Ended() error { return w.process.err }

// Engine is the process's state machine, to look at.
func (w *World) Engine() *engine.Engine { return w.process.engine }

// Ledger is the process's ledger, to look at.
func (w *World) Ledger() *offsets.Ledger { return w.process.ledger }
