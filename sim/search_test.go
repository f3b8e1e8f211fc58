package sim

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	thanos "github.com/thanos-io/objstore"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/engine"
)

// TestStateTellsWorldsApart: a search does not go on from a state that it met before, so whatever
// can still make a difference has to be part of it.
func TestStateTellsWorldsApart(t *testing.T) {
	t.Parallel()
	nothing := func(*rig) {}
	unsynced := func(r *rig) {
		f, err := r.w.Disk.Create(SegmentPath(orders, 100))
		r.do(err)
		r.do(f.Close())
	}
	for name, c := range map[string]struct {
		one, other func(*rig)
		same       bool
	}{
		"nothing happens": {nothing, nothing, true},
		"an object has other bytes": {one: nothing, other: func(r *rig) {
			r.w.Objects.Put(r.object(0), []byte("other"))
		}},
		"an upload is still to come": {one: nothing, other: func(r *rig) {
			r.w.Bucket.SetHook(func(fault.Op) fault.Effect { return fault.Effect{Late: true} })
			body := thanos.NopCloserWithSize(strings.NewReader("x"))
			r.do(r.w.Bucket.Upload(t.Context(), "late", body))
		}},
		"a file is not synced": {one: unsynced, other: func(r *rig) {
			unsynced(r)
			r.do(r.w.Disk.Sync("wal/orders/0"))
		}},
		"a file is younger": {one: func(r *rig) {
			r.do(r.w.Write(orders, 0, Content(orders, 0, 1)))
			r.w.Advance(time.Minute)
		}, other: func(r *rig) {
			r.w.Advance(time.Minute)
			r.do(r.w.Write(orders, 0, Content(orders, 0, 1)))
		}},
		"a scrub found a copy bad": {one: nothing, other: func(r *rig) {
			r.w.bad = append(r.w.bad, badCopy{orders, 0, "other bytes"})
		}},
		"the engine knows more": {one: nothing, other: func(r *rig) {
			r.w.step(engine.Paused{Reason: nil})
			r.w.process.engine.Step(r.w.Now+1, engine.Tick{})
		}},
		"the oracle knows more": {one: nothing, other: func(r *rig) {
			r.oracle.floor[orders]++
		}},
		"the owner of the log wrote more than is left": {one: nothing, other: func(r *rig) {
			r.oracle.wrote(orders, 0, "0.log", []byte("was"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var states []uint64
			for _, do := range []func(*rig){c.one, c.other} {
				r := newRig(t)
				r.copied(1)
				do(r)
				h := &play{w: r.w, o: r.oracle}
				states = append(states, h.state(newDigester()))
			}
			if same := states[0] == states[1]; same != c.same {
				t.Errorf("they are the same state: %t", same)
			}
		})
	}
}

// everywhere is the chooser of a search that leaves nothing out: it makes every combination of
// choices, one a history, depth first.
type everywhere struct {
	path []branch
	at   int
}

type branch struct{ pick, of int }

// Choose implements choose.Chooser.
func (e *everywhere) Choose(label string, of int) int {
	if slices.Contains(fixedLabels, label) {
		return (&course{begun: true}).Choose(label, of)
	}
	if e.at == len(e.path) {
		e.path = append(e.path, branch{0, of})
	}
	e.at++
	return e.path[e.at-1].pick
}

// next goes on to the next combination; false if there is none.
func (e *everywhere) next() bool {
	e.path = e.path[:e.at] // a history that ended early asked for no more
	for e.at = 0; len(e.path) > 0; e.path = e.path[:len(e.path)-1] {
		last := &e.path[len(e.path)-1]
		if last.pick++; last.pick < last.of {
			return true
		}
	}
	return false
}

// all makes every history within the bounds from its beginning, and gives the states that it comes
// to after steps, and in the end.
func all(t *testing.T, p *Project, b Bounds) (states, ends map[uint64]bool) {
	t.Helper()
	one := p.Search(b).p
	states, ends = map[uint64]bool{}, map[uint64]bool{}
	d, c := newDigester(), &everywhere{}
	for more := true; more; more = c.next() {
		h := one.play(c, Options{Bounds: &b})
		if !h.until(func() {
			h.begin()
			s := h.stepper()
			for h.out.Steps < b.Actions && s.step() {
			}
			states[h.state(d)] = true
			h.heal()
			h.judge()
			ends[h.state(d)] = true
		}) {
			t.Fatal(h.out.Violation)
		}
		h.w.Close()
	}
	return states, ends
}

// work has so many work at a search until more says that it is enough.
func work(s *Search, workers int, more func(*Explored) bool) *Explored {
	for s.Next() {
		var wait sync.WaitGroup
		for range workers {
			wait.Go(func() { s.Work(more) })
		}
		wait.Wait()
	}
	return s.Explored()
}

func always(*Explored) bool { return true }

// TestSearchLeavesNothingOut: a search that goes on from each state once, from an image, and leaves
// out what was there, comes to the same states, and to the same ends, as every history by itself.
func TestSearchLeavesNothingOut(t *testing.T) {
	t.Parallel()
	both := []bool{false, true}
	for name, c := range map[string]struct {
		b       Bounds
		replays []bool
	}{
		"without disturbances": {Bounds{Segments: 1, Actions: 2}, both},
		"three actions": {Bounds{Segments: 1, Actions: 3,
			acts: []string{"owner: rolls", "process: runs"}}, both},
		"one disturbance": {Bounds{Segments: 1, Actions: 1, Disturbances: 1}, both},
		"two disturbances": {Bounds{Segments: 1, Actions: 1, Disturbances: 2,
			acts: []string{"process: runs"}}, both[:1]},
		"after a disturbance": {Bounds{Segments: 1, Actions: 2, Disturbances: 1,
			acts: []string{"owner: rolls", "process: runs"}}, both},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Builtin()
			if err != nil {
				t.Fatal(err)
			}
			states, ends := all(t, p, c.b)
			for _, replays := range c.replays {
				s := p.Search(c.b)
				s.replays, s.everyWait, s.last = replays, true, map[uint64]bool{}
				if e := work(s, 1, always); e.Failure != nil {
					t.Fatal(e.Failure.Outcome.Violation)
				}
				if !maps.Equal(s.known, states) || !maps.Equal(s.last, ends) {
					t.Errorf("made again %t: %d states and %d ends, and one by one %d and %d", replays,
						len(s.known), len(s.last), len(states), len(ends))
				}
			}
		})
	}
}

