package exec

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/audit"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

const t0 = tier.Time(1_800_000_000_000_000_000)

var (
	orders = tier.LogID{Table: "orders", Name: "0"}
	errOut = errors.New("out of order")
)

// rig is an executor over the real adapters, on a disk and a store in memory, with spies between.
type rig struct {
	t      *testing.T
	x      *Executor
	now    tier.Time
	disk   *vfs.Mem
	bucket *fault.Bucket
	keys   *fault.Mem
	medium *offsets.Memory
	ledger *offsets.Ledger
	audit  *spyAudit
	source *spySource

	governed bool
	// unconfigured is set where the source is in the configuration no more.
	unconfigured bool
	tiering      bool
	policy       tier.DisablePolicy
	governor     string // the entry that governs the table
	orphanAge    time.Duration
	clocks       tier.Truth
	grace        time.Duration
	way          tier.LocalDelete
	brake        tier.Brake
	paused       *tier.Reason
	asked        func()        // when the policies are
	facts        []gate.Facts  // that the policies were asked about
	answer       gate.Decision // of the policies
	sound        tier.Truth    // what a look at the copies found
	attempts     byte
	reloads      uint64
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, now: t0, governed: true, tiering: true, way: tier.LocalDeleteUnlink,
		sound: tier.Yes, clocks: tier.Yes,
		grace:  10 * time.Minute,
		brake:  tier.Brake{MaxSegments: 10, MaxBytes: 1 << 20, Per: time.Hour},
		answer: gate.Decision{Delete: true}}
	r.disk = vfs.NewMem(func() tier.Time { return r.now })
	for _, dir := range []string{"wal", "wal/orders", "wal/orders/0", "audit"} {
		r.must(r.disk.Mkdir(dir))
	}
	r.keys = fault.NewMem(func() time.Time { return r.now.Std() })
	r.bucket = fault.Wrap(r.keys, nil)
	r.medium = offsets.NewMemory([16]byte{1})
	r.boot()
	return r
}

// boot begins a process on what is there.
func (r *rig) boot() {
	r.t.Helper()
	var err error
	r.ledger, err = offsets.Open(r.medium)
	r.must(err)
	dir, err := r.disk.Sub("audit")
	r.must(err)
	log, err := audit.Open(dir, audit.Options{})
	r.must(err)
	store, err := objstore.New(r.bucket, r.ledger.ID())
	r.must(err)
	src, err := logdir.Open(logdir.Config{Name: "wal", Layout: tier.LayoutPlain,
		LocalDelete: r.way, Root: func() (vfs.Dir, error) { return r.disk.Sub("wal") }})
	r.must(err)
	r.audit, r.source = &spyAudit{Log: log}, &spySource{Source: src}
	r.x = New(Config{Ledger: r.ledger, Store: store, Audit: r.audit,
		Source: func(name string) Source {
			if name != "wal" || r.unconfigured {
				return nil
			}
			return r.source
		},
		Generation: r.generation, Now: func() tier.Time { return r.now },
		NewAttempt: func() tier.AttemptID { r.attempts++; return tier.AttemptID{15: r.attempts} },
		Sound: func(tier.LogID, tier.Position) (tier.Truth, string) {
			return r.sound, "a look at it"
		},
	})
}

func (r *rig) generation() *Generation {
	return &Generation{
		Number: r.reloads,
		Table: func(name string) (tier.Table, bool) {
			return tier.Table{Name: name, LocalTTL: time.Hour, Tiering: r.tiering,
				DisablePolicy: r.policy, Governor: r.governor}, r.governed
		},
		Gate: gate.New(r), Brake: r.brake, Verify: tier.VerifyFull,
		Paused: func() *tier.Reason { return r.paused },
		Node:   func() gate.NodeFacts { return gate.NodeFacts{} },
		Clocks: func(context.Context) (tier.Truth, string) { return r.clocks, "" },
		Grace:  tier.Time(r.grace), OrphanAge: tier.Time(r.orphanAge),
	}
}

// Decide makes the rig the policies.
func (r *rig) Decide(_ context.Context, f *gate.Facts) (gate.Decision, error) {
	r.facts = append(r.facts, *f)
	if r.asked != nil {
		r.asked()
	}
	return r.answer, nil
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func fileName(base tier.Offset) string { return fmt.Sprintf("%020d.log", base) }

// write puts a file of the log on disk, over whatever has its name.
func (r *rig) write(name, data string) {
	r.t.Helper()
	at := path.Join("wal/orders/0", name)
	if err := r.disk.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.t.Fatal(err)
	}
	f, err := r.disk.Create(at)
	r.must(err)
	_, err = f.Write([]byte(data))
	r.must(err)
	r.must(f.Sync())
	r.must(f.Close())
	r.must(r.disk.Sync("wal/orders/0"))
}

// roll writes so many segments of ten offsets, and an active one behind them.
func (r *rig) roll(segments int) {
	r.t.Helper()
	for i := range segments + 1 {
		base := tier.Offset(10 * i)
		r.write(fileName(base), fmt.Sprintf("segment %d\n", base))
	}
}

func (r *rig) there(name string) bool {
	r.t.Helper()
	_, err := r.disk.Stat(path.Join("wal/orders/0", name))
	return err == nil
}

// segment is the one with the base, as a scan sees it now.
func (r *rig) segment(base tier.Offset) tier.LocalSegment {
	r.t.Helper()
	scan, _, err := r.source.Source.Look(context.Background(), orders)
	r.must(err)
	i := slices.IndexFunc(scan.Segments, func(s tier.LocalSegment) bool { return s.Base == base })
	if i < 0 {
		r.t.Fatalf("no segment %d in %v", base, scan.Segments)
	}
	return scan.Segments[i]
}

