package exec

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// Config is what an Executor works with. All fields but Trouble are required.
type Config struct {
	Ledger Ledger
	Store  Store
	Audit  Audit
	// Source returns the adapter of a configured source; nil for one that is not configured.
	Source func(name string) Source
	// Generation returns the settings in force. It is called once per decision.
	Generation func() *Generation
	Now        func() tier.Time
	// NewAttempt returns an id that was never there before, also not in another process's life.
	NewAttempt func() tier.AttemptID
	// Sound tells what is known of the content of a copy in the store, beyond what the executor sees
	// for itself: no, where it was read back and is not what was written, and why; unknown, where
	// somebody suspects so and nobody has looked yet; else yes. A copy is proved by yes alone. It must
	// not block.
	Sound func(log tier.LogID, pos tier.Position) (tier.Truth, string)
	// Removing has a place for each removal of a copy that may be with the store at one time. Nil
	// bounds nothing.
	Removing chan struct{}
	// Trouble is told of what is worth a log line and changes no result. It may be nil.
	Trouble func(tier.Problem)
}

// Generation is one generation of configuration and policies as the executor needs it.
type Generation struct {
	// Number tells generations apart: what was asked of one does not count in another.
	Number    uint64
	Table     func(name string) (tier.Table, bool)
	Gate      *gate.Gate
	Brake     tier.Brake
	Tolerance tier.Time // of clocks, nanoseconds
	Verify    tier.VerifyMode
	// Paused says why nothing is deleted now; nil while deletions may happen. It is asked for each
	// deletion, just before it.
	Paused func() *tier.Reason
	// Input is the policies' input for the facts, as JSON, for the audit record. It may be nil.
	Input func(*gate.Facts) ([]byte, error)
	// Clocks tells whether the clocks of machine, store and ledger agree, and if not, what they say.
	Clocks    func(ctx context.Context) (tier.Truth, string)
	Grace     tier.Time // between moving a start and removing what lies below, nanoseconds
	OrphanAge tier.Time // how old an object that nothing names must be, nanoseconds
	// Node describes the machine now.
	Node func() gate.NodeFacts
	// Extern gives the user's facts about the log that are known at the time, by name, and the others.
	// It may be nil: then there are none.
	Extern func(now tier.Time, log tier.LogID) (known map[string]any, unknown []tier.UnknownFact)
	// Plugins asks the plugins about candidates: a Selected, or a Failed where they gave no answer.
	// It may be nil: then there are none.
	Plugins func(ctx context.Context, f engine.Select) engine.Result
}

// selectSegments asks the plugins. Nothing else is done with their answer here: an effect is
// proposed by the engine or it is not, and the gate asks no plugin.
func (x *Executor) selectSegments(ctx context.Context, f engine.Select) engine.Result {
	if ask := x.c.Generation().Plugins; ask != nil {
		return ask(ctx, f)
	}
	return failure(tier.CodePluginFault, "there are no plugins any more")
}

// extern adds the user's facts, for the policies.
func (g *Generation) extern(facts *gate.Facts) {
	if g.Extern != nil {
		facts.Extern, facts.Unknown = g.Extern(facts.Now, facts.Log.ID)
	}
}

// Executor performs effects. It is safe for concurrent use.
type Executor struct {
	c Config

	mu       sync.Mutex
	attempts map[engine.EffectID]tier.Attempt // under way by now
	seen     map[tier.LogID]bool              // logs whose manifest knew no more than the ledger
	left     map[tier.LogID][]tier.Intent     // of before the start, and not resolved yet
}

// New returns an executor.
func New(c Config) *Executor {
	return &Executor{c: c, attempts: map[engine.EffectID]tier.Attempt{}, seen: map[tier.LogID]bool{},
		left: map[tier.LogID][]tier.Intent{}}
}