// TestSearchWaitsAsLongAsItMust: of the times after which the process does the same, a search goes
// on from the shortest alone, and with tierd's own settings and policies all that the process does
// after any of them it does there, too. Others may ask for a time that only two of them add up to.
func TestSearchWaitsAsLongAsItMust(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]Bounds{
		"three actions": {Segments: 2, Actions: 3},
		"after a disturbance": {Segments: 1, Actions: 2, Disturbances: 1,
			acts: []string{"process: runs", "time: passes, and the process runs"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Builtin()
			if err != nil {
				t.Fatal(err)
			}
			var did [2]map[uint64]bool
			var states [2]int
			for i, everyWait := range []bool{true, false} {
				s := p.Search(b)
				s.everyWait, s.did = everyWait, map[uint64]bool{}
				if e := work(s, 1, always); e.Failure != nil {
					t.Fatal(e.Failure.Outcome.Violation)
				}
				did[i], states[i] = s.did, len(s.known)
			}
			if !maps.Equal(did[0], did[1]) {
				t.Errorf("the process does %d things, and after any time %d", len(did[1]), len(did[0]))
			}
			if states[1] >= states[0] {
				t.Errorf("%d states, and after any time %d", states[1], states[0])
			}
		})
	}
}

// TestSearchFindsTheSameWhoeverWorks: the numbers, and the history of a failure, are the same
// however many work at it, and the history does it again.
func TestSearchFindsTheSameWhoeverWorks(t *testing.T) {
	t.Parallel()
	never, err := rego.LoadPromises([]rego.Module{{Path: "never.rego", Source: []byte(
		"package tierd.sim\n\nviolation contains \"it goes\" if input.segment.base > 0\n")}},
		nil, rego.Options{Timeout: rego.NoTimeout})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		promises *rego.Promises
		fails    bool
	}{"nothing fails": {}, "a property fails": {never, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Builtin()
			if err != nil {
				t.Fatal(err)
			}
			p.Promises = c.promises
			var first *Explored
			for workers := 1; workers <= 3; workers++ {
				s := p.Search(Bounds{Segments: 1, Actions: 2, Disturbances: 1,
					acts: []string{"owner: rolls", "process: runs"}})
				e := work(s, workers, always)
				if first == nil {
					first = e
				}
				if !c.fails {
					if diff := cmp.Diff(first, e); diff != "" {
						t.Errorf("%d workers: %s", workers, diff)
					}
					continue
				}
				if e.Failure == nil {
					t.Fatalf("%d workers find nothing", workers)
				}
				if diff := cmp.Diff(first.Failure.Scenario, e.Failure.Scenario); diff != "" {
					t.Errorf("%d workers: %s", workers, diff)
				}
				again, err := p.Replay(e.Failure.Scenario)
				if err != nil || again.Violation == nil || *again.Violation != *e.Failure.Outcome.Violation {
					t.Errorf("%v, %v; want %v", again.Violation, err, e.Failure.Outcome.Violation)
				}
			}
		})
	}
}

