package sim

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/tierd/tierd/internal/rewind"
	"github.com/tierd/tierd/sim/choose"
)

// Search is an exhaustive search. It goes by the number of actions: on each state that was met
// first after so many it tries every further action, with every disturbance that is left. What it
// finds does not depend on how many work at it.
//
//	for s := p.Search(b); s.Next(); {
//		// one or several at a time: s.Work(more)
//	}
type Search struct {
	p *Project // of one log
	b Bounds

	remembered *remembered // of the policies
	// replays is set where a history is made again from the beginning for each way to go on from it:
	// an image does not reach what is in the memory of a plugin.
	replays bool
	// everyWait is set, for a test, where those are gone on from, too, that differ from another in
	// nothing but how long was waited.
	everyWait bool

	level int             // how many actions the states have that are gone on from
	from  []node          // these
	known map[uint64]bool // the states of the levels before

	mu       sync.Mutex // guards what follows
	at       int        // of from: the next one
	kinds    int        // of actions, in the layout of the log
	reached  []reached
	cameTo   map[uint64]uint64 // of the states whose end was judged in this level: what to; 0 at first
	settled  map[uint64]bool   // what ends came to, in any level
	last     map[uint64]bool   // their last states, for a test; nil for nobody
	did      map[uint64]bool   // in an action by the process, for a test; nil for nobody
	failures []failedEnd
	out      Explored
}

// node is a state, by the choices that lead to it.
type node struct {
	parent *node   // nil of the beginning
	picks  []uint8 // of one action
}

// way is what leads from the beginning, which is none of it, to the state.
func (n *node) way() []*node {
	if n.parent == nil {
		return nil
	}
	return append(n.parent.way(), n)
}

// choices are all those from the beginning.
func (n *node) choices() (out []uint8) {
	for _, n := range n.way() {
		out = append(out, n.picks...)
	}
	return out
}

// reached is a state that an action led to.
type reached struct {
	job, seq int // its place in the order in which one alone would find it
	state    uint64
	node     node
	failed   bool // a promise was broken on the way
}

func (r reached) compare(o reached) int {
	return cmp.Or(cmp.Compare(r.job, o.job), cmp.Compare(r.seq, o.seq))
}

// failedEnd is a state whose end broke a promise.
type failedEnd struct {
	state uint64
	picks []uint8 // of its end
}

// Search begins a search of every history within the bounds.
func (p *Project) Search(b Bounds) *Search {
	q := *p
	q.Logs = p.Logs[:1]
	return &Search{p: &q, b: b, level: -1, remembered: newRemembered(),
		replays: p.Config.Plugins != nil, known: map[uint64]bool{}, settled: map[uint64]bool{},
		out: Explored{Rules: make([]RuleSeen, len(p.Config.Policies.Rules()))}}
}

// Explored is what a search came to.
type Explored struct {
	Histories int
	States    int        // different ones
	Deletions int        // of local segments, in all histories
	Rules     []RuleSeen // as of an Outcome, in all histories
	Failure   *Failure
	Stopped   bool // before it was through
}

// Explored gives what the search came to so far. Nobody works then.
func (s *Search) Explored() *Explored { return &s.out }

// String is what the search is exhaustive within. Nobody works then.
func (s *Search) String() string { return s.b.within(s.kinds) }

// Next goes on to the next number of actions; false where the search is over. Nobody works then.
func (s *Search) Next() bool {
	if s.level < 0 {
		s.from = []node{{}}
	} else {
		s.merge()
	}
	s.level++
	s.at, s.reached, s.cameTo = 0, nil, map[uint64]uint64{}
	return s.out.Failure == nil && !s.out.Stopped && s.level < s.b.Actions && len(s.from) > 0
}

// merge takes over what was reached in a level.
func (s *Search) merge() {
	slices.SortFunc(s.reached, reached.compare)
	if s.broken() {
		s.out.Failure = s.failure()
		return
	}
	s.from = nil
	for _, r := range s.reached {
		if !s.known[r.state] {
			s.known[r.state] = true
			s.from = append(s.from, r.node)
		}
	}
	s.out.States = len(s.known)
}

func (s *Search) broken() bool {
	return len(s.failures) > 0 || slices.ContainsFunc(s.reached, func(r reached) bool {
		return r.failed
	})
}

// failure is the first one that one alone would find, made again from the beginning.
func (s *Search) failure() *Failure {
	for _, r := range s.reached { // in order
		picks := r.node.choices()
		if !r.failed {
			i := slices.IndexFunc(s.failures, func(f failedEnd) bool { return s.endsAs(r.state, &f) })
			if i < 0 {
				continue
			}
			if len(r.node.way()) < s.b.Actions {
				picks = append(picks, 0) // the end
			}
			picks = append(picks, s.failures[i].picks...)
		}
		c := &course{}
		c.begin(picks)
		made := &choose.Recorder{Chooser: c}
		out := s.p.Run(made, Options{Bounds: &s.b})
		if out.Violation == nil {
			panic(fmt.Sprintf("sim: a search found what its own history does not do again: %v", made.Made))
		}
		return &Failure{Outcome: out, Scenario: &choose.Scenario{
			Property: string(out.Violation.Property), Digest: s.p.Digest,
			Segment: out.Violation.Segment, Layout: s.p.layout(), Choices: made.Made,
			Exhaust: []int{s.b.Segments, s.b.Actions, s.b.Disturbances}}}
	}
	panic("sim: a search has lost what it found")
}

// endsAs reports whether the end of a state is the one that failed.
func (s *Search) endsAs(state uint64, f *failedEnd) bool {
	came := s.cameTo[f.state]
	return state == f.state || len(f.picks) == 0 && came != 0 && s.cameTo[state] == came
}

// reach takes down a state. It reports whether its end is still to be judged, by who asks.
func (s *Search) reach(r reached) bool {
	if s.known[r.state] && !r.failed {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reached = append(s.reached, r)
	if r.failed {
		return false
	}
	if _, judged := s.cameTo[r.state]; judged {
		return false
	}
	s.cameTo[r.state] = 0
	return true
}

// fails takes down that an end broke a promise.
func (s *Search) fails(f failedEnd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, f)
}

// hears takes down what the process did in an action.
func (s *Search) hears(did uint64) {
	if s.did == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did[did] = true
}

// settles takes down what the end of a state came to. It reports whether that is new.
func (s *Search) settles(state, came uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cameTo[state] = came
	met := s.settled[came]
	s.settled[came] = true
	return !met
}

// job gives out a state to go on from; false where there is none, or the search is over.
func (s *Search) job() (i int, from *node, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out.Stopped || s.at == len(s.from) || s.broken() {
		return 0, nil, false
	}
	i = s.at
	s.at++
	return i, &s.from[i], true
}

func (s *Search) tries(kinds int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds = kinds
}

// Work tries what can follow on the states of this level, until more says that it is enough, or
// nothing is left. more is asked between histories, by one at a time.
func (s *Search) Work(more func(*Explored) bool) {
	w := &searcher{s: s, more: more, course: &course{}, digest: newDigester(),
		camera: rewind.NewCamera(rewind.Without{Types: opaque})}
	defer w.close()
	for {
		job, from, ok := s.job()
		if !ok {
			return
		}
		w.expand(job, from)
	}
}