// Do performs one effect. Canceling ctx stops it at the next sub-step; what it left is resolved by
// looking, as after a crash.
func (x *Executor) Do(ctx context.Context, f engine.Effect) (engine.Result, error) {
	switch f := f.(type) {
	case engine.Open:
		return x.open(ctx, f)
	case engine.Copy:
		return x.copy(ctx, f)
	case engine.Resolve:
		return x.resolve(ctx, f)
	case engine.Delete:
		return x.delete(ctx, f)
	case engine.Compare:
		return x.compare(ctx, f)
	case engine.RecordHole:
		return x.recordHole(ctx, f)
	case engine.Publish:
		return x.publishFact(ctx, f.Log, f.Position)
	case engine.Checkpoint:
		return x.checkpoint(ctx, f)
	case engine.ChangeTier:
		return x.changeTier(ctx, f)
	case engine.Govern:
		return x.govern(ctx, f)
	case engine.OpenEpoch:
		return x.openEpoch(ctx, f)
	case engine.MoveStart:
		return x.moveStart(ctx, f)
	case engine.Expire:
		return x.expire(ctx, f)
	case engine.Remove:
		return x.remove(ctx, f)
	case engine.Clear:
		return x.clear(ctx, f)
	case engine.Sweep:
		return x.sweep(ctx)
	case engine.Select:
		return x.selectSegments(ctx, f), nil
	case engine.Pause:
		_, err := x.decide(ctx, tier.TablePaused{Table: f.Table, Reason: f.Reason, At: x.c.Now()})
		return engine.Done{}, fatal(err)
	default:
		panic(fmt.Sprintf("exec: unknown effect %T", f))
	}
}

// Attempt tells which attempt the effect has under way, for a caller that gives up waiting for it.
func (x *Executor) Attempt(id engine.EffectID) (tier.Attempt, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	a, ok := x.attempts[id]
	return a, ok
}

func (x *Executor) setAttempt(id engine.EffectID, a *tier.Attempt) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if a == nil {
		delete(x.attempts, id)
		return
	}
	x.attempts[id] = *a
}

// append makes a record durable. The context's end is no reason to leave a record half said, so it
// is not handed on.
func (x *Executor) append(ctx context.Context, r tier.Record) (tier.Position, error) {
	return x.c.Ledger.Append(context.WithoutCancel(ctx), r)
}

// decide is append for a record that begins something. Whoever gave the call up may have decided
// otherwise since: a call that comes back from the store or the source only then begins nothing any
// more. What was done already is recorded by append, whoever waits.
func (x *Executor) decide(ctx context.Context, r tier.Record) (tier.Position, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("%w: nobody waits for it any more: %w", ErrRefused, err)
	}
	return x.append(ctx, r)
}

// fatal keeps what must end the process: any error of the ledger but a refusal, which concerns one
// record and has its own answer.
func fatal(err error) error {
	if err == nil || errors.Is(err, ErrRefused) {
		return nil
	}
	return err
}

// unexpected is for an error where a refusal must end the process, too. That one speaks of a record
// alone; any other names the ledger.
func unexpected(err error) error {
	if errors.Is(err, ErrRefused) {
		return fmt.Errorf("ledger: %w", err)
	}
	return err
}

func failure(code tier.Code, format string, args ...any) engine.Failed {
	return engine.Failed{Reason: tier.Reason{Code: code, Text: fmt.Sprintf(format, args...)}}
}

// classify turns an error of source or store into a reason. fallback is the code where the error is
// none of the named ones.
func classify(err error, fallback tier.Code) tier.Reason {
	code := fallback
	switch {
	case errors.Is(err, ErrDamaged):
		code = tier.CodeDamaged
	case errors.Is(err, ErrChanged):
		code = tier.CodeChanged
	case errors.Is(err, ErrVanished):
		code = tier.CodeVanished
	}
	return tier.Reason{Code: code, Text: err.Error()}
}

// epoch is the table's tier epoch now; 1 for a table never seen.
func (x *Executor) epoch(log tier.LogID) tier.TierEpoch {
	return max(x.c.Ledger.Table(log.Table).Epoch, 1)
}

func (x *Executor) source(name string) (Source, error) {
	if s := x.c.Source(name); s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("source %q: %w", name, errNoSource)
}

func (x *Executor) trouble(p tier.Problem) {
	if x.c.Trouble != nil {
		x.c.Trouble(p)
	}
}
