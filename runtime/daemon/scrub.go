package daemon

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/tierd/tierd/runtime/exec"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/verify"
)

const (
	scrubBurst    = 4 << 20 // bytes; the largest piece that is read at once
	suspectsMax   = 256     // that wait for a look
	scrubLookWait = time.Minute
	// scrubAgain is how long after a look at the bad copies another is due: somebody may have put
	// their objects back.
	scrubAgain = tier.Time(time.Hour)
)

// suspicion is a copy that a reader met and that is to be looked at.
type suspicion struct {
	log      tier.LogID
	position tier.Position
}

// scrubber reads the store back, from end to end, within scrub.every: of each log first the
// manifest, of which it writes again what is gone, and then every copy.
type scrubber struct {
	d        *Daemon
	suspects chan suspicion
	limit    *rate.Limiter
	writing  sync.Mutex // of scrubFile; taken before mu

	mu      sync.Mutex // guards what follows; nobody waits for a disk with it
	state   scrubState
	saved   time.Time
	doubted map[suspicion]bool // those that wait in suspects, or are being looked at
	open    map[scrubbed]unsettled
	looks   int64     // how many of them left something open; no clock tells which came first
	again   tier.Time // when the bad and the open ones were looked at last
	waits   string    // why the store is waited for, for long now; "" where it is not

	// Of run alone: how many were passed over since the store gave one.
	copiesInRow, objectsInRow int
	once                      bool // one try each: a run with an end waits for nothing
}

func newScrubber(d *Daemon) *scrubber {
	return &scrubber{d: d, suspects: make(chan suspicion, suspectsMax),
		limit: rate.NewLimiter(rate.Inf, scrubBurst), doubted: map[suspicion]bool{},
		open: map[scrubbed]unsettled{}}
}

// suspect is told of a copy that is not in the store as it should be.
func (d *Daemon) suspect(id tier.LogID, pos tier.Position, why error) {
	if d.scrubber.doubt(suspicion{id, pos}) {
		d.log.Warn("a reader met a copy that is not what it should be; it is looked at", "log",
			id.String(), "position", pos, "err", why)
	}
}

// doubt has the copy looked at. It is false where that is no news: a client that tries again and
// again must not have the store read again and again. It is false also where so many wait that the
// store as a whole is out of order.
func (s *scrubber) doubt(x suspicion) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, open := s.open[copyOf(x)]
	if open || s.doubted[x] || s.state.find(x) >= 0 {
		return false
	}
	select {
	case s.suspects <- x:
		s.doubted[x] = true
		return true
	default:
		return false
	}
}

// sound is exec.Config.Sound.
func (s *scrubber) sound(id tier.LogID, pos tier.Position) (tier.Truth, string) {
	x := suspicion{id, pos}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.state.find(x)
	switch {
	case i >= 0:
		return tier.No, s.state.Bad[i].Text
	case s.doubted[x]:
		return tier.Unknown, "a reader met other bytes than were written, and it is about to be read back"
	}
	if u, open := s.open[copyOf(x)]; open {
		return tier.Unknown, "the store did not give it when it was to be read back: " + u.text
	}
	if s.state.Unread != "" {
		return tier.Unknown, s.state.Unread
	}
	return tier.Yes, ""
}

// run looks at the store until ctx ends.
func (s *scrubber) run(ctx context.Context) error {
	for ctx.Err() == nil {
		s.pace()
		if s.due() {
			s.pass(ctx)
			continue
		}
		timer := time.NewTimer(min(s.d.gen.Load().config.Interval, scrubLookWait))
		select {
		case <-ctx.Done():
		case x := <-s.suspects:
			s.look(ctx, x.log, x.position)
		case <-timer.C:
			s.lookAgain(ctx)
		}
		timer.Stop()
	}
	return s.save(true)
}

// pace takes the rate over from the configuration.
func (s *scrubber) pace() {
	limit := rate.Inf
	if n := s.d.gen.Load().config.Scrub.BytesPerSecond; n > 0 {
		limit = rate.Limit(n)
	}
	s.limit.SetLimit(limit)
}

// due reports whether a pass is under way, or has to begin; if so it has begun.
func (s *scrubber) due() bool {
	every := tier.Time(s.d.gen.Load().config.Scrub.Every)
	s.mu.Lock()
	defer s.mu.Unlock()
	if every == 0 {
		return false
	}
	now := s.d.now()
	s.state.Began = min(s.state.Began, now) // the clock was ahead
	if s.state.Began == 0 || s.state.Over && now >= s.state.Began+every {
		s.state.Began, s.state.Log, s.state.Position, s.state.Over = now, "", 0, false
		s.state.Looks, s.again = s.looks, now
	}
	return !s.state.Over
}

// pass goes on with the pass under way, until it is over, ctx ends or it is turned off.
func (s *scrubber) pass(ctx context.Context) {
	if !s.passOn(ctx) && ctx.Err() == nil {
		s.d.log.Info("scrub: turned off, and stops where it is")
	}
}

