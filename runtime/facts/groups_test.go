package facts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

var (
	orders0 = tier.LogID{Table: "orders", Name: "0"}
	orders1 = tier.LogID{Table: "orders", Name: "1"}
	clicks0 = tier.LogID{Table: "clicks", Name: "0"}
)

// fakeBroker answers what it is told to.
type fakeBroker struct {
	answers Committed
	err     error
	asked   []string
}

func (b *fakeBroker) ask(_ context.Context, source string, groups []string) (Committed, error) {
	b.asked = append(b.asked, fmt.Sprint(source, groups))
	return b.answers, b.err
}

// TestGroups: what groups have committed is known from an answer on until it is too old, of the log
// that is asked about and no other; a change concerns the logs whose offsets changed.
func TestGroups(t *testing.T) {
	t.Parallel()
	b := &fakeBroker{}
	at := now
	s := New(nil, []Groups{{"offsets", "broker-1", []string{"billing", "search"}, time.Minute}}, plain)
	seen := func(log tier.LogID) string {
		known, unknown := s.At(at, tolerance, log)
		if len(unknown) > 0 {
			return unknown[0].Why
		}
		return fmt.Sprint(known["offsets"])
	}
	if got := seen(orders0); got != Unasked {
		t.Errorf("before the first answer: %s", got)
	}
	for _, step := range []struct {
		what   string
		later  time.Duration
		answer Committed
		err    error
		change Change
		want   string // of orders/0
	}{
		{"the first answer", 0, Committed{"billing": {orders0: 5, clicks0: 1}, "search": {}}, nil,
			Change{All: true}, "map[billing:map[orders/0:5] search:map[orders/0:0]]"},
		{"the same", 30 * time.Second,
			Committed{"billing": {orders0: 5, clicks0: 1}, "search": {}}, nil,
			Change{}, "map[billing:map[orders/0:5] search:map[orders/0:0]]"},
		{"some have read on", 30 * time.Second,
			Committed{"billing": {orders0: 9, clicks0: 1}, "search": {orders1: 2}}, nil,
			Change{Logs: []tier.LogID{orders0, orders1}},
			"map[billing:map[orders/0:9] search:map[orders/0:0]]"},
		{"one was forgotten", time.Second, Committed{"billing": {orders0: 9}, "search": {orders1: 2}},
			nil, Change{Logs: []tier.LogID{clicks0}},
			"map[billing:map[orders/0:9] search:map[orders/0:0]]"},
		{"no answer", time.Second, nil, errors.New("connection refused"), Change{All: true},
			"the broker of broker-1: connection refused"},
		{"still none", time.Second, nil, errors.New("connection refused"), Change{},
			"the broker of broker-1: connection refused"},
		{"an answer", time.Second, Committed{"billing": {orders0: 9}, "search": {}}, nil,
			Change{All: true}, "map[billing:map[orders/0:9] search:map[orders/0:0]]"},
	} {
		at = at.Add(step.later)
		b.answers, b.err = step.answer, step.err
		change := s.Ask(t.Context(), func() tier.Time { return at }, b.ask)
		if change.All != step.change.All || !slices.Equal(change.Logs, step.change.Logs) {
			t.Errorf("%s: %+v, want %+v", step.what, change, step.change)
		}
		if got := seen(orders0); got != step.want {
			t.Errorf("%s: %s, want %s", step.what, got, step.want)
		}
	}
	if len(b.asked) != 7 || b.asked[0] != "broker-1[billing search]" {
		t.Errorf("asked %q", b.asked)
	}
	at = at.Add(time.Minute)
	if got := seen(orders1); got != "map[billing:map[orders/1:0] search:map[orders/1:0]]" {
		t.Errorf("at its age: %s", got)
	}
	at++
	if got := seen(orders1); got != "the broker of broker-1: it last answered at "+
		"2027-01-15T08:01:04Z, longer ago than the max_age of 1m0s" {
		t.Errorf("after it: %s", got)
	}
	at = at.Add(-2 * time.Minute)
	if got := seen(orders1); got != "the broker of broker-1: it answered at "+
		"2027-01-15T08:01:04Z, which lies in the future" {
		t.Errorf("after the clock went back: %s", got)
	}
}

// TestAdopt: a reload leaves known what was known, where the question is the same.
func TestAdopt(t *testing.T) {
	t.Parallel()
	b := &fakeBroker{answers: Committed{"billing": {orders0: 5}}}
	question := Groups{"offsets", "broker-1", []string{"billing"}, time.Minute}
	old := New(nil, []Groups{question}, plain)
	old.Ask(t.Context(), func() tier.Time { return now }, b.ask)
	renamed, other, elsewhere := question, question, question
	renamed.Name, renamed.MaxAge = "renamed", time.Hour
	other.Name, other.Groups = "other", []string{"search"}
	elsewhere.Name, elsewhere.Source = "elsewhere", "broker-2"
	s := New(nil, []Groups{other, elsewhere, renamed}, plain)
	s.Adopt(old)
	known, unknown := s.At(now, tolerance, orders0)
	if fmt.Sprint(known) != "map[renamed:map[billing:map[orders/0:5]]]" || len(unknown) != 2 {
		t.Errorf("%v, %v", known, unknown)
	}
	if !s.Asks() || New(nil, nil, plain).Asks() {
		t.Error("who asks brokers is not told")
	}
}
