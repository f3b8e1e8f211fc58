package facts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// Groups is one fact of the configuration that a broker knows: the offsets that consumer groups
// have committed.
type Groups struct {
	Name   string
	Source string // whose broker is asked
	Groups []string
	MaxAge time.Duration // of an answer
}

// Committed is what a broker answered: by group and log the next offset that the group will read. A
// log that a group is not said to have committed anything of has not been read by it.
type Committed map[string]map[tier.LogID]tier.Offset

// Asker asks the broker of a source about groups. It answers for all of them, or gives an error.
type Asker func(ctx context.Context, source string, groups []string) (Committed, error)

// answer is the last answer to one Groups.
type answer struct {
	err       error // why it is not known; nil where it is, but for its age
	at        tier.Time
	committed Committed
	known     bool // at the end of the last Ask, its age considered
}

// Change is what another answer may concern.
type Change struct {
	All  bool
	Logs []tier.LogID // ascending; empty where All is set
}

// Unasked is why a fact is not known whose broker is yet to be asked, which is soon.
const Unasked = "the broker has not been asked yet"

var errUnasked = errors.New(Unasked)

// Asks reports whether some fact is known by asking.
func (s *Set) Asks() bool { return len(s.groups) > 0 }

// Ask asks the broker about each fact that it knows, one after the other, and tells of which logs
// the facts are others than before. now is asked for before each question: that is how old the
// answer is. An answer of before counts until it is too old only where there is a new one: a broker
// that gives none may have lost what it said.
func (s *Set) Ask(ctx context.Context, now func() tier.Time, ask Asker) (c Change) {
	s.asking.Lock()
	defer s.asking.Unlock()
	logs := map[tier.LogID]bool{}
	for i, g := range s.groups {
		s.mu.Lock()
		before := s.answers[i]
		s.mu.Unlock()
		after := answer{at: now()}
		after.committed, after.err = ask(ctx, g.Source, g.Groups)
		if after.err != nil {
			after.err = fmt.Errorf("the broker of %s: %w", g.Source, after.err)
		}
		after.known = g.expired(&after, now()) == nil
		switch {
		case after.known != before.known:
			c.All = true
		case after.known:
			differing(before.committed, after.committed, logs)
		}
		s.mu.Lock()
		s.answers[i] = after
		s.mu.Unlock()
	}
	if !c.All {
		c.Logs = slices.SortedFunc(maps.Keys(logs), tier.LogID.Compare)
	}
	return c
}

// differing adds the logs that a group has read further, or less far, than before.
func differing(before, after Committed, logs map[tier.LogID]bool) {
	for group, offsets := range after {
		for id, o := range offsets {
			if was, ok := before[group][id]; !ok || was != o {
				logs[id] = true
			}
		}
		for id := range before[group] {
			if _, ok := offsets[id]; !ok {
				logs[id] = true
			}
		}
	}
}

// Adopt takes over the answers that an earlier set has for the same questions, so that a reload
// leaves nothing unknown that was known.
func (s *Set) Adopt(old *Set) {
	old.mu.Lock()
	defer old.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, g := range s.groups {
		for j, o := range old.groups {
			if o.Source == g.Source && slices.Equal(o.Groups, g.Groups) {
				s.answers[i] = old.answers[j]
			}
		}
	}
}

// of gives what the groups have committed of one log: by group, an object with the log's id alone.
// Where a group has committed nothing stands 0, so that a rule which compares offsets takes it for
// what it is: nothing was read.
func (g *Groups) of(a *answer, log tier.LogID) map[string]any {
	out := make(map[string]any, len(g.Groups))
	for _, group := range g.Groups {
		out[group] = map[string]any{log.String(): int64(a.committed[group][log])}
	}
	return out
}

// expired says why the answer does not count at now; nil where it does.
func (g *Groups) expired(a *answer, now tier.Time) error {
	switch {
	case a.err != nil:
		return a.err
	case now.Sub(a.at) > g.MaxAge:
		return fmt.Errorf("the broker of %s: it last answered at %s, longer ago than the max_age of %s",
			g.Source, a.at, g.MaxAge)
	case now < a.at:
		return fmt.Errorf("the broker of %s: it answered at %s, which lies in the future", g.Source, a.at)
	}
	return nil
}
