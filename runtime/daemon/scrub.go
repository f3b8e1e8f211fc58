package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/read"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/verify"
)

// scrubFile remembers in data_dir how far a pass over the store is, and which copies are bad, so
// that a restart neither begins anew nor forgets a loss.
const scrubFile = "scrub.json"

const (
	scrubVersion  = 1
	scrubBurst    = 4 << 20 // bytes; the largest piece that is read at once
	scrubSave     = 10 * time.Second
	suspectsMax   = 256 // that wait for a look
	scrubLookWait = time.Minute
)

// scrubState is the content of scrubFile.
type scrubState struct {
	Version int       `json:"version"`
	Began   tier.Time `json:"began"` // of the pass; nanoseconds since the Unix epoch
	// Log and Position are of the copy that was looked at last; the pass goes on behind it. Log is ""
	// where none was, or where the pass is over.
	Log      string        `json:"log"`
	Position tier.Position `json:"position"`
	Over     bool          `json:"over"`
	Bad      []scrubBad    `json:"bad"`
}

// scrubBad is a copy that the store lost or altered.
type scrubBad struct {
	Log      string        `json:"log"`
	Position tier.Position `json:"position"`
	Text     string        `json:"text"`
}

// suspicion is a copy that a reader met and that is to be looked at.
type suspicion struct {
	log      tier.LogID
	position tier.Position
}

// scrubber reads the store back, from end to end, within scrub.every.
type scrubber struct {
	d        *Daemon
	suspects chan suspicion
	limit    *rate.Limiter

	mu    sync.Mutex // guards what follows
	state scrubState
	saved time.Time
}

func newScrubber(d *Daemon) *scrubber {
	return &scrubber{d: d, suspects: make(chan suspicion, suspectsMax),
		limit: rate.NewLimiter(rate.Inf, scrubBurst)}
}

// suspect is told of a copy that is not in the store as it should be.
func (d *Daemon) suspect(id tier.LogID, pos tier.Position, why error) {
	select {
	case d.scrubber.suspects <- suspicion{id, pos}:
		d.log.Warn("a reader met a copy that is not what it should be; it is looked at", "log",
			id.String(), "position", pos, "err", why)
	default: // so many wait that the store as a whole is out of order
	}
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
			s.answer(ctx, x)
		case <-timer.C:
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
	if s.state.Began == 0 || s.state.Over && now >= s.state.Began+every {
		s.state.Began, s.state.Log, s.state.Position, s.state.Over = now, "", 0, false
	}
	return !s.state.Over
}

// pass goes on with the pass under way, until it is over, ctx ends or it is turned off.
func (s *scrubber) pass(ctx context.Context) {
	for _, id := range s.d.ledger.Logs() {
		at := s.behind(id)
		if at < 0 {
			continue
		}
		counted, err := s.d.reader.Counted(id)
		if err != nil {
			s.d.log.Error("scrub", "log", id.String(), "err", err)
			continue
		}
		slices.SortFunc(counted, func(a, b read.Counted) int { return int(a.Position) - int(b.Position) })
		for _, c := range counted {
			if int64(c.Position) < at {
				continue
			}
			if !s.wanted(ctx) {
				return
			}
			s.suspected(ctx)
			if !s.look(ctx, id, c.Position) {
				return
			}
			s.did(id, c.Position)
		}
	}
	s.mu.Lock()
	s.state.Over, s.state.Log, s.state.Position = true, "", 0
	s.state.Bad = slices.DeleteFunc(s.state.Bad, func(b scrubBad) bool {
		id, err := tier.ParseLogID(b.Log)
		if err == nil {
			_, err = s.d.ledger.Copy(id, b.Position)
		}
		return errors.Is(err, tier.ErrVanished) // it has expired meanwhile
	})
	s.mu.Unlock()
	if err := s.save(true); err != nil {
		s.d.log.Error("scrub", "err", err)
	}
	s.d.metrics.lastSuccess.WithLabelValues("scrub").SetToCurrentTime()
	s.d.log.Info("the store was read back, from end to end", "bad", len(s.state.Bad))
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
	if err := s.save(false); err != nil {
		s.d.log.Error("scrub", "err", err)
	}
}

// suspected answers the suspicions that wait.
func (s *scrubber) suspected(ctx context.Context) {
	for range suspectsMax {
		select {
		case x := <-s.suspects:
			s.answer(ctx, x)
		default:
			return
		}
	}
}

