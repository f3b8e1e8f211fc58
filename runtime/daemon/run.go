package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// stopPatience is how long a stop waits for copies under way before it abandons them, where Options
// do not say.
const stopPatience = 20 * time.Second

// Serve makes a run reachable until ctx ends, and calls listening once it is.
type Serve func(ctx context.Context, b api.Backend, listening func()) error

// Run runs tierd until ctx ends or something makes it unsafe to go on. serve runs beside it, with
// the backend to answer from; it returns when its context ends. reload is a signal to load the
// configuration anew.
func Run(ctx context.Context, opts Options, serve Serve, reload <-chan os.Signal) error {
	d, err := open(ctx, opts)
	if err != nil {
		return err
	}
	d.running = true
	if d.kafka, err = d.openKafka(); err != nil {
		return errors.Join(err, d.close())
	}
	defer d.kafka.close()
	work, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	d.work = work
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.watchFatal(ctx) })
	listening := make(chan struct{})
	g.Go(func() error { return serve(ctx, d, sync.OnceFunc(func() { close(listening) })) })
	g.Go(func() error { return d.reloads(ctx, reload) })
	g.Go(func() error {
		select {
		case <-listening: // one that cannot be asked does nothing
		case <-ctx.Done():
			return nil
		}
		err := d.begin(ctx, 0, "tierd run")
		if err == nil {
			_, err = d.scanAll(ctx)
		}
		if ctx.Err() != nil {
			return nil // stopped before it was ready
		}
		if err != nil {
			return err
		}
		d.ready.Store(true)
		d.log.Info("ready", "ledger", d.ledger.ID(), "sources", len(d.sources))
		return d.keepOn(ctx)
	})
	err = d.ended(g.Wait())
	return errors.Join(err, d.stop(abandon))
}

// keepOn scans, watches and ticks until ctx ends.
func (d *Daemon) keepOn(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, s := range d.sources {
		g.Go(func() error { return d.scans(ctx, s) })
		g.Go(func() error { return d.watch(ctx, s) })
		g.Go(func() error { return d.tendTopics(ctx, s) })
	}
	g.Go(func() error { return d.tick(ctx) })
	g.Go(func() error { return d.tendFacts(ctx) })
	g.Go(func() error { return d.tendGroups(ctx) })
	g.Go(func() error { return d.readAhead(ctx) })
	g.Go(func() error { return d.scrubber.run(ctx) })
	g.Go(func() error { return d.kafka.serve(ctx) })
	return g.Wait()
}

// begin makes sure that the store is this ledger's, resolves what a crash left open, and lets the
// engine decide from then on. It goes on trying to reach the store until ctx ends, or for retryFor
// where that is not 0. command is what was called, for whoever has to call it again.
func (d *Daemon) begin(ctx context.Context, retryFor time.Duration, command string) error {
	if d.disablement(d.gen.Load()) != nil {
		// Whoever is to accept it is told what of it is not local, too.
		if _, err := d.scanAll(ctx); err != nil {
			return err
		}
	}
	if err := d.confirm(d.gen.Load(), d.opts.Accept, command); err != nil {
		return err
	}
	if err := d.own(ctx, retryFor); err != nil {
		return err
	}
	d.tellOfLost(ctx)
	if err := d.exec.ResolveIntents(ctx); err != nil {
		return err
	}
	d.tend()
	d.step(engine.Started{})
	return nil
}

// owner is who this daemon is to the store.
func (d *Daemon) owner(ledger string) objstore.Owner {
	return objstore.Owner{Ledger: ledger, Host: nodeName(), DataDir: d.gen.Load().config.DataDir,
		Created: d.now()}
}

// nodeName is this machine's name, to the store, to policies and to plugins.
func nodeName() string {
	if name := os.Getenv("TIERD_NODE"); name != "" {
		return name
	}
	name, _ := os.Hostname()
	return name
}

