package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"slices"

	thanos "github.com/thanos-io/objstore"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/tier"
)

// checkBytesMax bounds what a check reads of segments that wait to be copied.
const checkBytesMax = 1 << 30

// Checker has looked at what a configuration names as a start would, and changed nothing. It takes
// no lock but the ledger's shared one, and that for a while alone. Where a daemon holds the ledger,
// that one looks itself, and only the directories are looked at.
type Checker struct {
	d      *Daemon
	ledger string // its id; "" where none could be read
	copied bool   // the ledger has copied
	held   bool   // by a daemon
	wrong  error  // with the ledger
	found  map[string]logdir.Result
	failed map[string][]error // segments that a copy would fail on
	unread engine.Extent
}

// NewChecker looks at the ledger and at every source. The error says why that could not be done at
// all. Close gives it back.
func NewChecker(ctx context.Context, opts Options) (_ *Checker, err error) {
	k := &Checker{found: map[string]logdir.Result{}, failed: map[string][]error{}}
	opts.Bucket = nowhere // the store is tried apart
	if k.d, err = openReadOnly(ctx, opts, k.openLedger); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, k.d.close())
		}
	}()
	for _, s := range k.d.sources {
		res, err := s.look(ctx, k.d.now, k.d.gen.Load().config.Table)
		if err != nil {
			return nil, err
		}
		k.found[s.Name] = res
		k.d.scanned(s, &res)
	}
	if k.ledger != "" {
		k.wrong = k.d.confirm(k.d.gen.Load(), "", "tierd run")
		if why := k.d.clockStep(); why != nil {
			k.wrong = errors.Join(k.wrong, fmt.Errorf("%s: %s", why.Code, why.Text))
		}
	}
	if k.held || k.ledger == "" && k.wrong != nil {
		return k, nil // what is copied is not known
	}
	if err := k.d.knownLosses(ctx); err != nil {
		return nil, err
	}
	// Reading takes its time, and a daemon may want to start.
	if err := k.d.ledger.Close(); err != nil {
		return nil, err
	}
	return k, k.read(ctx)
}

// nowhere is a store that has nothing.
func nowhere(context.Context, config.Bucket, *slog.Logger) (thanos.Bucket, error) {
	return thanos.NewInMemBucket(), nil
}

// openLedger opens the ledger that is there, and an empty one where there is none to be had.
func (k *Checker) openLedger(d *Daemon, c *config.Config) error {
	err := d.openLedger(c, true)
	switch {
	case err == nil:
		k.ledger, k.copied = d.ledger.ID(), d.hasCopied()
		return nil
	case errors.Is(err, offsets.ErrInUse):
		k.held = true
		for i := range c.Sources { // their locks are the daemon's
			c.Sources[i].LocalDelete = tier.LocalDeleteNever
		}
	case errors.Is(err, tier.ErrVanished): // no start yet, or it was lost
		k.wrong = sameAge(c.DataDir)
	default:
		k.wrong = err
	}
	d.ledger, err = offsets.Open(offsets.NewMemory([16]byte{1}))
	return err
}

// Close gives back what the checker holds.
func (k *Checker) Close() error { return k.d.close() }

// Ledger reports what a start would refuse of the ledger, or of what the configuration would do to
// it. read is false where there is none yet, or a daemon has it.
func (k *Checker) Ledger() (path string, read bool, err error) {
	path = filepath.Join(k.d.gen.Load().config.DataDir, ledgerFile)
	return path, k.ledger != "" || k.wrong != nil, k.wrong
}

// Source reports what is wrong with the files of a source, as a run would tell of it; nil where
// nothing is.
func (k *Checker) Source(name string) error {
	res := k.found[name]
	s := k.d.sourceNamed(name)
	if s.trouble != nil && !(k.held && res.Empty) { // emptied by tierd's own hand, perhaps
		return fmt.Errorf("%s: %s", s.trouble.Code, s.trouble.Text)
	}
	problems := res.Problems
	for i := range res.Scans {
		problems = append(problems, res.Scans[i].Problems...)
	}
	var errs []error
	for i, p := range problems {
		if !slices.Contains(problems[:i], p) { // of a log's directory, and of the log
			errs = append(errs, fmt.Errorf("%s: %s: %s", p.Code, p.Path, p.Text))
		}
	}
	return errors.Join(append(errs, k.failed[name]...)...)
}

