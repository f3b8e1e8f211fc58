package sim

import (
	"bytes"
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
	h        *play // nil until the first state
	steps    *stepper
	// way leads from the beginning to from. What the next state has in common with this one is not
	// made again.
	way   []place
	dirty bool // the history is somewhere else than at from
	// stop is where the process stopped last: the ways in which it can stop there are tried one after
	// the other, and none of them makes again what was before.
	stop stop
	// left is what the process left where it was stopped on the way from from, by the choices that
	// led there first.
	left map[uint64]string
	// waits are hashes of what the process did after the times, undisturbed, that passed from here.
	waits  map[uint64]bool
	again  bool   // what was done once is done again
	alike  bool   // the history went as another one that waited less long
	ending uint64 // the state whose end is being judged; 0 where it is not its first one
	cut    bool   // the history was ended, since another one was there and went on
}

// place is where a searcher was, and can put its history back to.
type place struct {
	at    *node         // nil in the beginning
	image *rewind.Image // nil where histories are made again each time
}

// stop is a moment in which the process has stopped in the last part of an action.
type stop struct {
	picks []uint8       // that led there
	image *rewind.Image // nil where there is none
}

// leads reports whether the choices go on from there.
func (s *stop) leads(picks []uint8) bool {
	return s.image != nil && len(picks) > len(s.picks) && bytes.HasPrefix(picks, s.picks)
}

// expand tries every action in a state, with all that can disturb it.
func (w *searcher) expand(job int, from *node) {
	w.job, w.seq, w.from = job, 0, from
	w.left, w.stop, w.waits = map[uint64]string{}, stop{}, map[uint64]bool{}
	w.begin()
	w.dirty = false
	w.s.tries(len(w.steps.acts))
	goesOn := true
	if from.parent == nil {
		goesOn = w.try(nil, func() bool { return w.comesTo(true) })
	}
	for a := 0; a < len(w.steps.acts) && goesOn; a++ {
		goesOn = w.try([]uint8{uint8(a + 1)}, w.act)
	}
}

// begin brings the history to the state: from where its way parts from that to the one before, or
// from the beginning.
func (w *searcher) begin() {
	w.again = true
	defer func() { w.again = false }()
	way := w.from.way()
	n := 0
	if w.h == nil || w.s.replays {
		w.anew()
	} else {
		for n < len(way) && n+1 < len(w.way) && w.way[n+1].at == way[n] {
			n++
		}
		w.way = w.way[:n+1]
		w.way[n].image.Restore()
	}
	for _, next := range way[n:] {
		w.repeat(next.picks, func() { w.steps.step() })
		w.arrive(next)
	}
}

// anew begins another history.
func (w *searcher) anew() {
	w.close()
	w.course.begun = false
	w.h = w.s.p.play(w.course, Options{Bounds: &w.s.b, search: w})
	w.repeat(nil, func() {
		w.h.begin()
		w.steps = w.h.stepper()
	})
	w.way = nil
	w.arrive(nil)
}

// repeat makes again what was made before.
func (w *searcher) repeat(picks []uint8, do func()) {
	w.course.begin(picks)
	if !w.h.until(do) {
		panic("sim: what was made once is not made again")
	}
}

func (w *searcher) arrive(at *node) {
	p := place{at: at}
	if !w.s.replays {
		p.image = w.camera.Take(w.h)
	}
	w.way = append(w.way, p)
}

func (w *searcher) close() {
	if w.h != nil {
		w.h.w.Close()
	}
}

// try does something for each of the ways in which its choices can come out that begin with these,
// each time from the image. It ends where that reports false, and reports it.
func (w *searcher) try(picks []uint8, do func() bool) bool {
	for open := [][]uint8{picks}; len(open) > 0; {
		picks = open[len(open)-1]
		open = open[:len(open)-1]
		w.back(picks)
		if !do() {
			return false
		}
		if !w.alike {
			open = w.course.others(open, len(picks))
		}
	}
	return true
}

// back puts the history back to where it is gone on from with these choices: by its image, or by
// making it again.
func (w *searcher) back(picks []uint8) {
	switch {
	case w.stop.leads(picks):
		w.stop.image.Restore()
		w.course.begin(picks)
		w.course.at = len(w.stop.picks)
		return
	case !w.dirty:
	case w.s.replays:
		w.begin()
	default:
		w.way[len(w.way)-1].image.Restore()
	}
	w.dirty = true
	w.course.begin(picks)
}

// act makes one action, or what is left of it, and reports whether the search goes on.
func (w *searcher) act() bool {
	w.cut = false
	judged := w.h.o.judged
	through := w.h.until(func() {
		if w.course.at == 0 {
			w.h.hash = fnvBasis
			w.steps.step()
		} else {
			w.h.crashed()
			w.h.stepped()
		}
	})
	w.s.hears(w.h.hash)
	if w.alike = through && w.h.o.judged == judged && w.waited(); w.alike {
		w.seq++
		return w.counts()
	}
	return w.comesTo(through)
}

// waited reports whether the action let a time pass, undisturbed, and the process then did what it
// did after a shorter time: of these the search goes on from the shortest alone.
func (w *searcher) waited() bool {
	picks := w.course.picks // the action, its time, and what may disturb it
	if w.s.everyWait || w.steps.acts[picks[0]-1].kind != kindTime ||
		slices.ContainsFunc(picks[2:], func(pick uint8) bool { return pick > 0 }) {
		return false
	}
	before := w.waits[w.h.hash]
	w.waits[w.h.hash] = true
	return before
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
		w.stop = stop{}
		w.back(r.node.picks)
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

// beforeStop is told when the process stops, before it is chosen how.
func (w *searcher) beforeStop(h *play) {
	if w == nil || w.again || w.s.replays || h.healing || h.part != h.last {
		return
	}
	picks := w.course.picks[:w.course.at]
	if w.stop.image == nil || !bytes.Equal(picks, w.stop.picks) {
		w.stop = stop{slices.Clone(picks), w.camera.Take(h)}
	}
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