// TestSearchStops: when more says so.
func TestSearchStops(t *testing.T) {
	t.Parallel()
	p, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	e := work(p.Search(Bounds{Segments: 1, Actions: 2}), 1,
		func(e *Explored) bool { return e.Histories < 5 })
	if !e.Stopped || e.Histories != 5 {
		t.Errorf("it stopped: %t, after %d histories", e.Stopped, e.Histories)
	}
}

// TestSearchGoesAsDeepAsItSays: each further action meets new states.
func TestSearchGoesAsDeepAsItSays(t *testing.T) {
	t.Parallel()
	p, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	before := 0
	for actions := 1; actions <= 3; actions++ {
		e := work(p.Search(Bounds{Segments: 1, Actions: actions}), 1, always)
		if e.Failure != nil || e.States < 2*before {
			t.Errorf("%v: %d states with %d actions, %d with one less", e.Failure, e.States, actions,
				before)
		}
		before = e.States
	}
}

// TestApart: of spans that are near each other a search tries the longest, and all those of the
// policies.
func TestApart(t *testing.T) {
	t.Parallel()
	p, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	p.Spans = []time.Duration{9 * time.Hour, 36 * time.Hour}
	var got []string
	for _, s := range (&Bounds{}).apart(p.spans()) {
		got = append(got, s.name)
	}
	want := []string{"a minute", "remote_delete_grace", "an hour", "9 hours",
		"36h0m0s, of the policies", "the TTL of orders"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSearchBesideABroker: the segments that the log begins with are the broker's own.
func TestSearchBesideABroker(t *testing.T) {
	t.Parallel()
	for segments := 1; segments <= 3; segments++ {
		p := kafkaProject(t)
		e := work(p.Search(Bounds{Segments: segments, Actions: 2, acts: []string{"owner: rolls",
			"process: runs"}}), 1, always)
		if e.Failure != nil || e.Deletions == 0 {
			t.Errorf("%d segments: %d deletions, %+v", segments, e.Deletions, e.Failure)
		}
		out := p.Run(&script{t: t}, Options{Bounds: &Bounds{Segments: segments, Actions: 1}, Trace: true})
		if n := len(out.Snapshots[0].Logs[0].Local); n != segments+1 {
			t.Errorf("%d segments: %d files", segments, n)
		}
	}
}