// own claims the ledger's id in the store, or confirms it.
func (d *Daemon) own(ctx context.Context, retryFor time.Duration) error {
	owner := d.owner(d.ledger.ID())
	began := time.Now()
	for wait := backoffMin; ; wait = min(2*wait, backoffMax) {
		err := knows(ctx, d.store, d.hasCopied())
		if err == nil {
			err = d.store.Own(ctx, owner)
		}
		switch refused := refusal(err); {
		case refused == nil:
		case d.opts.Adopt && !errors.Is(err, tier.ErrNewer):
			d.log.Warn("the store's objects are taken over", "why", err)
			err = d.store.Adopt(ctx, owner)
		default:
			return refused
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		if retryFor > 0 && time.Since(began)+wait > retryFor {
			return fmt.Errorf("the store cannot be reached: %w", err)
		}
		d.log.Error("the store cannot be reached; nothing is decided before", "err", err,
			"again_in", wait)
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// refusal says why the store is not taken for this ledger's, and what to do about it; nil where the
// error is another. The store was reached: to try again is of no use, and nobody but an operator
// knows that no other tierd has this ledger.
func refusal(err error) error {
	switch {
	case errors.Is(err, tier.ErrNewer):
		return fmt.Errorf("the owner object in the store: %w; run the tierd that wrote it, or a "+
			"later one", err)
	case errors.Is(err, objstore.ErrOtherOwner):
		return fmt.Errorf("%w; if that one runs no more, because the ledger was moved: "+
			"tierd run --adopt", err)
	case errors.Is(err, tier.ErrDamaged):
		return fmt.Errorf("the owner object in the store is damaged: %w; if no other tierd runs with "+
			"this ledger, write it anew: tierd run --adopt", err)
	case errors.Is(err, errUnknownStore):
		return err
	}
	return nil
}

// errUnknownStore: the store has nothing of a ledger that has copied already.
var errUnknownStore = errors.New("the ledger has copied, and this store does not know of it")

// knows wants the store of a ledger that has copied to have its owner object, which is there before
// the first copy. One that has not is another one, or nothing is mounted in its place: what was
// copied into that would be out of sight later, and what it does not have would pass for removed.
func knows(ctx context.Context, store *objstore.Store, copied bool) error {
	if !copied {
		return nil
	}
	_, err := store.Owner(ctx)
	if errors.Is(err, tier.ErrVanished) {
		return fmt.Errorf("%w: %s is not there. Is it the right bucket, and mounted? To begin on an "+
			"empty one all the same: tierd run --adopt", errUnknownStore, store.Keys().Owner())
	}
	return err
}

// hasCopied reports whether the ledger ever had a copy.
func (d *Daemon) hasCopied() bool {
	return slices.ContainsFunc(d.ledger.Logs(), func(id tier.LogID) bool {
		s, _ := d.ledger.Log(id)
		return s.Next > 0
	})
}

// watchFatal ends the run when nothing is known to be durable any more.
func (d *Daemon) watchFatal(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-d.fatal:
		d.stopping.Store(true)
		return err
	}
}

// ended is for the error of a run whose goroutines have ended. If a full disk may be the cause, the
// reserve is given up, so that the next start has room. Quotas do not show in what is free.
func (d *Daemon) ended(err error) error {
	if err == nil {
		return nil
	}
	_, free, unknown := d.disk()
	if vfs.IsFull(err) || unknown == nil && free < reserveBytes {
		err = errors.Join(err, d.reserve.release())
	}
	return roomWanted(err, d.gen.Load().config.DataDir)
}

func (d *Daemon) reloads(ctx context.Context, signals <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-signals:
			_, _ = d.reloadGeneration("") // it says so itself
		}
	}
}

// stop lets copies under way finish, abandons them when that takes too long, and gives everything
// back. No deletion begins once it has been called.
func (d *Daemon) stop(abandon func()) error {
	d.ready.Store(false)
	d.stopping.Store(true)
	d.log.Info("stopping")
	wait := d.opts.StopPatience
	if wait == 0 {
		wait = stopPatience
	}
	patience, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	d.pool.wait(patience)
	abandon()
	last, cancelLast := context.WithTimeout(context.Background(), wait/4)
	defer cancelLast()
	d.pool.wait(last)
	return d.close()
}
