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

	answers *answers // of the policies
	// replays is set where a history is made again from the beginning for each way to go on from it:
	// an image does not reach what is in the memory of a plugin.
	replays bool

	level int             // how many actions the states have that are gone on from
	from  []node          // these
	known map[uint64]bool // the states of the levels before

	mu       sync.Mutex // guards what follows
	at       int        // of from: the next one
	kinds    int        // of actions, in the layout of the log
	reached  []reached
	ends     map[uint64]uint64 // of the states whose end was judged in this level: what it came to
	settled  map[uint64]bool   // what ends came to, in any level
	ended    map[uint64]bool   // where they ended, for a test; nil for nobody
	failures []failedEnd
	out      Explored
}

// node is a state, by the choices that lead to it.
type node struct {
	parent *node   // nil of the beginning
	picks  []uint8 // of one action
}

// path is all choices from the beginning, by action.
func (n *node) path() [][]uint8 {
	if n.parent == nil {
		return nil
	}
	return append(n.parent.path(), n.picks)
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
	return &Search{p: &q, b: b, level: -1, answers: newAnswers(), replays: p.Config.Plugins != nil,
		known: map[uint64]bool{}, settled: map[uint64]bool{},
		out: Explored{Rules: make([]RuleSeen, len(p.Config.Policies.Rules()))}}
}

// Explored is what the search came to so far. Nobody works then.
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
	s.at, s.reached, s.ends = 0, nil, map[uint64]uint64{}
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
		picks := slices.Concat(r.node.path()...)
		if !r.failed {
			i := slices.IndexFunc(s.failures, func(f failedEnd) bool { return s.endsAs(r.state, &f) })
			if i < 0 {
				continue
			}
			if len(r.node.path()) < s.b.Actions {
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
	came := s.ends[f.state]
	return state == f.state || len(f.picks) == 0 && came != 0 && s.ends[state] == came
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
	if _, judged := s.ends[r.state]; judged {
		return false
	}
	s.ends[r.state] = 0
	return true
}

// fails takes down that an end broke a promise.
func (s *Search) fails(f failedEnd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, f)
}

// settles takes down what the end of a state came to. It reports whether that is new.
func (s *Search) settles(state, came uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends[state] = came
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
	for {
		job, from, ok := s.job()
		if !ok {
			return
		}
		w.expand(job, from)
	}
}

// searcher is one who works at a search.
type searcher struct {
	s      *Search
	more   func(*Explored) bool
	course *course
	digest *rewind.Digester
	camera *rewind.Camera

	job, seq int
	from     *node
	h        *play
	steps    *stepper
	image    *rewind.Image // of the history at from; nil where it is made again each time
	dirty    bool          // it is somewhere else now
	// left is what the process left where it was stopped on the way from from, by the choices that
	// led there first.
	left   map[uint64]string
	again  bool   // what was done once is done again
	ending uint64 // the state whose end is being judged; 0 where it is not its first one
	cut    bool   // the history was ended, since another one was there and went on
}

// expand tries every action in a state, with all that can disturb it.
func (w *searcher) expand(job int, from *node) {
	w.job, w.seq, w.from = job, 0, from
	w.left = map[uint64]string{}
	w.begin()
	defer func() { w.h.w.Close() }()
	w.s.tries(len(w.steps.acts))
	w.image, w.dirty = nil, false
	if !w.s.replays {
		w.image = w.camera.Take(w.h)
	}
	goesOn := true
	if from.parent == nil {
		goesOn = w.try(nil, func() bool { return w.comesTo(true) })
	}
	for a := 0; a < len(w.steps.acts) && goesOn; a++ {
		goesOn = w.try([]uint8{uint8(a + 1)}, w.act)
	}
}

// begin makes the history that leads to the state.
func (w *searcher) begin() {
	path := w.from.path()
	w.course.begun = false
	w.course.begin(slices.Concat(path...))
	w.again = true
	defer func() { w.again = false }()
	w.h = w.s.p.play(w.course, Options{Bounds: &w.s.b, search: w})
	if !w.h.until(func() {
		w.h.begin()
		w.steps = w.h.stepper()
		for range path {
			w.steps.step()
		}
	}) {
		panic("sim: what was made once is not made again")
	}
}

