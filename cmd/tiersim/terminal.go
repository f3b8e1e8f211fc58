package main

import (
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// terminal reports whether w is a terminal.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// color reports whether the output goes to a terminal that wants colours (https://no-color.org).
func (a *app) color() bool {
	if v, ok := a.lookupEnv("NO_COLOR"); ok && v != "" {
		return false
	}
	return terminal(a.stdout)
}

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
	if s.a == nil || !terminal(s.a.stdout) || time.Since(s.last) < progressEvery {
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
		s.show(format, asked)
		return more()
	}
}
