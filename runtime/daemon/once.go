package daemon

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// oncePoll is how often a run with an end lets the engine see time pass.
const oncePoll = 20 * time.Millisecond

// Report is what is left when a run with an end has ended.
type Report struct {
	Progress
	Waiting []Left // for a time, a policy, a pause or a clock: nothing is wrong
	Alarms  []Left // errors, quarantine, holes, trouble: somebody has to look
}

// Left is one reason, with the log that it concerns; the zero log where it concerns all.
type Left struct {
	Log    tier.LogID
	Source string // set where it concerns a whole source
	Reason tier.Reason
}

// RunOnce scans and works until nothing more can be done now. What fails is tried again for
// retryFor. serve runs beside it, as in Run.
func RunOnce(ctx context.Context, opts Options, retryFor time.Duration, serve Serve) (
	*Report, error) {
	d, err := open(ctx, opts)
	if err != nil {
		return nil, err
	}
	d.running = true
	work, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	d.work = work
	var report *Report
	g, gctx := errgroup.WithContext(ctx)
	serveCtx, served := context.WithCancel(gctx)
	defer served()
	g.Go(func() error { return d.watchFatal(serveCtx) })
	listening := make(chan struct{})
	g.Go(func() error {
		return serve(serveCtx, d, sync.OnceFunc(func() { close(listening) }))
	})
	g.Go(func() error {
		defer served()
		// One that cannot be asked does nothing.
		select {
		case <-listening:
		case <-gctx.Done():
			return gctx.Err()
		}
		first := d.gen.Load()
		askGroups(gctx, first.facts, first.config, d.now)
		if err := d.begin(gctx, retryFor, "tierd run --once"); err != nil {
			return err
		}
		d.ready.Store(true)
		d.scrubber.lookOnce(gctx)
		if err := d.drain(gctx, retryFor); err != nil {
			return err
		}
		report = d.report()
		return nil
	})
	err = d.ended(g.Wait())
	return report, errors.Join(err, d.stop(abandon))
}

// drain passes until a look at all sources brings nothing new and nothing is left to start.
func (d *Daemon) drain(ctx context.Context, retryFor time.Duration) error {
	var failing time.Time
	for {
		changed, err := d.scanAll(ctx)
		if err != nil {
			return err
		}
		d.step(engine.Tick{})
		acted, err := d.settle(ctx)
		if err != nil {
			return err
		}
		if changed || acted {
			continue
		}
		until := d.retryAt()
		if until == 0 {
			return nil
		}
		if failing.IsZero() {
			failing = time.Now()
		}
		if time.Since(failing) > retryFor {
			return nil
		}
		if err := pause(ctx, min(max(until.Sub(d.now()), oncePoll), time.Second)); err != nil {
			return err
		}
	}
}

// settle waits until the engine is idle, and tells whether it was not.
func (d *Daemon) settle(ctx context.Context) (acted bool, err error) {
	ticker := time.NewTicker(oncePoll)
	defer ticker.Stop()
	for {
		d.mu.Lock()
		idle := d.engine.Idle()
		d.mu.Unlock()
		if idle {
			return acted, nil
		}
		acted = true
		select {
		case <-ctx.Done():
			return acted, ctx.Err()
		case <-d.nudge: // something has ended, and may have been the last
		case <-ticker.C:
			d.step(engine.Tick{})
		}
	}
}

// retryAt is when the first of the logs that failed is tried again; absent if none failed.
func (d *Daemon) retryAt() tier.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.engine.RetryAt()
}

// report sums up what is left.
func (d *Daemon) report() *Report {
	r := &Report{Progress: d.progressNow()}
	if why := d.pause.Load(); why != nil {
		r.Waiting = append(r.Waiting, Left{Reason: *why})
	}
	for _, why := range slices.Concat(d.policyReasons(), d.factReasons(), d.pluginReasons()) {
		r.Alarms = append(r.Alarms, Left{Reason: why})
	}
	for _, s := range d.sourceStatus() {
		for _, why := range s.Reasons {
			if why.Alarm {
				r.Alarms = append(r.Alarms, Left{Source: s.Name,
					Reason: tier.Reason{Code: why.Code, Text: why.Text}})
			}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range d.engine.Logs() {
		v, _ := d.engine.Log(id)
		for _, why := range v.Alarms {
			r.Alarms = append(r.Alarms, Left{Log: id, Reason: why})
		}
		for _, why := range v.Waiting {
			r.Waiting = append(r.Waiting, Left{Log: id, Reason: why})
		}
	}
	return r
}

// Snapshot answers reading commands where no daemon runs. Close gives the ledger back.
func Snapshot(ctx context.Context, opts Options) (api.Backend, func() error, error) {
	d, err := openSnapshot(ctx, opts)
	if err != nil {
		return nil, nil, err
	}
	return d, d.close, nil
}

// Exclusive answers commands that change something where no daemon runs: it holds the lock of
// data_dir as one would, and starts nothing. Close gives everything back.
func Exclusive(ctx context.Context, opts Options) (api.Backend, func() error, error) {
	d, err := open(ctx, opts)
	if err != nil {
		return nil, nil, err
	}
	if err := d.look(ctx); err != nil {
		return nil, nil, errors.Join(err, d.close())
	}
	return d, d.close, nil
}
