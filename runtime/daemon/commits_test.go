package daemon

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/exec"
	"github.com/tierd/tierd/runtime/tier"
)

// stalling is a pool over a ledger whose commits stall from the n-th on, until resume is closed.
type stalling struct {
	*pool
	ledger *offsets.Ledger
	resume chan struct{}
	posted []engine.Event
}

func newStalling(t *testing.T, log tier.LogID, source oneFile) *stalling {
	m := offsets.NewMemory([16]byte{1})
	l, err := offsets.Open(m)
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Append(t.Context(), tier.LogOpened{Log: log, Source: "wal", Layout: tier.LayoutPlain,
		Epoch: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := &stalling{ledger: l, resume: make(chan struct{})}
	m.Inject(func(uint64) offsets.Fault {
		<-s.resume
		return offsets.NoFault
	})
	s.pool = newPool(exec.New(exec.Config{Ledger: notedLedger{l}, Source: func(string) exec.Source {
		return source
	}, Store: emptyStore{}, Now: func() tier.Time { return 1 },
		NewAttempt: func() tier.AttemptID { return tier.AttemptID{7} }}), 1, 1, 1)
	s.timeout = func() time.Duration { return time.Minute }
	s.fatal = func(err error) { t.Error(err) }
	s.begun = func(engine.Effect) {}
	s.ended = func(engine.Effect, engine.Result, time.Duration) {}
	s.late = func(engine.Delete, engine.Deleted) {}
	s.post = func(ev engine.Event) { s.posted = append(s.posted, ev) }
	return s
}

// result performs f over a stall of a day, and returns how it ended.
func (s *stalling) result(t *testing.T, f engine.Effect) engine.Result {
	s.run(context.Background(), f)
	<-time.After(24 * time.Hour)
	synctest.Wait()
	if len(s.posted) > 0 {
		t.Errorf("after a day, with the commit still to end: %+v", s.posted)
	}
	close(s.resume)
	synctest.Wait()
	if len(s.posted) != 1 {
		t.Fatalf("posted %+v", s.posted)
	}
	return s.posted[0].(engine.Finished).Result
}

// oneFile is a source with one sound file of nine bytes, which is read once hung is closed.
type oneFile struct {
	exec.Source
	hung <-chan struct{} // nil if it is read at once
}

func (f oneFile) Read(_ context.Context, _ tier.LogID, r tier.Range) (tier.Content, error) {
	if f.hung != nil {
		<-f.hung
	}
	return nineBytes(r), nil
}

func nineBytes(r tier.Range) tier.Content {
	f := tier.SourceFile{FileDigest: tier.FileDigest{Name: "0.log", Size: 9}, Stat: oneStat}
	return tier.Content{Range: r, Files: []tier.SourceFile{f}}
}

var oneStat = tier.Stat{Inode: 1, Size: 9}

// emptyStore is a store without manifests, which is not asked for more.
type emptyStore struct{ exec.Store }

func (emptyStore) NewestEntry(context.Context, tier.LogID) (tier.Position, bool, error) {
	return 0, false, nil
}

// TestACommitIsNotGivenUp: however long the ledger stalls, what it then has is what the engine is
// told. A step of a table's tiering is not decided anew over one that is still to come.
func TestACommitIsNotGivenUp(t *testing.T) {
	t.Parallel()
	log := tier.LogID{Table: "orders", Name: "0"}
	for name, f := range map[string]engine.Effect{
		"a step of tiering": engine.ChangeTier{ID: 1, Table: log.Table, State: tier.Disabling,
			Epoch: 2, Policy: tier.PolicyRetain},
		"what governs": engine.Govern{ID: 1, Table: log.Table, Entry: "orders"},
		"a pause":      engine.Pause{ID: 1, Table: log.Table},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if r, ok := newStalling(t, log, oneFile{}).result(t, f).(engine.Done); !ok {
					t.Errorf("ended with %T %+v", r, r)
				}
			})
		})
	}
}

// TestACopyWhoseCommitStalls is over when the commit is, and leaves nothing that the engine does
// not know: its attempt is abandoned, and the tombstone told.
func TestACopyWhoseCommitStalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := tier.LogID{Table: "orders", Name: "0"}
		s := newStalling(t, log, oneFile{})
		r := s.result(t, engine.Copy{ID: 1, Log: log, Source: "wal", Epoch: 1,
			Segment: tier.LocalSegment{Range: tier.Range{Next: 9}, Bytes: 9, Log: oneStat}})
		a, ok := r.(engine.Abandoned)
		left, err := s.ledger.Tombstones(log)
		if !ok || a.Tombstone == nil || err != nil || len(left) != 1 ||
			left[0].Position != a.Tombstone.Position {
			t.Errorf("ended with %T %+v; the ledger has %+v, %v", r, r, left, err)
		}
	})
}

// TestACallThatEndsLateIsHeard: the engine is told twice, once that it was given up, and what it
// came to.
func TestACallThatEndsLateIsHeard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, hung := tier.LogID{Table: "orders", Name: "0"}, make(chan struct{})
		s := newStalling(t, log, oneFile{hung: hung})
		f := engine.Copy{ID: 1, Log: log, Source: "wal", Epoch: 1,
			Segment: tier.LocalSegment{Range: tier.Range{Next: 9}, Bytes: 9, Log: oneStat}}
		s.run(context.Background(), f)
		<-time.After(24 * time.Hour)
		synctest.Wait()
		if len(s.posted) != 1 {
			t.Fatalf("after a day: %+v", s.posted)
		}
		if r, ok := s.posted[0].(engine.Finished).Result.(engine.Failed); !ok ||
			r.Reason.Code != tier.CodeUnknownOutcome {
			t.Errorf("given up: %+v", r)
		}
		close(hung)
		synctest.Wait()
		if len(s.posted) != 2 {
			t.Fatalf("in the end: %+v", s.posted)
		}
		late, ok := s.posted[1].(engine.Late)
		if r, failed := late.Result.(engine.Failed); !ok || late.Effect.EffectID() != f.ID || !failed ||
			r.Reason.Code != tier.CodeRetry {
			t.Errorf("in the end: %+v", s.posted[1])
		}
	})
}

// TestALateDeletionCountsOnce: its effect was over when it was given up, and what went all the same
// counts when that is known.
func TestALateDeletionCountsOnce(t *testing.T) {
	t.Parallel()
	d := newTold()
	heard := 0
	p := &pool{begun: d.metrics.begun, ended: d.result, late: d.deletedLate,
		post: func(engine.Event) { heard++ }}
	f := engine.Delete{ID: 1, Log: tier.LogID{Table: "orders", Name: "0"}, Action: tier.DeleteLocal}
	p.begun(f)
	p.answer(f, answer{result: engine.Failed{Reason: tier.Reason{Code: tier.CodeUnknownOutcome}}}, 0)
	done := make(chan answer, 1)
	done <- answer{result: engine.Deleted{Gone: []tier.LocalSegment{{Bytes: 9}}}}
	p.awaitLate(f, done, nil, nil)
	open := testutil.ToFloat64(d.metrics.inFlight.WithLabelValues(effectKind(f)))
	bytes := testutil.ToFloat64(d.metrics.deletedBytes.WithLabelValues("orders", "delete_local"))
	if n := d.lines("msg=deleted"); open != 0 || bytes != 9 || n != 1 || heard != 2 {
		t.Errorf("%v under way, %v bytes deleted, told %d times, to the engine %d times", open, bytes,
			n, heard)
	}
}
