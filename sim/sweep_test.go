package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// history leads to one effect, whose every operation on disk, store and ledger is then made to
// fail, to succeed and say otherwise, and to be the one before and after which the process or the
// machine stops. Whatever happens, once nothing fails any more the world has to come to where it
// would have been, and every promise has to hold all the way.
type history struct {
	name string
	// steps are the durable sub-steps that the effect's comment lists: the sweep must meet no fewer
	// operations that change something.
	steps int
	// before brings a world to where the effect comes next; the process runs, unless it is the
	// start that is swept.
	before func(*rig)
	// effect is the swept one; nil is the start of a process.
	effect func(engine.Effect) bool
	// meanwhile happens between the moment when the effect was proposed and its first operation.
	meanwhile func(*rig)
	// sparse is how many points are passed over, where a recovery is stopped, for each that is not:
	// for a history that only repeats what a shorter one does.
	sparse int
	// wait is how long it takes until what failed is tried again, where that is not soon.
	wait time.Duration
}

// rig is one run of a history.
type rig struct {
	t      *testing.T
	w      *World
	oracle *Oracle

	armed   bool
	changes bool // only points that change something count
	n       int  // the point that is hit, counted from where the rig was armed; -1 for none
	fate    Fate
	met     []Point
	fired   bool
	// meanwhile happens right before the point that is hit. It may be nil.
	meanwhile func()
}

func newRig(t *testing.T) *rig {
	w, o := newObserved(t)
	r := &rig{t: t, w: w, oracle: o, n: -1}
	w.Watch = r.watch
	return r
}

func (r *rig) watch(p Point) Fate {
	if !r.armed || r.changes && !p.Changes() {
		return Proceed
	}
	r.met = append(r.met, p)
	if len(r.met)-1 != r.n {
		return Proceed
	}
	r.fired = true
	if r.meanwhile != nil {
		r.w.aside(r.meanwhile)
	}
	return r.fate
}