// answer looks at a copy that a reader met.
func (s *scrubber) answer(ctx context.Context, x suspicion) {
	s.look(ctx, x.log, x.position)
	if err := s.save(true); err != nil {
		s.d.log.Error("scrub", "err", err)
	}
}

// look reads a copy back and tells the engine what it is like. Where the store cannot be asked it
// tries again, until ctx ends: then it is false.
func (s *scrubber) look(ctx context.Context, id tier.LogID, pos tier.Position) bool {
	for pause := backoffMin; ; pause = min(2*pause, backoffMax) {
		found, there, err := s.read(ctx, id, pos)
		if err == nil {
			if there {
				s.tell(id, pos, found)
			}
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		s.d.metrics.scrubbed.WithLabelValues("error").Inc()
		s.d.log.Warn("scrub: the store cannot be read", "log", id.String(), "position", pos, "err", err,
			"again_in", pause)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
		}
	}
}

// read reads a copy back; there is false where it is no part of the log any more.
func (s *scrubber) read(ctx context.Context, id tier.LogID, pos tier.Position) (
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
	if err == nil && len(found) > 0 {
		// It may have left the log while it was read, and its objects the store.
		counted, errCounted := s.d.reader.Counted(id)
		there = slices.ContainsFunc(counted, func(c read.Counted) bool { return c.Position == pos })
		return found, there, errCounted
	}
	return found, true, err
}

// tell hands what was found to the engine and remembers it.
func (s *scrubber) tell(id tier.LogID, pos tier.Position, found []verify.Finding) {
	s.mu.Lock()
	s.state.Bad = slices.DeleteFunc(s.state.Bad, func(b scrubBad) bool {
		return b.Log == id.String() && b.Position == pos
	})
	result := "good"
	var why *tier.Reason
	if len(found) > 0 {
		var texts []string
		for _, f := range found {
			texts = append(texts, f.Text)
		}
		result = "bad"
		why = &tier.Reason{Code: tier.CodeStoreLost, Text: strings.Join(texts, "; ")}
		s.state.Bad = append(s.state.Bad, scrubBad{id.String(), pos, why.Text})
	}
	s.mu.Unlock()
	s.d.metrics.scrubbed.WithLabelValues(result).Inc()
	if why != nil {
		s.d.log.Error("the store does not have what was copied", "log", id.String(), "position", pos,
			"why", why.Text)
	}
	s.d.step(engine.Scrubbed{Log: id, Position: pos, Reason: why})
}

// load reads what an earlier process left, and tells the engine of the copies that are bad, before
// it decides anything.
func (s *scrubber) load() error {
	data, err := os.ReadFile(s.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("scrub: %w", err)
	}
	var state scrubState
	if err := json.Unmarshal(data, &state); err != nil || state.Version < 1 {
		s.d.log.Error("scrub: what is remembered cannot be read; the store is read back anew", "path",
			s.path(), "err", err)
		return nil
	}
	if state.Version > scrubVersion {
		return fmt.Errorf("scrub: %s: version %d, newer than %d: %w", s.path(), state.Version,
			scrubVersion, tier.ErrNewer)
	}
	s.mu.Lock()
	s.state = state
	s.mu.Unlock()
	for _, b := range state.Bad {
		id, err := tier.ParseLogID(b.Log)
		if _, gone := s.d.ledger.Copy(id, b.Position); err != nil || gone != nil {
			continue
		}
		s.d.step(engine.Scrubbed{Log: id, Position: b.Position,
			Reason: &tier.Reason{Code: tier.CodeStoreLost, Text: b.Text}})
	}
	return nil
}

func (s *scrubber) path() string {
	return filepath.Join(s.d.gen.Load().config.DataDir, scrubFile)
}

// save writes what is remembered, at most every few seconds unless it is told to. It is no record
// that anything relies on: what is lost with a crash is looked at again.
func (s *scrubber) save(now bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Began == 0 && len(s.state.Bad) == 0 || !now && time.Since(s.saved) < scrubSave {
		return nil
	}
	s.state.Version = scrubVersion
	data, err := json.Marshal(s.state)
	if err != nil {
		return err
	}
	half := s.path() + ".half"
	if err := os.WriteFile(half, data, 0o600); err != nil {
		return err
	}
	s.saved = time.Now()
	return os.Rename(half, s.path())
}
