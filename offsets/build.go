package offsets

import (
	"fmt"
	"slices"

	"github.com/tierd/tierd/runtime/tier"
)

// Builder makes a new ledger of what is known elsewhere: by a manifest, and by looking at what it
// names. It derives what follows from that, such as the copied offset, by the very rules that a
// ledger applies, so that the result never says more than it was given.
type Builder struct {
	medium Medium
	index  index
}

// NewBuilder begins in a medium on which nothing happened yet. at is when it is rebuilt; clock is
// the highest time known.
func NewBuilder(m Medium, at, clock tier.Time) (*Builder, error) {
	b := &Builder{medium: m}
	err := m.View(func(r Reader) (err error) {
		b.index, err = load(r)
		return err
	})
	if err == nil && len(b.index.logs)+len(b.index.tables) > 0 {
		err = fmt.Errorf("%w: it is not empty", tier.ErrRefused)
	}
	if err != nil {
		return nil, fmt.Errorf("ledger %s: %w", m, err)
	}
	return b, b.update(func(g *group) error {
		g.root.rebuilt, g.root.clock = at, clock
		return nil
	})
}

// update is one commit.
func (b *Builder) update(fn func(*group) error) error {
	var g *group
	err := b.medium.Update(func(tx Tx) (err error) {
		if g, err = newGroup(&b.index, tx); err != nil {
			return err
		}
		if err := fn(g); err != nil {
			return err
		}
		return g.finish()
	})
	if err != nil {
		return fmt.Errorf("ledger %s: %w", b.medium, err)
	}
	b.index.take(g)
	return nil
}

// Table adds a table.
func (b *Builder) Table(t tier.TableState) error {
	return b.update(func(g *group) error { return g.takeTable(draft{table: &t}) })
}

// Log adds a log with its facts, at most one at each position, and returns its state, of which
// Copied and Holes are derived. What would break the ledger is refused. Its table is to be added,
// before or after.
func (b *Builder) Log(s tier.LogState, facts []tier.Fact) (derived tier.LogState, err error) {
	err = b.update(func(g *group) error {
		if _, known := b.index.logs[s.Log]; known {
			return refuse("log %s was added already", s.Log)
		}
		h := &header{number: g.root.nextLog, state: s}
		h.state.Copied, h.state.Holes = s.Start, nil
		for _, r := range s.Expired {
			h.cover(r)
		}
		var puts []entry
		for i := range facts {
			e, err := h.build(&facts[i])
			if err != nil {
				return err
			}
			puts = append(puts, e...)
		}
		sortHoles(h.state.Holes)
		if err := h.check(); err != nil {
			return refuse("%w", err)
		}
		for _, e := range puts {
			if len(e.body) > valueBytesMax {
				return refuse("%s: the value has %d bytes, more than %d", keyName(e.key), len(e.body),
					valueBytesMax)
			}
			if err := g.w.put(e.key, enclose(e.key, e.body), e.isNew); err != nil {
				return err
			}
		}
		derived = clone(&h.state)
		return g.takeLog(draft{log: h, opened: true})
	})
	return derived, err
}

// build takes one fact in, and gives what is to be stored of it.
func (h *header) build(f *tier.Fact) ([]entry, error) {
	s := &h.state
	if f.Position >= s.Next || f.Epoch > s.Epoch {
		return nil, refuse("log %s: a fact at position %d of epoch %d, where the next is %d of epoch %d",
			s.Log, f.Position, f.Epoch, s.Next, s.Epoch)
	}
	at := func(k kind) []byte { return factKey(k, h.number, f.Position) }
	switch {
	case f.Add != nil:
		h.copies++
		if h.outOfLog(f.Position, f.Epoch, f.Add.Content.Range) {
			h.gone++
		}
		if f.Epoch >= s.Fresh {
			h.cover(h.clip(f.Position, f.Add.Content.Range))
		}
		c := storedCopy{Copy: *f.Add, copied: f.Copied}
		return []entry{{key: at(kindCopy), body: c.encode()},
			{key: attemptIDKey(f.Add.Attempt), body: place{h.number, f.Position}.encode()}}, nil
	case f.Hole != nil:
		hole := storedHole{Hole: *f.Hole, epoch: f.Epoch, copied: f.Copied}
		if f.Epoch >= s.Fresh {
			if counts := h.clip(f.Position, f.Hole.Range); !counts.Empty() {
				h.cover(counts)
				s.Holes = append(slices.Clone(s.Holes), tier.Hole{Range: counts, Cause: f.Hole.Cause,
					At: f.Hole.At})
			}
		}
		return []entry{{key: at(kindHole), body: hole.encode()}}, nil
	}
	m := storedMark{epoch: f.Epoch, copied: f.Copied, at: f.At}
	switch {
	case f.Start != nil:
		m.mark, m.offset = markStart, *f.Start
	case f.Clip != nil:
		m.mark, m.offset = markClip, *f.Clip
	case f.Open != nil:
		m.mark, m.offset = markOpen, *f.Open
	default:
		return nil, refuse("log %s: the fact at position %d says nothing", s.Log, f.Position)
	}
	return []entry{{key: at(kindMark), body: m.encode()}}, nil
}

// Clock sets the highest time known.
func (b *Builder) Clock(at tier.Time) error {
	return b.update(func(g *group) error {
		g.root.clock = at
		return nil
	})
}
