package daemon

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/tier"
)

// TestAStoreWhoseClockIsOffIsNoWitness: an object that was uploaded just now was modified a year
// ago, or will be in a year, by the store's clock. Nothing final goes by such clocks.
func TestAStoreWhoseClockIsOffIsNoWitness(t *testing.T) {
	t.Parallel()
	now := tier.TimeOf(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	for name, c := range map[string]struct {
		off  time.Duration
		want tier.Truth
	}{
		"right":            {0, tier.Yes},
		"to the second":    {-900 * time.Millisecond, tier.Yes},
		"within tolerance": {5 * time.Minute, tier.Yes},
		"beyond":           {5*time.Minute + 3*time.Second, tier.No},
		"a year behind":    {-365 * 24 * time.Hour, tier.No},
		"a year ahead":     {365 * 24 * time.Hour, tier.No},
		"no time whatever": {now.Sub(0) * -1, tier.No},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := objstore.Probed{Before: now, After: now.Add(time.Second), LastModified: now.Add(c.off)}
			got, text := JudgeProbe(p, 5*time.Minute)
			if got != c.want || (got == tier.No) != strings.Contains(text, "by the store's clock") {
				t.Errorf("%s, %q; want %s", got, text, c.want)
			}
		})
	}
}

// TestAClockThatWasAYearAheadIsSeen, also after a restart: the ledger keeps the highest time there
// was. Whoever knows that the clock is right now says so.
func TestAClockThatWasAYearAheadIsSeen(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.segments("orders/0", 1)
	for i, want := range []bool{false, true, false} {
		b, done, err := Exclusive(t.Context(), s.options())
		if err != nil {
			t.Fatal(err)
		}
		d := b.(*Daemon)
		if got := d.clockStep() != nil; got != want {
			t.Errorf("start %d: a step of the clock %t, want %t", i, got, want)
		}
		switch i {
		case 0:
			_, err = d.ledger.Append(t.Context(),
				tier.ClockSeen{At: d.now().Add(365 * 24 * time.Hour)})
		case 1:
			err = b.AcceptClock(t.Context())
		}
		if err != nil {
			t.Error(err)
		}
		if err := done(); err != nil {
			t.Error(err)
		}
	}
}

// Whoever asks for a change and goes away does not end the process.
func TestACallerWhoGoesAwayEndsNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.segments("orders/0", 1)
	b, done, err := Exclusive(t.Context(), s.options())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := done(); err != nil {
			t.Error(err)
		}
	}()
	ctx, goAway := context.WithCancel(t.Context())
	goAway()
	if err := b.AcceptClock(ctx); err != nil {
		t.Errorf("accept the clock: %v", err)
	}
	d := b.(*Daemon)
	select {
	case err := <-d.fatal:
		t.Errorf("the process would end: %v", err)
	default:
	}
	if d.ledger.Clock() == 0 {
		t.Error("the time was not accepted")
	}
}

// TestASnapshotKnowsOfTheClock: where no daemon runs, status and plan say all the same that nothing
// final happens by the clocks.
func TestASnapshotKnowsOfTheClock(t *testing.T) {
	t.Parallel()
	s := copiedOrders(t)
	s.configure(siteConfig + "limits: {max_delete_segments: 3, remote_delete_grace: 1ms}\n" +
		"tables: [{name: orders, remote.storage.enable: false, remote.log.disable.policy: delete}]\n")
	opts := s.options()
	opts.NoDelete = true
	if _, err := s.once(opts); err != nil {
		t.Fatal(err)
	}
	opts = s.options()
	opts.Now = func() time.Time { return time.Now().Add(8 * 24 * time.Hour) }
	b, done, err := Snapshot(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { closes(t, done) }()
	st, err := b.Status(t.Context())
	if err != nil || !slices.ContainsFunc(st.Logs[0].Reasons, func(r api.Reason) bool {
		return r.Code == tier.CodeClock
	}) {
		t.Errorf("status: %+v, %v", st.Logs, err)
	}
	p, err := b.Plan(t.Context())
	if err != nil || !slices.ContainsFunc(p.Waiting, func(w api.PlannedWait) bool {
		return w.Action == tier.DisableDelete && w.Reason.Code == tier.CodeClock && w.Next == 30
	}) {
		t.Errorf("plan: %+v, %v", p, err)
	}
}
