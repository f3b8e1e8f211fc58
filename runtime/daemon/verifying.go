package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"time"

	thanos "github.com/thanos-io/objstore"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/objstore/deadline"
	"github.com/tierd/tierd/objstore/retry"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/verify"
)

// Stored is a store for those who check or restore what it has.
type Stored struct{ *objstore.Store }

var _ verify.Stored = Stored{}

// FactsPast implements verify.Stored.
func (s Stored) FactsPast(ctx context.Context, log tier.LogID, past func(error) error) (
	[]tier.Fact, map[string]error, error) {
	facts, problems, err := s.ManifestPast(ctx, log, past)
	wrong := map[string]error{}
	for _, p := range problems {
		wrong[p.Key] = p.Err
	}
	return facts, wrong, err
}

// Entry implements verify.Store.
func (s Stored) Entry(ctx context.Context, log tier.LogID, pos tier.Position,
	attempt tier.AttemptID) (f tier.Fact, key string, err error) {
	if key, err = s.Keys().Entry(log, pos, attempt); err == nil {
		f, err = s.Fact(ctx, log, pos, attempt)
	}
	return f, key, err
}

// Block implements verify.Store.
func (s Stored) Block(ctx context.Context, log tier.LogID, level uint8, block uint64) (
	facts []tier.Fact, key string, err error) {
	if key, err = s.Keys().Checkpoint(log, level, block); err == nil {
		facts, _, err = s.Checkpoint(ctx, log, level, block)
	}
	return facts, key, err
}

// OpenStored opens the objects of a ledger for reading, in a process of its own: nothing is shared
// with a daemon that may run. Of a ledger that has copied it wants the store to have something. The
// function that it returns gives the client back.
func OpenStored(ctx context.Context, opts Options, c *config.Config, ledger string, copied bool) (
	Stored, func() error, error) {
	raw, err := opts.Bucket(ctx, c.Bucket, opts.Log)
	if err != nil {
		return Stored{}, nil, fmt.Errorf("bucket: %w", err)
	}
	b, err := robust(raw, c.Copy.Timeout, bytesPerSecondMin)
	if err != nil {
		return Stored{}, nil, errors.Join(err, raw.Close())
	}
	s, err := objstore.New(b, ledger)
	if err != nil {
		return Stored{}, nil, errors.Join(err, raw.Close())
	}
	if copied {
		if err := hasAny(ctx, s); err != nil {
			return Stored{}, nil, errors.Join(err, raw.Close())
		}
	}
	return Stored{s}, raw.Close, nil
}

// BucketThere wants the directory of a FILESYSTEM bucket to be there. It is asked before anything
// is opened, since that makes the directory, and whoever only reads is to make none.
func BucketThere(c *config.Config) error {
	if c.Bucket.Directory == "" {
		return nil
	}
	_, err := os.Stat(c.Bucket.Directory)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("bucket: the directory %s is not there. Is its file system mounted?",
			c.Bucket.Directory)
	}
	return err
}

// hasAny wants the store to have its owner object, or anything else of the ledger: without the
// owner object alone it can still be looked at and read. What the store does not give is no answer,
// and for whoever reads it to tell of.
func hasAny(ctx context.Context, s *objstore.Store) error {
	if _, err := s.Owner(ctx); !errors.Is(err, tier.ErrVanished) {
		return nil
	}
	found := errors.New("found")
	if err := s.Objects(ctx, func(tier.StoredObject) error { return found }); err != nil {
		return nil
	}
	return fmt.Errorf("%w: %s is not there, and nothing else of it. Is it the right bucket, and "+
		"mounted?", errUnknownStore, s.Keys().Owner())
}

// robust gives each call on a bucket a deadline, and repeats those that fail for the moment.
func robust(b thanos.Bucket, timeout time.Duration, slowest int64) (thanos.Bucket, error) {
	bounded, err := deadline.Wrap(b, deadline.Options{Call: timeout, BytesPerSecond: slowest})
	if err != nil {
		return nil, err
	}
	return retry.Wrap(bounded, retry.Options{Attempts: 5, Base: 100 * time.Millisecond,
		Max: 5 * time.Second, Total: timeout, Now: time.Now, Sleep: retry.Sleep,
		Rand: mathrand.Float64})
}

// Ledgered gathers what the ledger behind b holds of a log.
func Ledgered(ctx context.Context, b api.Backend, id tier.LogID) (*verify.Log, *api.Copies, error) {
	l := &verify.Log{ID: id}
	for from := tier.Position(0); ; {
		c, err := b.Copies(ctx, id, from)
		if err != nil {
			return nil, nil, err
		}
		l.Facts = append(l.Facts, c.Facts...)
		for _, x := range c.Counted {
			l.Counted = append(l.Counted, tier.Counted{Range: tier.Range{Base: x.Base, Next: x.Next},
				Position: x.Position})
		}
		if from = c.Next; from < c.Positions {
			l.Attempts = append(l.Attempts, c.Attempts...)
			continue
		}
		l.Layout, l.Start, l.Copied = c.Layout, c.LogStart, c.CopiedOffset
		l.Positions, l.Unpublished, l.Checkpointed = c.Positions, c.Unpublished, c.Checkpoints
		l.Attempts = append(l.Attempts, c.Attempts...)
		for _, h := range c.Holes {
			l.Holes = append(l.Holes, tier.Hole{Range: tier.Range{Base: h.Base, Next: h.Next},
				Cause: h.Cause, At: tier.Time(h.At)})
		}
		return l, c, nil
	}
}