// do performs an effect that is not to end the process.
func (r *rig) do(f engine.Effect) engine.Result {
	r.t.Helper()
	res, err := r.x.Do(context.Background(), f)
	r.must(err)
	return res
}

func (r *rig) opened() {
	r.t.Helper()
	r.do(r.openEffect())
}

func (r *rig) openEffect() engine.Effect {
	return engine.Open{ID: 1, Log: orders, Source: "wal", Layout: tier.LayoutPlain}
}

func (r *rig) copyEffect(base tier.Offset) engine.Copy {
	r.t.Helper()
	return engine.Copy{ID: 2, Log: orders, Source: "wal", Segment: r.segment(base), Epoch: 1}
}

// copied copies the segment and returns its manifest position.
func (r *rig) copied(base tier.Offset) tier.Position {
	r.t.Helper()
	return want[engine.Copied](r, r.do(r.copyEffect(base))).Remote.Position
}

// deleteEffect proposes segments that were copied at the positions.
func (r *rig) deleteEffect(positions ...tier.Position) engine.Delete {
	r.t.Helper()
	f := engine.Delete{ID: 3, Log: orders, Source: "wal", Action: tier.DeleteLocal}
	for i, pos := range positions {
		f.Segments = append(f.Segments, engine.DeleteCandidate{
			Segment: r.segment(tier.Offset(10 * i)), Copied: true, Position: pos})
	}
	return f
}

// want is the result as the type that it is to have.
func want[R engine.Result](r *rig, res engine.Result) R {
	r.t.Helper()
	got, ok := res.(R)
	if !ok {
		r.t.Fatalf("got %T %+v, want %T", res, res, got)
	}
	return got
}

// kept expects that a deletion kept its first segment for the reason, on disk and in every record.
func (r *rig) kept(res engine.Result, code tier.Code) {
	r.t.Helper()
	d := want[engine.Deleted](r, res)
	if len(d.Gone) > 0 || d.Kept == nil {
		r.t.Fatalf("got %+v, want it kept", d)
	}
	if !slices.ContainsFunc(d.Kept.Reasons, func(x tier.Reason) bool { return x.Code == code }) {
		r.t.Errorf("kept for %+v, want %s", d.Kept.Reasons, code)
	}
	if w := r.ledger.Table("orders").Window; w.Segments != 0 {
		r.t.Errorf("the brake counts %d deletions, want none", w.Segments)
	}
	if open := r.audit.OpenIntents(); len(open) > 0 {
		r.t.Errorf("announced without an outcome: %+v", open)
	}
}

// spyAudit lets a test act, or fail, when a deletion is announced.
type spyAudit struct {
	*audit.Log
	intend    func() error
	announced []tier.Deletion
	outcomes  []tier.Outcome
}

// Intend implements Audit.
func (a *spyAudit) Intend(ctx context.Context, d tier.Deletion) (uint64, error) {
	if a.intend != nil {
		if err := a.intend(); err != nil {
			return 0, err
		}
	}
	a.announced = append(a.announced, d)
	// As of a caller who looks at the context no more.
	return a.Log.Intend(context.WithoutCancel(ctx), d)
}

// Conclude implements Audit.
func (a *spyAudit) Conclude(ctx context.Context, seq uint64, o tier.Outcome) error {
	a.outcomes = append(a.outcomes, o)
	return a.Log.Conclude(ctx, seq, o)
}

// spySource lets a test act, or fail, at calls of the source.
type spySource struct {
	*logdir.Source
	drop   func(drop func() error) error
	look   func() error
	seen   func(*tier.Scan)
	settle func() error
	read   func() error
	// vet makes the program that owns the log the one that is to delete; batches is what it wrote.
	vet     func() gate.OwnerFacts
	batches []tier.EpochStart
}

// LocalDelete implements Source.
func (s *spySource) LocalDelete() tier.LocalDelete {
	if s.vet != nil {
		return tier.LocalDeleteRecords
	}
	return s.Source.LocalDelete()
}

// Vet implements Source.
func (s *spySource) Vet(context.Context, tier.LogID, tier.Content) gate.OwnerFacts {
	return s.vet()
}

// Batches implements Source: each has one offset.
func (s *spySource) Batches(_ context.Context, _ tier.LogID, r tier.Range,
	fn func(tier.Range, tier.LeaderEpoch) error) error {
	for _, b := range s.batches {
		if !r.Contains(b.Start) {
			continue
		}
		if err := fn(tier.Range{Base: b.Start, Next: b.Start + 1}, b.Epoch); err != nil {
			return err
		}
	}
	return nil
}

// Drop implements Source.
func (s *spySource) Drop(ctx context.Context, p gate.Permit, t gate.Target) error {
	drop := func() error { return s.Source.Drop(ctx, p, t) }
	if s.drop == nil {
		return drop()
	}
	return s.drop(drop)
}

// Look implements Source.
func (s *spySource) Look(ctx context.Context, id tier.LogID) (tier.Scan, bool, error) {
	if s.look != nil {
		if err := s.look(); err != nil {
			return tier.Scan{}, false, err
		}
	}
	scan, whole, err := s.Source.Look(ctx, id)
	if s.seen != nil {
		s.seen(&scan)
	}
	return scan, whole, err
}

// Settle implements Source.
func (s *spySource) Settle(ctx context.Context, id tier.LogID) error {
	if s.settle != nil {
		if err := s.settle(); err != nil {
			return err
		}
	}
	return s.Source.Settle(ctx, id)
}

// Read implements Source.
func (s *spySource) Read(ctx context.Context, id tier.LogID, r tier.Range) (tier.Content, error) {
	c, err := s.Source.Read(ctx, id, r)
	if s.read != nil {
		err = errors.Join(err, s.read())
	}
	return c, err
}

var _ Source = (*spySource)(nil)
