package sim

import (
	"slices"

	"github.com/tierd/tierd/internal/rewind"
)

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
		w.judgeEnd(&r)
	}
	w.course.way = made
	return w.counts() && !r.failed
}

// judgeEnd judges the end of a state: all that time brings where nothing fails any more.
func (w *searcher) judgeEnd(r *reached) {
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
		if w.s.last != nil && !w.cut {
			w.s.last[w.h.state(w.digest)] = true
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
	for i, r := range w.h.out.Rules {
		out.Rules[i].True += r.True
		out.Rules[i].False += r.False
	}
	if !w.more(out) {
		out.Stopped = true
	}
	return !out.Stopped
}

// remembered is what the policies said so far.
func (w *searcher) remembered() *remembered {
	if w == nil {
		return nil
	}
	return w.s.remembered
}

// afterStop is told when the process has stopped: where it left the same before, the history goes
// on no more.
func (w *searcher) afterStop(h *play) {
	if w == nil || w.again || h.healing {
		return
	}
	left, by := h.remnants(w.digest), string(w.course.picks[:w.course.at])
	if before, met := w.left[left]; met && before != by {
		w.breakOff()
	}
	w.left[left] = by
}

// afterSettling is told when an end has come so far that all is done which can be done at once.
func (w *searcher) afterSettling(h *play) {
	if w != nil && w.ending != 0 && !w.s.settles(w.ending, h.state(w.digest)) {
		w.breakOff()
	}
}

// breakOff ends the history here.
func (w *searcher) breakOff() {
	w.cut = true
	panic(ended{})
}
