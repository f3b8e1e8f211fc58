package sim

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tierd/tierd/objstore/fault"
)

// TestAnyHistoryRebuilt lets chance write histories, as TestAnyHistory does, in which the ledger is
// lost at any moment, and made anew of what the store has. The oracle judges what it is made to,
// and everything that happens after.
func TestAnyHistoryRebuilt(t *testing.T) {
	t.Parallel()
	for name, kinds := range map[string][]string{
		"nothing fails":   {"owner", "process", "settings"},
		"the store fails": {"owner", "process", "store", "settings"},
		"machines stop":   {"owner", "process", "stop", "disk"},
		"data expire":     {"owner", "process", "remote", "stop"},
		"tiering changes": {"owner", "process", "remote", "stop", "tiering"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				h := newChance(t)
				actions := h.actions(kinds)
				actions[""] = h.judge
				actions["the ledger is lost"] = h.rebuilds
				if slices.Contains(kinds, "remote") {
					h.remoteDoes(actions)
					// The age of what was rewritten is another one to the oracle than to its copy.
					delete(actions, "owner rewrites a segment")
					delete(actions, "owner appends to a closed segment")
					delete(actions, "owner writes a second file")
				}
				t.Repeat(actions)
				h.calm()
				h.heal()
				h.judge(t)
			})
		})
	}
}

// rebuilds ends the process, takes its ledger away, and has another made.
func (h *chance) rebuilds(t *rapid.T) {
	h.disk, h.store, h.inside, h.aside, h.brake = 0, nil, 0, 0, 0
	h.hit = Point{}
	h.must(h.w.Return()) // without its source a rebuild is refused
	if rapid.Bool().Draw(t, "the process alone") {
		h.w.Kill()
	} else {
		h.w.Crash(func(label string, n int) int { return rapid.IntRange(0, n-1).Draw(t, label) })
	}
	if _, err := h.w.Rebuild(); err != nil {
		t.Fatalf("rebuild: %v", err)
	}
	h.must(h.w.Start())
}

// remoteDoes lets remote data expire.
func (h *chance) remoteDoes(actions map[string]func(*rapid.T)) {
	actions["remote data expire"] = func(t *rapid.T) {
		hours := rapid.SampledFrom([]int{0, 2, 5}).Draw(t, "hours")
		h.change(t, func() {
			h.table.TTL = time.Duration(hours) * time.Hour
			h.table.LocalTTL = min(h.table.LocalTTL, max(h.table.TTL, time.Minute))
		})
	}
}

// TestRebuildThatFailsChangesNothing: the store does not answer at some call; the old ledger stays.
func TestRebuildThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	calls := 0
	for n := 0; ; n++ {
		r := newRig(t)
		r.copied(3)
		r.w.Advance(2 * time.Hour)
		r.run()
		r.w.Kill()
		before, at := r.w.persistent(), 0
		r.w.Bucket.SetHook(func(fault.Op) fault.Effect {
			at++
			if at == n+1 {
				return fault.Effect{Err: errInjected}
			}
			return fault.Effect{}
		})
		_, err := r.w.Rebuild()
		r.w.Bucket.SetHook(nil)
		if at <= n {
			if err != nil {
				t.Fatalf("without a failure: %v", err)
			}
			break
		}
		calls++
		if err == nil {
			t.Fatalf("call %d of the store failed, and nobody noticed", n)
		}
		if after := r.w.persistent(); after != before {
			t.Fatalf("call %d of the store failed, and something changed:\n%s", n, after)
		}
		r.start()
		r.settle()
		if v := r.oracle.Violations(); len(v) > 0 {
			t.Fatal(v)
		}
	}
	if calls < 10 {
		t.Fatalf("only %d calls", calls)
	}
}
