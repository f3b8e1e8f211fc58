package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/exec"
	"github.com/tierd/tierd/runtime/tier"
)

// copied is a site whose n segments are in the store, and scrubbing is on.
func copied(t *testing.T, n int) *site {
	s := newSite(t)
	s.configure(bySize)
	s.segments("orders/0", n)
	if _, err := s.once(s.options()); err != nil {
		t.Fatal(err)
	}
	s.configure(scrubbing)
	return s
}

// readBackBy runs a pass over the store, with pauses that take no time, and stops; the daemon runs
// on where it is returned.
func (s *site) readBackBy(at *clock) (*running, *pauses, Options) {
	opts, waits := s.options(), newPauses(10_000)
	opts.Pause, opts.Now = waits.wait, at.now
	d := s.run(opts)
	s.until("the pass is over", func() bool { return strings.Contains(s.log.String(), backAgain) })
	return d, waits, opts
}

func (r *running) unknown() (n int) {
	for _, truth := range r.truths() {
		if truth == tier.Unknown {
			n++
		}
	}
	return n
}

// TestARunWithAnEndAsksOnceMore: a copy that a daemon passed over would prove nothing for ever
// where nothing but such runs comes after. One that the store still does not give stays unknown.
func TestARunWithAnEndAsksOnceMore(t *testing.T) {
	t.Parallel()
	s, at := copied(t, 3), &clock{}
	s.bucket.SetHook(reads(fault.ErrDenied, "00000.log", "/manifest/0000000000000001-"))
	d, _, _ := s.readBackBy(at)
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	s.configure(dropping(bySize))
	for _, given := range []bool{false, true} {
		want := 4
		if given {
			s.bucket.SetHook(nil)
			want = 1
		}
		opts := s.options()
		opts.Now, opts.Pause = at.now, newPauses(0).wait // it would wait for ever
		if _, err := s.once(opts); err != nil {
			t.Fatal(err)
		}
		if n := s.local("orders/0"); n != want {
			t.Errorf("given %t: %d segments are local, want %d", given, n, want)
		}
		n := results(t, opts, "tierd_scrub_open")
		if open := n["copy"] + n["object"]; (open == 0) != given {
			t.Errorf("given %t: open %v", given, n)
		}
		at.moves(26 * time.Hour)
	}
}

// TestAClockThatIsSetBack in a pass does not close what this very pass passed over.
func TestAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	s, at := copied(t, 4), &clock{}
	denied := reads(fault.ErrDenied, "/manifest/0000000000000002-")
	s.bucket.SetHook(func(op fault.Op) fault.Effect {
		e := denied(op)
		if e.Err != nil && at.now().After(time.Now().Add(-time.Hour)) {
			at.moves(-2 * time.Hour)
		}
		return e
	})
	d, _, opts := s.readBackBy(at)
	if n := results(t, opts, "tierd_scrub_open"); n["object"] != 1 || len(ofLog(t, d)) == 0 {
		t.Errorf("open %v, status %v", n, ofLog(t, d))
	}
	if err := d.stop(); err != nil {
		t.Error(err)
	}
}

// TestAClockThatWasAhead holds up neither the hourly look nor the next pass.
func TestAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	s, at := copied(t, 2), &clock{}
	s.bucket.SetHook(reads(fault.ErrDenied, "00010.log"))
	at.moves(365 * 24 * time.Hour)
	d, _, opts := s.readBackBy(at)
	passed := func() int { return results(t, opts, "tierd_scrubbed_segments_total")["passed"] }
	at.moves(-365 * 24 * time.Hour)
	scrub := d.Backend.(*Daemon).scrubber
	s.until("the new time is seen", func() bool {
		scrub.mu.Lock()
		defer scrub.mu.Unlock()
		return scrub.again <= scrub.d.now() && scrub.state.Began <= scrub.d.now()
	})
	before := passed()
	at.moves(time.Hour + time.Minute)
	s.until("it is looked at again", func() bool { return passed() > before })
	at.moves(20 * 24 * time.Hour)
	s.until("the next pass is over", func() bool {
		return strings.Count(s.log.String(), backAgain) == 2
	})
	if err := d.stop(); err != nil {
		t.Error(err)
	}
}

// TestAfterAnOutageAllIsKnownWithinTheHour, however much it is: only what fails is bounded. So it
// is within a pass.
func TestAfterAnOutageAllIsKnownWithinTheHour(t *testing.T) {
	t.Parallel()
	n := scrubOpenFails + 40
	s, at := copied(t, n), &clock{}
	s.bucket.SetHook(reads(fault.ErrDenied, ".log"))
	d, _, opts := s.readBackBy(at)
	passed := func() int { return results(t, opts, "tierd_scrubbed_segments_total")["passed"] }
	if got := d.unknown(); got != n || passed() != n {
		t.Fatalf("%d unknown, %d passed over, want %d", got, passed(), n)
	}
	at.moves(time.Hour + time.Minute)
	s.until("the look is over", func() bool { return passed() >= n+scrubOpenFails })
	s.bucket.SetHook(nil)
	if got := passed(); got != n+scrubOpenFails {
		t.Errorf("a look at what fails went on: %d", got-n)
	}
	at.moves(time.Hour + time.Minute)
	s.until("all is known", func() bool { return d.unknown() == 0 })
	if err := d.stop(); err != nil {
		t.Error(err)
	}
}

