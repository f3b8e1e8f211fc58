package sim

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// storeAskedEvery is how often a process asks for the store's clock at most: for so long what it
// was told counts, whatever becomes of that clock.
const storeAskedEvery = time.Minute

// clocks tells whether those of machine, store and ledger agree, as the daemon does: by the highest
// time that the ledger has seen, and by an object that was uploaded not long ago. Where no step is
// bounded there is only one clock, as with a store on the same machine.
func (w *World) clocks(ctx context.Context) (tier.Truth, string) {
	if w.Config.MaxClockStep == 0 {
		return tier.Yes, "single-clock"
	}
	if why := w.clockStep(); why != nil {
		return tier.No, why.Text
	}
	p := w.process
	if p.comparing {
		return w.compareClocks(ctx) // in the middle of a comparison nobody is there to wait for it
	}
	p.comparing = true
	defer func() { p.comparing = false }()
	return p.clocks.Agree(ctx, func() time.Duration { return w.passed }, w.compareClocks)
}

// compareClocks uploads an object, and looks when that was by the store's clock.
func (w *World) compareClocks(ctx context.Context) (tier.Truth, string) {
	w.probes++
	p, err := w.process.store.Probe(ctx, fmt.Sprintf("sim-%d", w.probes), w.now)
	if err != nil {
		return tier.Unknown, err.Error()
	}
	tolerance := tier.Time(w.Config.Tolerance + time.Second)
	if p.LastModified < p.Before-tolerance || p.LastModified > p.After+tolerance {
		if w.Drift != 0 {
			w.driftedApart++
		}
		return tier.No, fmt.Sprintf("an object uploaded at %s was modified at %s by the store's clock",
			p.Before, p.LastModified)
	}
	return tier.Yes, ""
}

// clockStep says why the wall time cannot be trusted.
func (w *World) clockStep() *tier.Reason {
	seen, step := w.process.ledger.Clock(), w.Config.MaxClockStep
	if off := w.Now.Sub(seen); seen != 0 && (off > step || off < -step) {
		return &tier.Reason{Code: tier.CodeClock, Text: fmt.Sprintf("the clock says %s, and the "+
			"highest time seen is %s", w.Now, seen)}
	}
	return nil
}

// tendClock tells the engine of a step of the clock, and the ledger of the time.
func (w *World) tendClock() error {
	if w.Config.MaxClockStep == 0 || w.process.err != nil {
		return w.process.err
	}
	if w.oracle != nil {
		w.oracle.vouched.looked(w.Now, tier.Time(w.Config.MaxClockStep))
	}
	why := w.clockStep()
	if (why == nil) != (w.process.clock == nil) {
		w.process.clock = why
		w.step(engine.ClockJudged{Reason: why})
	}
	var err error
	if why == nil && w.Now.Sub(w.process.ledger.Clock()) >= config.ClockEvery {
		err = w.act(func() error {
			_, err := w.process.ledger.Append(context.Background(), tier.ClockSeen{At: w.Now})
			return err
		})
	}
	if w.oracle != nil && why == nil && err == nil {
		w.oracle.vouched.noted(w.Now)
	}
	return err
}

// Elapse lets time pass for a process that runs: it sees it pass.
func (w *World) Elapse(d time.Duration) error {
	chunk := w.Config.MaxClockStep / 2
	if chunk <= 0 {
		chunk = d
	}
	for d > 0 {
		w.Advance(min(d, chunk))
		d -= chunk
		if err := w.tendClock(); err != nil {
			return err
		}
	}
	return nil
}

// lastMoment lies before the end of time, in 2262: what is reckoned from it still has a time.
const lastMoment = tier.Time(math.MaxInt64 - 20*366*24*time.Hour)

// century is the longest duration that a configuration has.
const century = 100 * 366 * 24 * time.Hour

// left is how much of a time passes in a step: so much that in the end there is time for all that
// settings let data wait for, and a time for what is due after that.
func (h *play) left(d time.Duration) time.Duration {
	c := &h.w.Config
	last := lastMoment.Add(-min(h.p.longest(), century) - min(max(c.Grace, c.OrphanAge), century))
	return max(0, min(d, last.Sub(h.w.Now)))
}

// AcceptClock plays "tierd clock accept".
func (w *World) AcceptClock() error {
	return w.orders(func() error {
		at := w.Now // it goes on meanwhile
		_, err := w.process.ledger.Append(context.Background(), tier.ClockAccepted{At: at})
		if w.oracle != nil {
			w.oracle.accepted(at)
		}
		if err == nil {
			w.process.clock = nil
			w.step(engine.ClockJudged{})
		}
		return err
	})
}

// astray reports whether the store's clock is further from the machine's than is tolerated.
func (w *World) astray() bool {
	off := max(w.Skew, -w.Skew)
	return w.Config.MaxClockStep > 0 && off > w.Config.Tolerance+2*time.Second
}

// longAstray reports whether it has been for longer than what a process was told of it counts: then
// nothing that leaves no copy may happen.
func (o *Oracle) longAstray() bool {
	return o.w.astray() && o.w.passed-o.tolerated > storeAskedEvery
}