// Unread is what waits to be copied and was too much to be read.
func (k *Checker) Unread() (segments, bytes int64) { return k.unread.Segments, k.unread.Bytes }

// Topics reports what is wrong with how the cluster of a source and the configuration go together;
// nil where nothing is, or where the source has no cluster.
func (k *Checker) Topics(ctx context.Context, name string) error {
	s, c := k.d.sourceNamed(name), k.d.gen.Load().config
	if s.cluster == nil {
		return nil
	}
	var errs []error
	for _, why := range s.topics.look(ctx, s.cluster, c.Table) {
		errs = append(errs, errors.New(why.Text))
	}
	for _, name := range tablesOf(k.found[name].Logs) {
		if t, ok := c.Table(name); ok && t.Tiering && c.Named(name) && t.Compacted != tier.Yes &&
			s.topics.compacted(name) == tier.Yes {
			errs = append(errs, fmt.Errorf("%s: the topic %s is compacted, and is not tiered: say "+
				"compacted: true, or remote.storage.enable: false", t.Entry, name))
		}
	}
	return errors.Join(errs...)
}

// Bucket reports why a start would not take the store for the ledger's.
func (k *Checker) Bucket(ctx context.Context, bucket thanos.Bucket) error {
	if k.ledger == "" {
		return nil
	}
	store, err := objstore.New(bucket, k.ledger)
	if err == nil {
		err = knows(ctx, store, k.copied)
	}
	if err == nil {
		err = store.Confirm(ctx, k.d.owner(k.ledger))
	}
	if errors.Is(err, tier.ErrVanished) {
		return nil // a start makes it
	}
	if refused := refusal(err); refused != nil {
		return refused
	}
	return err
}

// read reads what is to be copied, in the order in which it would be.
func (k *Checker) read(ctx context.Context) error {
	left := int64(checkBytesMax)
	for _, c := range k.d.engine.PlanCopies(math.MaxInt).List {
		if err := ctx.Err(); err != nil {
			return err
		}
		view, _ := k.d.engine.Log(c.Log)
		segment, ok := k.d.engine.LocalFrom(c.Log, c.Base)
		if !ok {
			continue
		}
		if left -= segment.Bytes; left < 0 {
			k.unread.Segments++
			k.unread.Bytes += segment.Bytes
			continue
		}
		res := k.d.exec.TryRead(ctx, engine.Copy{Log: c.Log, Source: view.Source, Segment: segment})
		failed, ok := res.(engine.Failed)
		if !ok {
			continue
		}
		why := failed.Reason
		switch why.Code {
		case tier.CodeVanished, tier.CodeChanged: // meanwhile: that is no damage
			continue
		case tier.CodeDamaged:
			why = engine.Quarantine(c.Log, segment.Base, why)
		}
		k.failed[view.Source] = append(k.failed[view.Source], fmt.Errorf("%s: %s", why.Code, why.Text))
	}
	return nil
}

// knownLosses tells the engine of damaged segments whose loss was accepted, which it would learn
// from trying to copy them.
func (d *Daemon) knownLosses(ctx context.Context) error {
	for _, id := range d.ledger.Logs() {
		state, _ := d.ledger.Log(id)
		d.mu.Lock()
		view, _ := d.engine.Log(id)
		d.mu.Unlock()
		for _, loss := range state.Accepted {
			d.mu.Lock()
			segment, ok := d.engine.LocalFrom(id, loss.Range.Base)
			d.mu.Unlock()
			if !ok || segment.Range != loss.Range {
				continue
			}
			known, err := d.exec.LossKnown(ctx, view.Source, id, segment)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err == nil && known { // another error is for whoever tries to copy it
				d.step(engine.LossAccepted{Accepted: loss, Segment: segment})
			}
		}
	}
	return nil
}
