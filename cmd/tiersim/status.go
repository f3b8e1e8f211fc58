package main

import (
	"sync"
	"time"

	"github.com/tierd/tierd/cmd/internal/screen"
	"github.com/tierd/tierd/runtime/tier"
)

// progressEvery is how often progress is shown.
const progressEvery = 200 * time.Millisecond

// status is the line that says how far a command is, on a terminal alone. One without an app is
// never shown.
type status struct {
	a *app

	mu   sync.Mutex
	last time.Time // it was shown; zero where it is not
}

// show puts the line in place of the one that is there, now and then.
func (s *status) show(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.a == nil || !screen.Terminal(s.a.stdout) || time.Since(s.last) < progressEvery {
		return
	}
	s.last = time.Now()
	s.a.print("\r\x1b[K")
	s.a.printf(format, args...)
}

// clear takes the line away.
func (s *status) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.last.IsZero() {
		s.a.print("\r\x1b[K")
	}
	s.last = time.Time{}
}

// count shows how often more was asked, which shrinking asks before each history.
func (s *status) count(format string, more func() bool) func() bool {
	asked := 0
	return func() bool {
		asked++
		s.show(format, tier.Count(asked, "history"))
		return more()
	}
}