// passOn is pass; false where it did not come to the end.
func (s *scrubber) passOn(ctx context.Context) bool {
	whole := true
	for _, id := range s.d.ledger.Logs() {
		at := s.behind(id)
		if at < 0 {
			continue
		}
		if at == 0 && !s.mend(ctx, id) { // once copies of it were looked at, it was before
			return false
		}
		counted, err := s.d.reader.Counted(id)
		if err != nil {
			s.d.log.Error("scrub", "log", id.String(), "err", err)
			whole = false
			continue
		}
		slices.SortFunc(counted, func(a, b tier.Counted) int {
			return cmp.Compare(a.Position, b.Position)
		})
		for _, c := range counted {
			if int64(c.Position) < at {
				continue
			}
			if !s.wanted(ctx) {
				return false
			}
			s.between(ctx)
			if !s.lookWhile(ctx, id, c.Position, s.wanted) {
				return false
			}
			s.did(id, c.Position)
		}
	}
	s.mu.Lock()
	bad := slices.Clone(s.state.Bad)
	s.mu.Unlock()
	bad = slices.DeleteFunc(bad, s.expired) // meanwhile; nobody else adds any
	s.mu.Lock()
	s.state.Over, s.state.Log, s.state.Position, s.state.Bad = true, "", 0, bad
	s.state.Mending, s.again = nil, s.d.now()
	if whole {
		s.state.Unread = "" // whatever stood there was found again
	}
	s.mu.Unlock()
	left := s.closeGone()
	s.keep(true)
	s.d.metrics.lastSuccess.WithLabelValues("scrub").SetToCurrentTime()
	switch {
	case left > 0 || !whole:
		s.d.log.Warn("what the store gives was read back", "bad", len(bad), "passed_over", left)
	case len(bad) > 0:
		s.d.log.Warn("every copy in the store was read back, and some are not what was copied", "bad",
			len(bad))
	default:
		s.d.log.Info("every copy in the store was read back")
	}
	return true
}

// wanted reports whether the pass is to go on.
func (s *scrubber) wanted(ctx context.Context) bool {
	s.pace()
	return ctx.Err() == nil && s.d.gen.Load().config.Scrub.Every > 0
}

// behind is the first position of the log that the pass has not looked at; negative where it is
// through with the log.
func (s *scrubber) behind(id tier.LogID) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, err := tier.ParseLogID(s.state.Log)
	switch {
	case s.state.Log == "" || err != nil || id.Compare(last) > 0:
		return 0
	case id == last:
		return int64(s.state.Position) + 1
	}
	return -1
}

func (s *scrubber) did(id tier.LogID, pos tier.Position) {
	s.mu.Lock()
	s.state.Log, s.state.Position = id.String(), pos
	s.mu.Unlock()
	s.keep(false)
}

// suspected answers the suspicions that wait.
func (s *scrubber) suspected(ctx context.Context) {
	for range suspectsMax {
		select {
		case x := <-s.suspects:
			s.look(ctx, x.log, x.position)
		default:
			return
		}
	}
}

// between does what is due also while a pass is under way.
func (s *scrubber) between(ctx context.Context) {
	s.suspected(ctx)
	s.lookAgain(ctx)
}

// lookAgain looks at the bad copies and at what is open, if that is due.
func (s *scrubber) lookAgain(ctx context.Context) {
	now := s.d.now()
	s.mu.Lock()
	s.again = min(s.again, now) // the clock was ahead
	if now < s.again+scrubAgain || len(s.state.Bad)+len(s.open) == 0 {
		s.mu.Unlock()
		return
	}
	s.again = now
	bad := slices.Clone(s.state.Bad)
	s.mu.Unlock()
	for _, b := range bad {
		id, err := tier.ParseLogID(b.Log)
		if err == nil && !s.look(ctx, id, b.Position) {
			return
		}
	}
	s.lookOpen(ctx, s.longestOpen())
}

// look reads a copy back and tells the engine what it is like. Where the store cannot be asked it
// tries again, until ctx ends: then it is false. One that the store does not give while it gives
// others is passed over.
func (s *scrubber) look(ctx context.Context, id tier.LogID, pos tier.Position) bool {
	return s.lookWhile(ctx, id, pos, whileRunning)
}

func whileRunning(ctx context.Context) bool { return ctx.Err() == nil }

// lookWhile is look, and tries again only while that is wanted.
func (s *scrubber) lookWhile(ctx context.Context, id tier.LogID, pos tier.Position,
	wanted func(context.Context) bool) bool {
	x := suspicion{id, pos}
	for t := s.tries(copyOf(x)); ; {
		found, there, err := s.readBack(ctx, id, pos)
		if err == nil {
			if there {
				s.copiesInRow = 0
				s.tell(id, pos, found)
			}
			s.undoubt(x)
			s.close(t.k)
			return true
		}
		again, goesOn := t.failed(ctx, err, wanted)
		if goesOn {
			s.undoubt(x) // it is open now
		}
		if !again {
			return goesOn
		}
	}
}

// undoubt takes a suspicion for answered.
func (s *scrubber) undoubt(x suspicion) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.doubted, x)
}

// readBack reads a copy; there is false where it is no part of the log any more. An error of the
// store is an exec.WithheldError.
func (s *scrubber) readBack(ctx context.Context, id tier.LogID, pos tier.Position) (
	found []verify.Finding, there bool, err error) {
	c, err := s.d.ledger.Copy(id, pos)
	if errors.Is(err, tier.ErrVanished) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	state, _ := s.d.ledger.Log(id)
	r := verify.Reading{Pace: func(ctx context.Context, n int) error { return s.limit.WaitN(ctx, n) },
		Done: func(n int64) { s.d.metrics.scrubbedBytes.Add(float64(n)) }}
	found, err = r.Content(ctx, Stored{s.d.store}, id, state.Layout, &c)
	if err != nil {
		return nil, true, &exec.WithheldError{Err: err}
	}
	if len(found) > 0 {
		// It may have left the log while it was read, and its objects the store.
		counted, errCounted := s.d.reader.Counted(id)
		there = slices.ContainsFunc(counted, func(c tier.Counted) bool { return c.Position == pos })
		return found, there, errCounted
	}
	return found, true, nil
}