// try does something for each of the ways in which its choices can come out that begin with these,
// each time from the image. It ends where that reports false, and reports it.
func (w *searcher) try(picks []uint8, do func() bool) bool {
	for open := [][]uint8{picks}; len(open) > 0; {
		picks = open[len(open)-1]
		open = open[:len(open)-1]
		w.back()
		w.course.begin(picks)
		if !do() {
			return false
		}
		open = w.course.others(open, len(picks))
	}
	return true
}

// back puts the history back to where it is gone on from: by its image, or by making it again.
func (w *searcher) back() {
	switch {
	case !w.dirty:
	case w.image != nil:
		w.image.Restore()
	default:
		w.h.w.Close()
		w.begin()
	}
	w.dirty = true
}

// act makes one action, and reports whether the search goes on.
func (w *searcher) act() bool {
	w.cut = false
	through := w.h.until(func() { w.steps.step() })
	return w.comesTo(through)
}

// comesTo takes down what an action came to, judges its end where that is not known, and reports
// whether the search goes on.
func (w *searcher) comesTo(through bool) bool {
	w.seq++
	if w.cut {
		return w.counts()
	}
	h, made := w.h, w.course.clone()
	r := reached{job: w.job, seq: w.seq, failed: !through, node: node{w.from, made.picks}}
	if len(made.picks) == 0 {
		r.node = *w.from
	}
	if through {
		r.state = h.state(w.digest)
	}
	if w.s.reach(r) {
		w.ends(&r)
	}
	w.course.way = made
	return w.counts() && !r.failed
}

// ends judges the end of a state: all that time brings where nothing fails any more.
func (w *searcher) ends(r *reached) {
	for open := [][]uint8{nil}; ; {
		picks := open[len(open)-1]
		w.ending, w.cut = 0, false
		if len(picks) == 0 {
			w.ending = r.state
		}
		w.course.begin(picks)
		if !w.h.until(func() { w.h.heal(); w.h.judge() }) && !w.cut {
			w.s.fails(failedEnd{r.state, slices.Clone(w.course.picks)})
			return
		}
		if w.s.ended != nil && !w.cut {
			w.s.ended[w.h.state(w.digest)] = true
		}
		if open = w.course.others(open[:len(open)-1], len(picks)); len(open) == 0 {
			return
		}
		w.back()
		w.course.begin(r.node.picks)
		w.again = true
		w.h.until(func() { w.steps.step() })
		w.again = false
	}
}

// counts adds a history, and reports whether the search goes on.
func (w *searcher) counts() bool {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	out := &w.s.out
	out.Histories++
	out.Deletions += w.h.out.Deletions
	out.Deepest = max(out.Deepest, w.h.out.Steps)
	for i, r := range w.h.out.Rules {
		out.Rules[i].True += r.True
		out.Rules[i].False += r.False
	}
	if !w.more(out) {
		out.Stopped = true
	}
	return !out.Stopped
}

// answers are those of the policies that are known.
func (w *searcher) answers() *answers {
	if w == nil {
		return nil
	}
	return w.s.answers
}

// afterStop is told when the process has stopped: where it left the same before, the history goes
// on no more.
func (w *searcher) afterStop(h *play) {
	if w == nil || w.again || h.healing {
		return
	}
	left, by := h.remnants(w.digest), string(w.course.picks[:w.course.at])
	if before, met := w.left[left]; met && before != by {
		w.ended()
	}
	w.left[left] = by
}

// settled is told when an end has come so far that all is done which can be done at once.
func (w *searcher) settled(h *play) {
	if w != nil && w.ending != 0 && !w.s.settles(w.ending, h.state(w.digest)) {
		w.ended()
	}
}

func (w *searcher) ended() {
	w.cut = true
	panic(ended{})
}
