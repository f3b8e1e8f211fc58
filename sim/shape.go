package sim

import (
	"fmt"
	"time"

	"github.com/tierd/tierd/sim/choose"
)

// The machine's clock has a shape in each history: it is steady, or runs fast or slow: by little,
// as quartz does, by more than NTP slews, or by so much that the store's clock is soon no witness.
// NTP lets it be, slews it, or steps it when the machine starts.

// drifts are how much faster than the store's clock the machine's runs, in parts per million. The
// second is what choosers without rates take.
var drifts = []int{0, 0, 0, 0, 50, -50, 1000, -1000, 20_000, -20_000}

// ntp is what becomes of a machine's clock that is not that of the store.
type ntp uint8

const (
	ntpNone   ntp = iota
	ntpSlews      // the clock runs up to slewPPM faster or slower, until it is right
	ntpAtBoot     // it is set when the machine starts
)

var ntpNames = []string{ntpNone: "nobody sets it", ntpSlews: "it is slewed",
	ntpAtBoot: "it is set when the machine starts"}

// slewPPM is the most by which Linux slews a clock.
const slewPPM = 500

// share is so many parts per million of the time.
func share(d time.Duration, ppm int) time.Duration {
	return d / 1_000_000 * time.Duration(ppm) // in this order, since weeks are many nanoseconds
}

// apart moves the clocks apart, and together, while so much time passes on the machine.
func (w *World) apart(d time.Duration) {
	if d <= 0 || w.Drift == 0 {
		return
	}
	w.Skew -= share(d, w.Drift)
	if w.NTP == ntpSlews {
		most := share(d, slewPPM)
		w.Skew -= max(-most, min(w.Skew, most))
	}
}

// setClock sets the machine's clock to what the store's says, and returns by how much that was.
func (w *World) setClock() (by time.Duration) {
	by, w.Skew = w.Skew, 0
	w.Now = w.Now.Add(by)
	return by
}

// drawShape draws how the machine's clock shall be. Faultless histories have a steady one.
func (r *rates) drawShape(c choose.Chooser) {
	drift := choose.Rate(c, "drift", drifts...)
	r.ntp = ntp(choose.Rate(c, "ntp", int(ntpNone), int(ntpNone), int(ntpSlews), int(ntpAtBoot)))
	if !r.faultless {
		r.drift = drift
	}
}

// shape has the clock that was drawn, as a choice that replays it.
func (h *play) shape() {
	names, weights := []string{driftName(0)}, []int{0}
	ppm := []int{0}
	for _, d := range drifts {
		if d != 0 {
			ppm, names, weights = append(ppm, d), append(names, driftName(d)), append(weights, 0)
		}
	}
	for i, d := range ppm {
		if d == h.rate.drift {
			weights[i] = 1
		}
	}
	h.w.Drift = ppm[choose.Later(h.c, "the machine's clock", names, weights)]
	if h.w.Drift == 0 {
		return
	}
	weights = make([]int, len(ntpNames))
	weights[h.rate.ntp] = 1
	h.w.NTP = ntp(choose.Pick(h.c, "ntp", ntpNames, weights))
	h.line(LaneClock, "%s; %s", driftName(h.w.Drift), ntpNames[h.w.NTP])
}

func driftName(ppm int) string {
	switch {
	case ppm > 0:
		return fmt.Sprintf("runs %d millionths fast", ppm)
	case ppm < 0:
		return fmt.Sprintf("runs %d millionths slow", -ppm)
	}
	return "steady"
}

// boots is the start of a machine, at which its clock may be set.
func (h *play) boots() {
	if h.w.NTP == ntpAtBoot {
		h.sets("is set at the start of the machine")
	}
}

// sets has NTP set the machine's clock.
func (h *play) sets(how string) {
	if by := h.w.setClock(); by != 0 {
		h.line(LaneClock, "%s, by %s", how, by)
	}
}
