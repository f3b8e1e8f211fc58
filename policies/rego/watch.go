package rego

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// hungAfter is how many looks an evaluation may have beyond its time-out.
const hungAfter = 10

// errHung is why policies decide nothing any more.
var errHung = errors.New("an expression takes for ever")

// HungError is why policies decide nothing any more, where the place is known.
type HungError struct {
	Place string // file:line of the last expression that was over; it or the next does not end
	Err   error
}

// Error begins with the place.
func (e *HungError) Error() string { return e.Place + " or next: " + e.Err.Error() }

// Unwrap gives the error without its place.
func (e *HungError) Unwrap() error { return e.Err }

// Watch knows the evaluations under way. OPA looks at its bounds between two expressions, so that
// nothing ends a single one; an evaluation which does not end is noticed at least. The zero Watch
// is ready; it may watch many Sets, and is safe for concurrent use. It costs an evaluation two
// turns of a lock, and reads no clock: looks are counted, since a machine that slept evaluated
// nothing.
type Watch struct {
	mu      sync.Mutex
	running []*evaluation
}

// Hung is an evaluation that does not end.
type Hung struct {
	Policies *Set
	Err      error // at which place, and about what
}

func (w *Watch) enter(e *evaluation) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	e.slot = len(w.running)
	w.running = append(w.running, e)
}

func (w *Watch) leave(e *evaluation) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	last := len(w.running) - 1
	w.running[e.slot] = w.running[last]
	w.running[e.slot].slot = e.slot
	w.running[last] = nil
	w.running = w.running[:last]
}

// Look is to be called once a second. It returns the evaluations that began ten seconds and their
// time-out ago, and have not ended, each once; of those without a time-out, which steps alone
// bound, the ones that took no step for so long. From then on their policies decide nothing, with
// that error, and whoever waits is told by WhenHung.
func (w *Watch) Look() (hung []Hung) {
	var found []*evaluation
	w.mu.Lock()
	for _, e := range w.running {
		timeout := e.set.opts.Timeout
		if timeout <= 0 {
			timeout = DefaultTimeout
			if left := e.limit.left.Load(); left != e.seen {
				e.seen, e.looks = left, 0
			}
		}
		e.looks++
		if e.looks == int(timeout/time.Second)+1+hungAfter {
			found = append(found, e)
		}
	}
	w.mu.Unlock()
	for _, e := range found {
		err := e.hungError()
		e.set.hung.CompareAndSwap(nil, &err)
		if tell, ok := e.ctx.Value(hungKey{}).(func(error)); ok {
			tell(err)
		}
		hung = append(hung, Hung{e.set, err})
	}
	return hung
}

// Hung is why these policies decide nothing any more; nil while they do.
func (s *Set) Hung() error {
	if err := s.hung.Load(); err != nil {
		return *err
	}
	return nil
}

type hungKey struct{}

// WhenHung has tell called, by Look, once an evaluation under this context does not end. It must
// not wait for anything.
func WhenHung(ctx context.Context, tell func(error)) context.Context {
	return context.WithValue(ctx, hungKey{}, tell)
}

// hungError says what does not end.
func (e *evaluation) hungError() error {
	err := errHung
	action, known := e.in.text("action")
	if log, ok := e.in.text("log", "id"); ok && known {
		err = fmt.Errorf("%w, asked about %s of %s", err, action, log)
	}
	if at := e.before(); at != nil {
		return &HungError{place(at), err}
	}
	return err
}

// before is the place of the last expression that was over when the endless one began. It is run
// anew until then: it takes the same steps each time.
func (e *evaluation) before() *ast.Location {
	last := &lastPlace{}
	again := &evaluation{set: e.set, ctx: context.WithoutCancel(e.ctx), in: e.in, run: e.run,
		tracer: last, every: e.every}
	again.limit.left.Store(e.set.opts.Steps - e.limit.left.Load() - 1)
	_ = again.run(again)
	return last.at
}

// text is the text at a path of the input.
func (in *Input) text(path ...string) (string, bool) {
	ref := make(ast.Ref, len(path))
	for i, name := range path {
		ref[i] = ast.StringTerm(name)
	}
	found, err := in.value.Find(ref)
	s, isString := found.(ast.String)
	return string(s), err == nil && isString
}