// TestWhatIsDueIsLookedAtWithinAPass: a pass may take a month.
func TestWhatIsDueIsLookedAtWithinAPass(t *testing.T) {
	t.Parallel()
	s, at := copied(t, 3), &clock{}
	s.bucket.SetHook(func(op fault.Op) fault.Effect {
		if strings.Contains(op.Key, "00020.log") {
			at.moves(2 * time.Hour)
		}
		return reads(fault.ErrDenied, "00000.log", "00020.log")(op)
	})
	opts, waits := s.options(), newPauses(4+2) // it stays at the third
	opts.Pause, opts.Now = waits.wait, at.now
	d := s.run(opts)
	s.until("it waits", func() bool { return len(waits.all()) > 6 })
	if err := d.stop(); err != nil {
		t.Error(err)
	}
	opts, waits = s.options(), newPauses(0)
	opts.Pause, opts.Now = waits.wait, at.now
	s.bucket.SetHook(reads(fault.ErrDenied, "00020.log"))
	d = s.run(opts)
	s.until("the first is known while the third is waited for", func() bool {
		return len(waits.all()) == 1 && d.truths()[0] == tier.Yes
	})
	if err := d.stop(); err != nil {
		t.Error(err)
	}
}

// TestOneThatIsGivenEndsARow: every second copy, and entry, is in an archive. Each of these is
// tried as often as one that is alone.
func TestOneThatIsGivenEndsARow(t *testing.T) {
	t.Parallel()
	s := copied(t, 10)
	var parts []string
	for i := range 5 {
		parts = append(parts, fmt.Sprintf("000%d0.log", 2*i), fmt.Sprintf("/manifest/%016d-", 2*i+1))
	}
	s.bucket.SetHook(reads(fault.ErrDenied, parts...))
	d, waits, _ := s.readBackBy(&clock{})
	if n := len(waits.all()); n != 10*(scrubTries-1) {
		t.Errorf("%d pauses: %v", n, waits.all())
	}
	if err := d.stop(); err != nil {
		t.Error(err)
	}
}

// scrubberOf is that of a daemon which does nothing of itself.
func scrubberOf(t *testing.T, s *site) *scrubber {
	t.Helper()
	opts := s.options()
	opts.Pause = newPauses(100).wait
	b, done, err := Exclusive(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := done(); err != nil {
			t.Error(err)
		}
	})
	return b.(*Daemon).scrubber
}

// TestTriesAreOfAStoreThatGivesOthers: those while it gave nothing do not count.
func TestTriesAreOfAStoreThatGivesOthers(t *testing.T) {
	t.Parallel()
	site := copied(t, 1)
	s := scrubberOf(t, site)
	tries := s.tries(copyOf(suspicion{tier.LogID{Table: "orders", Name: "0"}, 0}))
	err := error(&exec.WithheldError{Err: errors.New("archived")})
	for _, down := range []bool{false, true, false} {
		site.bucket.SetHook(nil)
		if down {
			site.bucket.SetHook(reads(fault.ErrDenied, "owner.json"))
		}
		for range scrubTries - 1 {
			if tries.over(t.Context(), err) {
				t.Fatalf("down %t: it is over", down)
			}
		}
	}
	if !tries.over(t.Context(), err) {
		t.Error("it goes on")
	}
}

// TestWhatWaitsTheLongestComesFirst, and what is no part of the manifest is closed as it is met.
func TestWhatWaitsTheLongestComesFirst(t *testing.T) {
	t.Parallel()
	s := scrubberOf(t, copied(t, 1))
	at := func(level uint8, pos tier.Position, copy bool) scrubbed {
		return scrubbed{log: tier.LogID{Table: "orders", Name: "0"}, copy: copy,
			at: exec.MendAt{Level: level, Position: pos}}
	}
	gone := at(0, 7, false)
	want := []scrubbed{at(0, 2, true), gone, at(0, 2, false), at(0, 1, true)}
	for _, k := range append([]scrubbed{want[3], want[2]}, want...) {
		s.leave(k, strings.Repeat("é", scrubTextMax), false)
	}
	if got := s.longestOpen(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, u := range s.open {
		if len(u.text) > scrubTextMax+3 {
			t.Errorf("%d bytes of text", len(u.text))
		}
	}
	if _, open := s.open[gone]; !s.mendOpen(t.Context(), gone) || !open {
		t.Error("it was not looked at")
	}
	if _, open := s.open[gone]; open {
		t.Error("what is gone is open")
	}
	if compareScrubbed(at(0, 2, true), at(0, 2, false))*compareScrubbed(at(0, 2, false),
		at(0, 2, true)) >= 0 {
		t.Error("a copy and an entry have no order")
	}
}

// TestSoMuchIsOpenThatNoMoreIs: the store is waited for, and the status says so.
func TestSoMuchIsOpenThatNoMoreIs(t *testing.T) {
	t.Parallel()
	site := copied(t, 1)
	s := scrubberOf(t, site)
	log := tier.LogID{Table: "orders", Name: "0"}
	for i := range scrubOpenMax {
		s.open[copyOf(suspicion{log, tier.Position(10 + i)})] = unsettled{}
	}
	site.bucket.SetHook(reads(fault.ErrDenied, "00000.log"))
	said := ""
	s.d.opts.Pause = func(_ context.Context, d time.Duration) error {
		if d < backoffMax {
			return nil
		}
		st, err := s.d.Status(t.Context())
		for _, r := range st.Reasons {
			said += r.Text
		}
		return errors.Join(err, context.Canceled)
	}
	if s.look(t.Context(), log, 0) || len(s.open) != scrubOpenMax {
		t.Errorf("it is passed over; %d are open", len(s.open))
	}
	if !strings.Contains(said, "00000.log") || len(s.reasons()) != 0 {
		t.Errorf("status while it waits: %q; after: %v", said, s.reasons())
	}
}
