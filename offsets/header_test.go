package offsets

import (
	"testing"

	"github.com/tierd/tierd/runtime/tier"
)

// wellKept is a header with something of everything.
func wellKept() *header {
	return &header{number: 7, copies: 3, gone: 1, ahead: tier.RangeSet{{Base: 50, Next: 60}},
		state: tier.LogState{Log: tier.LogID{Table: "orders", Name: "0"}, Epoch: 3, Fresh: 2, Start: 10,
			Copied: 40, LogStart: 20, Next: 9, Unpublished: []tier.Position{8},
			Moves: []tier.StartMove{{Start: 15}, {Start: 20}},
			Clips: []tier.Clip{{Position: 4, Offset: 30}, {Position: 6, Offset: 35}}}}
}

// TestHeadersFollow: whatever the rules say, nothing of a log goes back, but for the copied offset
// where its source diverged, and for that and the log start where an epoch begins with nothing.
func TestHeadersFollow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*header)
		ok     bool
	}{
		"the same":             {func(*header) {}, true},
		"another number":       {func(h *header) { h.number++ }, false},
		"another log":          {func(h *header) { h.state.Log.Name = "1" }, false},
		"an epoch before":      {func(h *header) { h.state.Epoch-- }, false},
		"an older one counts":  {func(h *header) { h.state.Fresh-- }, false},
		"a position once more": {func(h *header) { h.state.Next, h.state.Unpublished = 8, nil }, false},
		"a clip less":          {func(h *header) { h.state.Clips = h.state.Clips[:1] }, false},
		"a start before":       {func(h *header) { h.state.Start-- }, false},
		"a start behind":       {func(h *header) { h.state.Start++ }, false},
		"less is copied":       {func(h *header) { h.state.Copied-- }, false},
		"a log start before":   {func(h *header) { h.state.LogStart, h.state.Moves = 19, nil }, false},
		"more of everything":   {func(h *header) { h.state.Copied, h.state.LogStart = 45, 45 }, true},
		"less is copied, by a clip": {func(h *header) {
			h.state.Copied, h.state.Next = 36, 10
			h.state.Clips = append(h.state.Clips, tier.Clip{Position: 9, Offset: 36})
		}, true},
		"an epoch that begins with nothing": {func(h *header) {
			h.state = tier.LogState{Log: h.state.Log, Epoch: 4, Fresh: 4, Start: 5, Copied: 5, LogStart: 5,
				Next: 9}
			h.ahead = nil
		}, true},
	} {
		h := wellKept()
		c.change(h)
		if err := h.follows(wellKept()); (err == nil) != c.ok {
			t.Errorf("%s: %v, want it to follow: %t", name, err, c.ok)
		}
	}
}

// TestHeadersAreSound: what no rule makes of a header, and a disk might.
func TestHeadersAreSound(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*header){
		"copied below the start":    func(h *header) { h.state.Copied = 9 },
		"begins below the start":    func(h *header) { h.state.LogStart, h.state.Moves = 9, nil },
		"a start below 0":           func(h *header) { h.state.Start = -1 },
		"an epoch to come counts":   func(h *header) { h.state.Fresh = 4 },
		"more are gone than copied": func(h *header) { h.gone = 4 },
		"nothing ahead":             func(h *header) { h.ahead[0].Next = 50 },
		"what is ahead is copied":   func(h *header) { h.ahead[0].Base = 40 },
		"what is ahead turns back": func(h *header) {
			h.ahead = append(h.ahead, tier.Range{Base: 60, Next: 70})
		},
		"a position to come is told": func(h *header) { h.state.Unpublished[0] = 9 },
		"a move beyond the start":    func(h *header) { h.state.Moves[1].Start = 21 },
		"a move that goes back":      func(h *header) { h.state.Moves[1].Start = 14 },
		"a clip to come":             func(h *header) { h.state.Clips[1].Position = 9 },
		"a clip below the start":     func(h *header) { h.state.Clips[0].Offset = 9 },
		"two clips at one position":  func(h *header) { h.state.Clips[1].Position = 4 },
		"two clips at one offset":    func(h *header) { h.state.Clips[1].Offset = 30 },
	} {
		h := wellKept()
		if err := h.check(); err != nil {
			t.Fatal(err)
		}
		change(h)
		if h.check() == nil {
			t.Errorf("%s: nothing is wrong with it", name)
		}
	}
}
