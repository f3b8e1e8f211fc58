package rego

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// errRunaway is why a decision ended whose evaluation did not stop when it should have.
var errRunaway = errors.New("the evaluation does not stop")

// runaways are the evaluations of a Set that were given up and run on. OPA looks at its bounds
// before each expression, and nothing ends a single one. Where values double by being nested into
// each other, one takes for ever, and memory for as long. So while one runs, no other begins: all
// is kept, for the reason for which the first was given up.
type runaways struct {
	running atomic.Int32
	reason  atomic.Pointer[error] // why, with the place; nil until that is known
}

// err is why nothing may begin; nil if it may.
func (r *runaways) err() error {
	if r.running.Load() == 0 {
		return nil
	}
	if why := r.reason.Load(); why != nil {
		return *why
	}
	return errRunaway
}

// within has OPA evaluate by ask, and returns once that is over, or is given up. What ask changes
// must not be looked at where the error is errRunaway.
func (s *Set) within(e *evaluation, ask func() error) error {
	var err error
	run := func() {
		defer e.end()
		err = s.failure(e, ask())
	}
	if s.opts.Watch == nil {
		run()
		return err
	}
	// Whoever is second of the evaluation that ends and the caller that gives it up sees it here.
	var first atomic.Bool
	ended := s.opts.Watch(e.ctx, func() {
		grow(0)
		run()
		if !first.CompareAndSwap(false, true) {
			s.runaways.running.Add(-1)
		}
	})
	if ended {
		return err
	}
	s.runaways.running.Add(1)
	if !first.CompareAndSwap(false, true) {
		s.runaways.running.Add(-1)
		return err // it has ended after all
	}
	return fmt.Errorf("evaluate policies: %w, although its time-out of %s is over: one expression "+
		"takes for ever, and nothing is deleted while it runs", errRunaway, s.opts.Timeout)
}

// grow makes the stack of a goroutine, which may be new, as large as evaluations need, at once:
// they recurse deeply, and growing by and by, with a copy of the stack each time, took longer than
// the evaluation itself. Room is made on entry, whatever n is; 0 does nothing else.
//
//go:noinline
func grow(n int) byte {
	if n == 0 {
		return 0
	}
	var room [128 << 10]byte
	return room[n]
}
