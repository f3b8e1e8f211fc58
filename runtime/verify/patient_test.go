package verify

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// FactsPast implements Stored.
func (s *shelf) FactsPast(ctx context.Context, log tier.LogID, past func(error) error) (
	[]tier.Fact, map[string]error, error) {
	wrong := map[string]error{}
	for key, err := range s.wrong {
		if wrong[key] = past(err); !errors.Is(wrong[key], tier.ErrUnread) {
			return nil, nil, wrong[key]
		}
	}
	return s.facts, wrong, s.err
}

// patience asks a shelf, at a moment that the test moves, and is told whether others are given.
func patience(s *shelf, at *time.Time, answer *error) *Patient {
	return &Patient{Stored: s, Within: time.Minute, Now: func() time.Time { return *at },
		Answers: func(context.Context) error { return *answer }}
}

// TestWhatIsNotGivenIsAFinding: each object that the store does not give is one, and the rest is
// looked at.
func TestWhatIsNotGivenIsAFinding(t *testing.T) {
	t.Parallel()
	l, s := archived()
	at, answer := time.Unix(1, 0), error(nil)
	p := patience(s, &at, &answer)
	s.err = errors.New("403")
	c := l.Copies()[0]
	r := Reading{}
	for what, ask := range map[string]func() ([]Finding, error){
		"content":  func() ([]Finding, error) { return r.Content(t.Context(), p, orders, l.Layout, &c) },
		"sizes":    func() ([]Finding, error) { return Sizes(t.Context(), p, orders, &c) },
		"manifest": func() ([]Finding, error) { return Manifest(t.Context(), p, l) },
		"entry":    func() ([]Finding, error) { return Entry(t.Context(), p, l, &c) },
		"orphans": func() ([]Finding, error) {
			return Orphans(t.Context(), p, []*Log{l}, now, 1, func(tier.LogID) bool { return true })
		},
	} {
		got, err := ask()
		if err != nil || !slices.Equal(kinds(got), []Kind{KindUnread}) || got[0].Text != "403" ||
			got[0].Fails() {
			t.Errorf("%s: %+v %v", what, got, err)
		}
		answer = errors.New("503")
		if got, err := ask(); len(got) > 0 || !errors.Is(err, s.err) || errors.Is(err, tier.ErrUnread) {
			t.Errorf("%s, of a store that is down: %+v %v", what, got, err)
		}
		answer = nil
	}
	s.err, s.facts, s.wrong = nil, nil, map[string]error{"b": errors.New("403")}
	got, err := Manifest(t.Context(), p, l)
	if err != nil || !slices.Equal(kinds(got), []Kind{KindUnread}) || got[0].Object != "b" {
		t.Errorf("an entry that may say what is missing: %+v %v", got, err)
	}
}

// TestPatienceEnds: a store that gives nothing but the one object is not asked for ever.
func TestPatienceEnds(t *testing.T) {
	t.Parallel()
	l, s := archived()
	at, answer := time.Unix(1, 0), error(nil)
	p := patience(s, &at, &answer)
	k := l.Copies()[0].Object(orders, "0.log")
	ask := func(after time.Duration, err error, unread bool) {
		t.Helper()
		at, s.err = at.Add(after), err
		got := p.StatFile(t.Context(), k, int64(len(s.objects[k])))
		if !errors.Is(got, err) || errors.Is(got, tier.ErrUnread) != unread {
			t.Errorf("%v", got)
		}
	}
	denied := errors.New("403")
	ask(time.Hour, denied, true) // the first that is asked for
	ask(time.Minute, denied, true)
	ask(time.Second, denied, false)
	ask(time.Hour, nil, false)
	ask(time.Minute, denied, true)
	ask(time.Second, tier.ErrVanished, false) // an answer
	ask(time.Minute, denied, true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.StatFile(ctx, k, 0); errors.Is(err, tier.ErrUnread) {
		t.Errorf("of a call that was not wanted any more: %v", err)
	}
}
