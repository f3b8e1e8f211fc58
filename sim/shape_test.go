package sim

import (
	"testing"
	"time"

	"github.com/tierd/tierd/sim/choose"
)

// TestClocksDrift: while ten days pass on the machine, the store's clock goes on by what is less or
// more, and NTP does what it can.
func TestClocksDrift(t *testing.T) {
	t.Parallel()
	const tenDays = 240 * time.Hour
	for _, tt := range []struct {
		name  string
		drift int
		ntp   ntp
		skew  time.Duration // of the store's clock
		set   time.Duration // of the machine's, when it starts
	}{
		{"steady", 0, ntpNone, 0, 0},
		{"fast", 1000, ntpNone, -864 * time.Second, 0},
		{"slow", -20_000, ntpNone, 17280 * time.Second, 0},
		{"slewed", -50, ntpSlews, 0, 0},
		{"slewed, and too fast for that", 1000, ntpSlews, -432 * time.Second, 0},
		{"set back at the start", 1000, ntpAtBoot, 0, -864 * time.Second},
		{"set ahead at the start", -1000, ntpAtBoot, 0, 864 * time.Second},
	} {
		c := testConfig()
		c.MaxClockStep = 7 * 24 * time.Hour
		w, err := NewWorld(c, scenarioStart)
		must(err)
		w.Drift, w.NTP = tt.drift, tt.ntp
		must(w.Start())
		must(w.Elapse(tenDays))
		before := w.Now
		w.Crash(nil)
		(&play{w: w}).boots()
		w.Objects.Put("x", nil)
		a, err := w.Objects.Attributes(t.Context(), "x")
		must(err)
		if got := a.LastModified.Sub(w.Now.Std()); got != tt.skew || w.Now.Sub(before) != tt.set {
			t.Errorf("%s: the store is %s ahead, and the machine was set by %s", tt.name, got,
				w.Now.Sub(before))
		}
	}
}

// TestShapesAreChoices: the shape of a clock is drawn for each seed, and a scenario has it.
func TestShapesAreChoices(t *testing.T) {
	t.Parallel()
	p, err := Builtin()
	must(err)
	steady, drifting := 0, 0
	for seed := range uint64(12) {
		r := &choose.Recorder{Chooser: choose.NewRandom(seed + 1)}
		out := p.Run(r, Options{})
		for _, c := range r.Made {
			if c.Label != "the machine's clock" {
				continue
			}
			if c.Pick == 0 {
				steady++
				break
			}
			drifting++
			again, err := p.Replay(&choose.Scenario{Choices: r.Made})
			if err != nil || again.Hash != out.Hash {
				t.Errorf("seed %d, whose clock %s: the replay is another history: %v", seed+1, c.Name, err)
			}
		}
	}
	if steady == 0 || drifting == 0 {
		t.Errorf("%d steady clocks, %d that drift", steady, drifting)
	}
}
