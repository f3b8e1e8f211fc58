package verify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// Patient is a store whose errors say whether to go on: one of an object that it does not give
// while it gives others is tier.ErrUnread. Where it gives nothing, the error stays what it is.
type Patient struct {
	Stored
	// Answers asks for the one object that is sure to be there; an error says that the store as a
	// whole is not to be had.
	Answers func(ctx context.Context) error
	// Within is for how long it may give nothing but that one object.
	Within time.Duration
	Now    func() time.Time

	mu   sync.Mutex
	gave time.Time // when it gave something last; zero before anything was asked for
}

// Stored is a Store that goes past what it does not give of a manifest.
type Stored interface {
	Files
	Entry(ctx context.Context, log tier.LogID, pos tier.Position, attempt tier.AttemptID) (
		f tier.Fact, key string, err error)
	Block(ctx context.Context, log tier.LogID, level uint8, block uint64) (facts []tier.Fact,
		key string, err error)
	Objects(ctx context.Context, fn func(tier.StoredObject) error) error
	// FactsPast is Facts. Where past makes tier.ErrUnread of the error of an object, that is wrong,
	// and the rest is read.
	FactsPast(ctx context.Context, log tier.LogID, past func(error) error) ([]tier.Fact,
		map[string]error, error)
}

var _ Store = (*Patient)(nil)

// unread is what was said of an object that the store did not give. Its text is that alone.
type unread struct{ error }

// Is makes it tier.ErrUnread.
func (unread) Is(err error) bool { return err == tier.ErrUnread }

// Unwrap returns what was said.
func (u unread) Unwrap() error { return u.error }

// Facts implements Store.
func (p *Patient) Facts(ctx context.Context, log tier.LogID) (facts []tier.Fact,
	wrong map[string]error, err error) {
	past := func(err error) error { return p.judge(ctx, err) }
	facts, wrong, err = p.Stored.FactsPast(ctx, log, past)
	return facts, wrong, p.judge(ctx, err)
}

// Entry implements Store.
func (p *Patient) Entry(ctx context.Context, log tier.LogID, pos tier.Position,
	attempt tier.AttemptID) (f tier.Fact, key string, err error) {
	f, key, err = p.Stored.Entry(ctx, log, pos, attempt)
	return f, key, p.judge(ctx, err)
}

// Block implements Store.
func (p *Patient) Block(ctx context.Context, log tier.LogID, level uint8, block uint64) (
	facts []tier.Fact, key string, err error) {
	facts, key, err = p.Stored.Block(ctx, log, level, block)
	return facts, key, p.judge(ctx, err)
}

// Objects implements Store.
func (p *Patient) Objects(ctx context.Context, fn func(tier.StoredObject) error) error {
	return p.judge(ctx, p.Stored.Objects(ctx, fn))
}

// StatFile implements Files.
func (p *Patient) StatFile(ctx context.Context, k tier.ObjectKey, size int64) error {
	return p.judge(ctx, p.Stored.StatFile(ctx, k, size))
}

// ReadFile implements Files.
func (p *Patient) ReadFile(ctx context.Context, k tier.ObjectKey, off int64, bufs ...[]byte) error {
	return p.judge(ctx, p.Stored.ReadFile(ctx, k, off, bufs...))
}

// judge is what to make of the outcome of a call.
func (p *Patient) judge(ctx context.Context, err error) error {
	switch {
	case err == nil, errors.Is(err, tier.ErrVanished), errors.Is(err, tier.ErrDamaged),
		errors.Is(err, tier.ErrNewer):
		p.silent(true)
		return err
	case errors.Is(err, tier.ErrUnread), ctx.Err() != nil, p.Answers(ctx) != nil:
		return err
	}
	if d := p.silent(false); d > p.Within {
		return fmt.Errorf("the store has given nothing for %s: %w", d.Round(time.Second), err)
	}
	return unread{err}
}

// silent is for how long the store has given nothing.
func (p *Patient) silent(gave bool) time.Duration {
	now := p.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if gave || p.gave.IsZero() {
		p.gave = now
	}
	return now.Sub(p.gave)
}