// do fails the test where a history itself goes wrong.
func (r *rig) do(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// sweep arms the rig for the effect, or for the start, and lets it run.
func (r *rig) sweep(h *history, n int, fate Fate) {
	r.n, r.fate = n, fate
	if h.effect == nil {
		r.armed = true
		_ = r.w.Start() // whatever becomes of it shows in the world
		r.armed = false
		return
	}
	once := false
	r.w.Before = func(f engine.Effect) error {
		if !once && h.effect(f) {
			once, r.armed = true, true
			if h.meanwhile != nil {
				h.meanwhile(r)
			}
		}
		return nil
	}
	r.w.Trace = func(engine.Effect, engine.Result) { r.armed = false }
	_ = r.w.Run()
	r.armed = false
	r.w.Before, r.w.Trace = nil, nil
	if !once {
		r.t.Fatalf("%s: the effect never came", h.name)
	}
}

// settle lets the world come to rest: processes that end are started again.
func (r *rig) settle() {
	for range settleRounds {
		if err := r.w.Run(); err != nil {
			r.w.Kill()
			r.do(r.w.Start())
			r.do(r.w.Run())
		}
		r.w.Advance(time.Minute)
	}
	r.oracle.Quiet()
}

// restart crashes and starts again.
func (r *rig) restart(c crash) {
	c.crash(r.w)
	r.do(r.w.Start())
	if !c.twice {
		return
	}
	once := r.w.persistent()
	c.crash(r.w)
	r.do(r.w.Start())
	if diff := cmp.Diff(once, r.w.persistent()); diff != "" {
		r.oracle.violate(Recovered, "the second start did more than the first:\n%s", diff)
	}
}

// disturbed is what was done to a run, for messages.
type disturbed struct {
	history *history
	point   Point
	fate    Fate
	crash   string
}

func (d disturbed) String() string {
	return fmt.Sprintf("%s: when %q%s, and %s", d.history.name, d.point, fateText(d.fate), d.crash)
}

// sweeper runs all disturbances of one history.
type sweeper struct {
	t      *testing.T
	h      *history
	want   string
	runs   int
	errors int
}

// check compares a run with the undisturbed one. It gives up after a few errors.
func (s *sweeper) check(r *rig, d disturbed) {
	s.t.Helper()
	s.runs++
	for _, v := range r.oracle.Violations() {
		s.errors++
		s.t.Errorf("%s\n%s", d, v)
	}
	if diff := cmp.Diff(s.want, outcome(r.w)); diff != "" {
		s.errors++
		s.t.Errorf("%s\nthe outcome is not the undisturbed one (-want +got):\n%s", d, diff)
	}
	if s.errors > 4 {
		s.t.Fatal("and more")
	}
}

// nestedMax bounds at how many points of a recovery it is stopped in turn.
const nestedMax = 24

// nested plays the history with one disturbance, and then stops the machine once more, while the
// process recovers: at every operation that changes something, in turn.
func (s *sweeper) nested(n int, fate Fate) {
	for m := range nestedMax {
		r := newRig(s.t)
		s.h.before(r)
		r.sweep(s.h, n, fate)
		first := r.met[n]
		r.met, r.fired, r.changes, r.armed = nil, false, true, true
		r.n, r.fate = m, []Fate{StopBefore, StopAfter}[m%2]
		_ = r.recover(crashes[1+n%2])
		r.armed = false
		if !r.fired {
			return
		}
		r.restart(crashes[1+m%5])
		s.settle(r)
		again := fmt.Sprintf("then, at %q, it stops again", r.met[m])
		s.check(r, disturbed{s.h, first, fate, again})
	}
}

// recover starts again if need be, and lets the process do what it then has to do.
func (r *rig) recover(c crash) error {
	if r.w.Ended() != nil {
		c.crash(r.w)
		if err := r.w.Start(); err != nil {
			return err
		}
	}
	if err := r.w.Run(); err != nil {
		return err
	}
	r.w.Advance(settleRounds * time.Minute)
	return r.w.Run()
}

// run plays the history with one disturbance, until all is quiet again. It reports false where the
// point was never reached.
func (s *sweeper) run(n int, fate Fate, c crash) bool {
	r := newRig(s.t)
	s.h.before(r)
	r.sweep(s.h, n, fate)
	if !r.fired {
		return false
	}
	if r.w.Ended() != nil {
		r.restart(c)
	}
	s.settle(r)
	s.check(r, disturbed{s.h, r.met[n], fate, c.name})
	return true
}

// fates are what is tried at a point. What only reads has no effect: to stop after it is to stop
// before what follows, and to say that it failed is to fail.
func fates(p Point) []Fate {
	if p.Changes() {
		return []Fate{Fail, FailAfter, StopBefore, StopAfter}
	}
	return []Fate{Fail, StopBefore}
}

// crashesAfter are the kinds of stop that make a difference. A process that an error ends stops by
// itself, but an fsync that failed ends the trust in that file, until the machine is started anew.
func crashesAfter(p Point, fate Fate) []crash {
	switch {
	case fate == Fail && p.Kind == string(vfs.OpSync):
		return crashes[1:3]
	case fate == Fail || fate == FailAfter || !p.Changes():
		return crashes[:1]
	default:
		return crashes
	}
}

// settle lets the world come to rest, also where what failed is tried again much later.
func (s *sweeper) settle(r *rig) {
	r.settle()
	if s.h.wait > 0 {
		r.w.Advance(s.h.wait)
		r.settle()
	}
}

func (s *sweeper) sweep() {
	r := newRig(s.t)
	s.h.before(r)
	r.sweep(s.h, -1, Proceed)
	s.settle(r)
	s.want = outcome(r.w)
	s.check(r, disturbed{history: s.h, crash: "nothing is disturbed"})
	if strings.Contains(s.want, strayLeft) {
		s.t.Fatalf("%s: it leaves what nothing names:\n%s", s.h.name, s.want)
	}
	changes := 0
	for _, p := range r.met {
		if p.Changes() {
			changes++
		}
	}
	if changes < s.h.steps {
		s.t.Fatalf("%s: %d operations change something, fewer than its %d sub-steps: %v", s.h.name,
			changes, s.h.steps, r.met)
	}
	for n, p := range r.met {
		for _, fate := range fates(p) {
			for _, c := range crashesAfter(p, fate) {
				if fired := s.run(n, fate, c); !fired {
					s.t.Fatalf("%s: %s was not met again", s.h.name, p)
				}
			}
		}
	}
	once := s.runs
	for n, p := range r.met {
		if p.Changes() && n%(s.h.sparse+1) == 0 {
			s.nested(n, StopAfter)
			s.nested(n, Fail)
		}
	}
	s.t.Logf("%s: %d points, of which %d change something; %d runs with one stop or failure, "+
		"%d with two", s.h.name, len(r.met), changes, once, s.runs-once)
}

func is[E engine.Effect](f engine.Effect) bool {
	_, ok := f.(E)
	return ok
}

func (r *rig) start() { r.t.Helper(); r.do(r.w.Start()) }
func (r *rig) run()   { r.t.Helper(); r.do(r.w.Run()) }

// copied starts a process and lets it copy so many segments.
func (r *rig) copied(segments int) {
	r.start()
	r.do(r.w.Append(orders, segments))
	r.run()
}

// fails makes the next upload whose key has the part fail, with or without effect.
func (r *rig) fails(part string, applied bool) {
	r.w.Bucket.SetHook(failOnce(part, fault.Effect{Err: errInjected, Applied: applied}))
}

// histories are one for each kind of effect, and more where what it does depends on what it finds.
var histories = []history{
	{name: "open", steps: 1, effect: is[engine.Open], before: func(r *rig) {
		r.start()
		r.do(r.w.Append(orders, 1))
	}},
	{name: "copy", steps: 4, effect: is[engine.Copy], before: func(r *rig) {
		r.start()
		r.do(r.w.Append(orders, 2))
	}},
	{name: "copy of a segment with two files", steps: 5, effect: is[engine.Copy],
		before: func(r *rig) {
			r.start()
			r.do(r.w.Append(orders, 1))
			r.do(r.w.WriteCompanion(orders, 0, []byte("index")))
		}},
	{name: "copy that finds the same content", steps: 1, effect: is[engine.Copy],
		before: func(r *rig) {
			r.copied(1)
			r.do(r.w.Write(orders, 0, Content(orders, 0, 1)))
		}},
	{name: "copy that finds other content", steps: 4, effect: is[engine.Copy],
		before: func(r *rig) {
			r.copied(1)
			r.do(r.w.Write(orders, 0, Content(orders, 0, 2)))
		}},
	{name: "resolve an attempt whose entry is there", steps: 1, effect: is[engine.Resolve],
		before: func(r *rig) {
			r.fails("manifest", true)
			r.copied(1)
			r.w.Advance(time.Minute)
		}},
	{name: "resolve an attempt whose files are there", steps: 2, effect: is[engine.Resolve],
		before: func(r *rig) {
			r.fails("manifest", false)
			r.copied(1)
			r.w.Advance(time.Minute)
		}},
	{name: "resolve an attempt that left nothing", steps: 1, effect: is[engine.Resolve],
		before: func(r *rig) {
			r.fails(".log", false)
			r.copied(1)
			r.w.Advance(time.Minute)
		}},
	{name: "record a hole and publish it", steps: 3, effect: is[engine.RecordHole],
		before: func(r *rig) {
			r.copied(1)
			r.do(r.w.Append(orders, 2))
			r.do(r.w.Remove(orders, 10))
		}},
	{name: "publish a hole", steps: 2, effect: is[engine.Publish], before: func(r *rig) {
		r.copied(1)
		r.do(r.w.Append(orders, 2))
		r.do(r.w.Remove(orders, 10))
		r.w.Bucket.SetHook(func(op fault.Op) fault.Effect {
			if strings.Contains(op.Key, "manifest") {
				return fault.Effect{Err: errInjected}
			}
			return fault.Effect{}
		})
		r.run()
		r.w.Bucket.SetHook(nil)
		r.w.Advance(time.Minute)
	}},
	{name: "checkpoint", steps: 2, effect: is[engine.Checkpoint], before: func(r *rig) {
		r.oracle.blind = true // it has looked at copies elsewhere
		r.copied(tier.CheckpointRadix - 1)
		r.oracle.blind = false
		r.do(r.w.Append(orders, 1))
	}},
	{name: "pause a table", steps: 1, effect: is[engine.Pause], before: func(r *rig) {
		r.w.Config.Brake.MaxSegments = 1
		r.copied(3)
		r.w.Advance(2 * time.Hour)
	}},
	{name: "delete a segment", steps: 7, effect: is[engine.Delete], before: func(r *rig) {
		r.copied(1)
		r.w.Advance(2 * time.Hour)
	}},
	{name: "delete three segments", steps: 21, effect: is[engine.Delete], sparse: 12,
		before: func(r *rig) {
			r.copied(3)
			r.w.Advance(2 * time.Hour)
		}},
	{name: "delete a segment with two files", steps: 8, effect: is[engine.Delete], sparse: 2,
		before: func(r *rig) {
			r.start()
			r.do(r.w.Append(orders, 1))
			r.do(r.w.WriteCompanion(orders, 0, []byte("index")))
			r.run()
			r.w.Advance(2 * time.Hour)
		}},
	{name: "delete a segment that was touched", steps: 8, effect: is[engine.Delete], sparse: 2,
		before: func(r *rig) {
			r.copied(1)
			r.w.Advance(2 * time.Hour)
		},
		meanwhile: func(r *rig) { r.do(r.w.Write(orders, 0, Content(orders, 0, 1))) }},
	{name: "delete a segment that was changed", steps: 0, effect: is[engine.Delete],
		before: func(r *rig) {
			r.copied(1)
			r.w.Advance(2 * time.Hour)
		},
		meanwhile: func(r *rig) { r.do(r.w.Write(orders, 0, Content(orders, 0, 2))) }},
	{name: "start after a crash before a deletion was decided", steps: 2,
		before: crashedAt("pending", StopAfter)},
	{name: "start after a crash when a deletion was decided", steps: 3,
		before: crashedAt("dead", StopAfter)},
}

// crashedAt leaves a world whose machine stopped in the middle of a deletion, with everything kept
// that it wrote: at the rename to the name that ends so.
func crashedAt(suffix string, fate Fate) func(*rig) {
	return func(r *rig) {
		r.copied(2)
		r.w.Advance(2 * time.Hour)
		r.w.Watch = func(p Point) Fate {
			if p.Kind == "rename" && p.To != "" && p.To[len(p.To)-len(suffix):] == suffix {
				return fate
			}
			return Proceed
		}
		if err := r.w.Run(); err == nil {
			r.t.Fatal("the machine did not stop")
		}
		r.w.Watch = r.watch
		r.w.Crash(func(string, int) int { return 1 })
	}
}

func failOnce(part string, e fault.Effect) fault.Hook {
	spent := false
	return func(op fault.Op) fault.Effect {
		if spent || op.Kind != fault.OpUpload || !strings.Contains(op.Key, part) {
			return fault.Effect{}
		}
		spent = true
		return e
	}
}

// TestEverySubStep sweeps every history.
func TestEverySubStep(t *testing.T) {
	t.Parallel()
	for i := range histories {
		h := &histories[i]
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			(&sweeper{t: t, h: h}).sweep()
		})
	}
}
