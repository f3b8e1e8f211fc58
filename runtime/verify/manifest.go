package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tierd/tierd/runtime/tier"
)

// Manifest compares the log's manifest in the store with the ledger: what a reader of it sees, the
// entries that are of no copy, and the checkpoints. For those of copies there is Entry.
func Manifest(ctx context.Context, s Store, l *Log) ([]Finding, error) {
	facts, wrong, err := s.Facts(ctx, l.ID)
	partly := errors.Is(err, tier.ErrUnread)
	var out []Finding
	switch {
	case partly:
		out = append(out, Finding{Kind: KindUnread, Log: l.ID, Text: err.Error()})
	case err != nil:
		return nil, err
	}
	for key, why := range wrong {
		x := Finding{Kind: KindManifest, Log: l.ID, Object: key, Text: why.Error()}
		if errors.Is(why, tier.ErrUnread) {
			x.Kind, partly = KindUnread, true
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b Finding) int { return cmp.Compare(a.Object, b.Object) })
	there := byPosition(facts)
	for i := range facts {
		if f := &facts[i]; f.Position >= l.Positions {
			out = append(out, Finding{Kind: KindStale, Log: l.ID, Position: f.Position, Text: fmt.Sprintf(
				"the manifest has an entry at position %d, and the ledger's next one is %d: the ledger "+
					"is an older one", f.Position, l.Positions)})
		}
	}
	for i := range l.Facts {
		f := &l.Facts[i]
		if slices.Contains(l.Unpublished, f.Position) || there.says(f) {
			continue
		}
		if partly && len(there[f.Position]) == 0 {
			continue // what was not given may say it; the entry itself is looked at by its name
		}
		x := Finding{Kind: KindManifest, Log: l.ID, Position: f.Position,
			Text: fmt.Sprintf("the manifest says nothing of position %d", f.Position)}
		if len(there[f.Position]) > 0 {
			x.Text = fmt.Sprintf("the manifest says otherwise of position %d than the ledger", f.Position)
		}
		if f.Add != nil {
			x.Range = f.Add.Content.Range
		}
		out = append(out, x)
	}
	more, err := blocks(ctx, s, l)
	if out = append(out, more...); err != nil {
		return out, err
	}
	for i := range l.Facts {
		f := &l.Facts[i]
		if f.Add != nil || slices.Contains(l.Unpublished, f.Position) {
			continue
		}
		more, err := entry(ctx, s, l.ID, f)
		if out = append(out, more...); err != nil {
			return out, err
		}
	}
	return out, nil
}

// Entry looks at the entry of a copy: a deletion asks for it by its name, whichever checkpoint
// stands for it.
func Entry(ctx context.Context, s Store, l *Log, c *tier.Copy) ([]Finding, error) {
	f, ok := l.fact(c.Position)
	if !ok {
		return nil, fmt.Errorf("log %s: no fact at position %d", l.ID, c.Position)
	}
	return entry(ctx, s, l.ID, &f)
}

func entry(ctx context.Context, s Store, log tier.LogID, f *tier.Fact) ([]Finding, error) {
	attempt, r := tier.AttemptID{}, tier.Range{}
	if f.Add != nil {
		attempt, r = f.Add.Attempt, f.Add.Content.Range
	}
	got, key, err := s.Entry(ctx, log, f.Position, attempt)
	if err == nil && !f.Says(&got) {
		err = fmt.Errorf("%s says otherwise than the ledger: %w", key, tier.ErrDamaged)
	}
	return manifestFinding(Finding{Log: log, Position: f.Position, Range: r, Object: key}, err)
}

// manifestFinding makes a finding of an error that says something about the object.
func manifestFinding(x Finding, err error) ([]Finding, error) {
	switch {
	case err == nil:
		return nil, nil
	case errors.Is(err, tier.ErrVanished), errors.Is(err, tier.ErrDamaged),
		errors.Is(err, tier.ErrNewer):
		x.Kind, x.Text = KindManifest, err.Error()
		return []Finding{x}, nil
	case errors.Is(err, tier.ErrUnread):
		x.Kind, x.Text = KindUnread, err.Error()
		return []Finding{x}, nil
	}
	return nil, err
}

// blocks looks at the checkpoints that no higher one stands for.
func blocks(ctx context.Context, s Store, l *Log) (out []Finding, err error) {
	for i, n := range l.Checkpointed {
		level, block := uint8(i+1), uint64(0)
		if i+1 < len(l.Checkpointed) {
			block = l.Checkpointed[i+1] * tier.CheckpointRadix
		}
		for ; block < n; block++ {
			facts, key, err := s.Block(ctx, l.ID, level, block)
			if err == nil && !l.within(facts, level, block) {
				err = fmt.Errorf("%s says otherwise than the ledger: %w", key, tier.ErrDamaged)
			}
			found, err := manifestFinding(Finding{Log: l.ID, Object: key}, err)
			if err != nil {
				return out, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

// within reports whether the facts of a checkpoint are all that the ledger has in its block.
func (l *Log) within(facts []tier.Fact, level uint8, block uint64) bool {
	span := tier.Position(tier.CheckpointSpan(level))
	first := tier.Position(block) * span
	there := byPosition(facts)
	i, _ := l.find(first)
	for ; i < len(l.Facts) && l.Facts[i].Position < first+span; i++ {
		if !there.says(&l.Facts[i]) {
			return false
		}
	}
	return true
}

// stored are the facts that the store has, by position: a log may have a hundred thousand of them.
type stored map[tier.Position][]tier.Fact

func byPosition(facts []tier.Fact) stored {
	s := make(stored, len(facts))
	for _, f := range facts {
		s[f.Position] = append(s[f.Position], f)
	}
	return s
}

// says reports whether the store has the same fact at its position.
func (s stored) says(f *tier.Fact) bool {
	return slices.ContainsFunc(s[f.Position], func(x tier.Fact) bool { return f.Says(&x) })
}
