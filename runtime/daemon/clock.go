package daemon

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// storeSecond is the precision of a store's LastModified.
const storeSecond = tier.Time(time.Second)

// agree tells whether the clocks of machine and store agree now, and the time with the highest that
// the ledger has seen. What leaves no copy goes by the clock, so it has to be right.
func (d *Daemon) agree(ctx context.Context) (tier.Truth, string) {
	if why := d.clockStep(); why != nil {
		return tier.No, why.Text
	}
	passed := func() time.Duration { return time.Since(d.began) }
	return d.clocks.Agree(ctx, passed, d.compareClocks)
}

// compareClocks uploads an object of its own and looks when that was by the store's clock. A store
// on this machine has no clock of its own: there is nothing to compare.
func (d *Daemon) compareClocks(ctx context.Context) (tier.Truth, string) {
	cfg := d.gen.Load().config
	if cfg.Bucket.SingleClock() {
		return tier.Yes, "single-clock"
	}
	p, err := d.store.Probe(ctx, rand.Text(), d.now)
	if err != nil {
		return tier.Unknown, err.Error()
	}
	return JudgeProbe(p, cfg.Limits.ClockTolerance)
}

// JudgeProbe tells whether the store's clock agrees with the machine's, and if not, what they say.
func JudgeProbe(p objstore.Probed, tolerance time.Duration) (tier.Truth, string) {
	margin := tier.Time(tolerance) + storeSecond
	if p.LastModified < p.Before-margin || p.LastModified > p.After+margin {
		return tier.No, fmt.Sprintf("an object uploaded at %s was modified at %s by the store's clock; "+
			"limits.clock_tolerance is %s", p.Before, p.LastModified, tolerance)
	}
	return tier.Yes, ""
}

// clockStep says why the wall time cannot be trusted: it is further from the highest time that the
// ledger has seen than limits.max_clock_step, in either direction, also across a restart.
func (d *Daemon) clockStep() *tier.Reason {
	seen, step := d.ledger.Clock(), d.gen.Load().config.Limits.MaxClockStep
	if seen == 0 {
		return nil
	}
	if off := d.now().Sub(seen); off > step || off < -step {
		return &tier.Reason{Code: tier.CodeClock, Text: fmt.Sprintf("the clock says %s, and the highest "+
			"time seen is %s: more than limits.max_clock_step of %s apart; if the clock is right, run: "+
			"tierd clock accept", d.now(), seen, step)}
	}
	return nil
}

// tendClock tells the engine of a step of the clock, and the ledger of the time.
func (d *Daemon) tendClock(ctx context.Context) {
	why := d.clockStep()
	if before := d.clockWhy.Swap(why); (before == nil) != (why == nil) {
		if why != nil {
			d.log.Error("final deletions are paused", "code", why.Code, "why", why.Text)
		}
		d.step(engine.ClockJudged{Reason: why})
	}
	if why != nil || d.now().Sub(d.ledger.Clock()) < config.ClockEvery {
		return
	}
	_, err := d.ledger.Append(context.WithoutCancel(ctx), tier.ClockSeen{At: d.now()})
	if err != nil {
		d.die(err)
	}
}

// AcceptClock takes the wall time for right after a step.
func (d *Daemon) AcceptClock(ctx context.Context) error {
	// A caller who goes away is no reason to end the process.
	_, err := d.ledger.Append(context.WithoutCancel(ctx), tier.ClockAccepted{At: d.now()})
	if err != nil {
		d.die(err)
		return err
	}
	d.log.Warn("the clock was accepted", "now", d.now())
	d.clockWhy.Store(nil)
	d.step(engine.ClockJudged{})
	return nil
}
