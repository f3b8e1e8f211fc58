package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// lineage is which leader epochs the copies of a log are of.
type lineage []lineagePiece

// lineagePiece is what of one copy counts.
type lineagePiece struct {
	tier.Range
	position tier.Position
	epochs   []tier.EpochStart
}

// lineageOf reads the lineage of the copies at the positions. A copy that is gone has none.
func (x *Executor) lineageOf(log tier.LogID, positions []tier.Position) (lineage, error) {
	state, _ := x.c.Ledger.Log(log)
	var out lineage
	for _, pos := range positions {
		c, err := x.c.Ledger.Copy(log, pos)
		if errors.Is(err, ErrVanished) {
			continue
		}
		if err != nil {
			return nil, fatal(err)
		}
		r := tier.Clipped(state.Clips, pos, c.Content.Range)
		if !r.Empty() && c.Epoch >= state.Fresh {
			out = append(out, lineagePiece{r, pos, c.Content.Lineage})
		}
	}
	slices.SortFunc(out, func(a, b lineagePiece) int { return cmp.Compare(a.Base, b.Base) })
	return out, nil
}

// at is the leader epoch of the newest copy that has the offset; false where there is none, or its
// batches carry none.
func (l lineage) at(o tier.Offset) (epoch tier.LeaderEpoch, known bool) {
	newest := tier.Position(0)
	for i := range l {
		switch p := &l[i]; {
		case p.Base > o:
			return epoch, known
		case p.Contains(o) && (!known || p.position >= newest):
			newest = p.position
			epoch, known = tier.EpochAt(p.epochs, o)
		}
	}
	return epoch, known
}

// end is where the last of the copies ends.
func (l lineage) end() (end tier.Offset) {
	for i := range l {
		end = max(end, l[i].Next)
	}
	return end
}

// disputes finds the lowest offset at which the content that was just read is of another leader
// epoch than what was copied there.
func (l lineage) disputes(c *tier.Content) (at tier.Offset, found bool) {
	consider := func(o tier.Offset) {
		now, known := tier.EpochAt(c.Lineage, o)
		was, copied := l.at(o)
		if known && copied && now != was && (!found || o < at) {
			at, found = o, true
		}
	}
	for _, e := range c.Lineage {
		consider(e.Start)
	}
	for i := range l {
		for _, e := range l[i].epochs {
			if e.Start < c.LastNext && l[i].Contains(e.Start) {
				consider(e.Start)
			}
		}
	}
	return at, found
}

// disputesRecord finds the lowest offset in the range of which the source's record of its leader
// epochs says another one than what was copied there.
func (l lineage) disputesRecord(record []tier.EpochStart, r tier.Range) (at tier.Offset,
	found bool) {
	if r.Empty() {
		return 0, false
	}
	var within []tier.EpochStart
	if e, known := tier.EpochAt(record, r.Base); known {
		within = append(within, tier.EpochStart{Epoch: e, Start: r.Base})
	}
	for _, e := range record {
		if e.Start > r.Base && e.Start < r.Next {
			within = append(within, e)
		}
	}
	return l.disputes(&tier.Content{Lineage: within, LastNext: r.Next})
}

// disputed compares what was read for a copy with the copies that it overlaps.
func (x *Executor) disputed(f engine.Copy, content *tier.Content) (engine.Disputed, bool, error) {
	if len(f.Over) == 0 {
		return engine.Disputed{}, false, nil
	}
	known, err := x.lineageOf(f.Log, f.Over)
	if err != nil {
		return engine.Disputed{}, false, err
	}
	at, found := known.disputes(content)
	return engine.Disputed{At: at, Segment: f.Segment.Log}, found, nil
}

// errSeen ends a walk that has seen enough.
var errSeen = errors.New("seen enough")

// compare looks, batch for batch, where the source stops being what was copied, and ends the copies
// there. The epoch of a batch is not covered by its checksum: where the source keeps a record of
// its leader epochs, that must say the same. Durable sub-step: Diverged. The manifest entry follows
// as a Publish.
func (x *Executor) compare(ctx context.Context, f engine.Compare) (engine.Result, error) {
	src, err := x.source(f.Source)
	if err != nil {
		return failure(tier.CodeSourceVanished, "%v", err), nil
	}
	scan, whole, err := src.Look(ctx, f.Log)
	if err != nil {
		return engine.Failed{Reason: classify(err, tier.CodeSourceUnread)}, nil
	}
	if !whole {
		return failure(tier.CodeSourceUnread, "%s: not everything could be read", f.Log), nil
	}
	known, err := x.lineageOf(f.Log, f.Copies)
	if err != nil {
		return nil, err
	}
	state, _ := x.c.Ledger.Log(f.Log)
	if n := len(state.Clips); n > 0 && state.Clips[n-1].Position >= f.Clips {
		return engine.Diverged{State: state}, nil // by an earlier call that was given up
	}
	from := max(f.From, scan.SourceStart, state.LogStart, state.Start)
	at, epoch, was := tier.Offset(-1), tier.NoLeaderEpoch, tier.NoLeaderEpoch
	seen, unseen := from, tier.Offset(-1)
	look := func(next tier.Offset) {
		if o, found := known.disputesRecord(scan.Lineage, tier.Range{Base: seen, Next: next}); found &&
			unseen < 0 {
			unseen = o
		}
	}
	err = src.Batches(ctx, f.Log, tier.Range{Base: from, Next: known.end()},
		func(b tier.Range, e tier.LeaderEpoch) error {
			o := max(b.Base, from)
			look(o)
			seen = max(seen, b.Next)
			copied, ok := known.at(o)
			if !ok || e == tier.NoLeaderEpoch || e == copied {
				return nil
			}
			at, epoch, was = o, e, copied
			return errSeen
		})
	switch {
	case err != nil && !errors.Is(err, errSeen):
		return engine.Failed{Reason: classify(err, tier.CodeUnreadable)}, nil
	case at < 0 && scan.LocalEnd < known.end():
		return engine.Silent{}, nil
	case at < 0:
		if look(known.end()); unseen >= 0 {
			x.tellUnread(f.Log, known, unseen, scan.Lineage)
		}
		return engine.Agreed{}, nil
	}
	if says, ok := tier.EpochAt(scan.Lineage, at); ok && says != epoch {
		return failure(tier.CodeLineage, "%s: at offset %d the batch is of leader epoch %d, the copy of "+
			"%d, and the source's own record says %d: nothing of the log is decided before they agree",
			f.Log, at, epoch, was, says), nil
	}
	return x.diverge(ctx, f.Log, at, epoch, was)
}

// tellUnread tells people where the source's record contradicts a copy, and no batch is there that
// could be read: it is damaged, or compaction took it. The record alone cuts nothing off.
func (x *Executor) tellUnread(log tier.LogID, known lineage, at tier.Offset,
	record []tier.EpochStart) {
	was, _ := known.at(at)
	says, _ := tier.EpochAt(record, at)
	x.trouble(tier.Problem{Path: log.String(), Reason: tier.Reason{Code: tier.CodeLineage,
		Text: fmt.Sprintf("the source's own record says leader epoch %d at offset %d, the copy is of "+
			"%d, and no batch there can be read: the copy goes on to count", says, at, was)}})
}

func (x *Executor) diverge(ctx context.Context, log tier.LogID, at tier.Offset,
	epoch, was tier.LeaderEpoch) (engine.Result, error) {
	if why := x.MayRecord(ctx, log); why != nil {
		return engine.Failed{Reason: *why}, nil
	}
	_, err := x.decide(ctx, tier.Diverged{Log: log, Offset: at, At: x.c.Now()})
	if errors.Is(err, ErrRefused) {
		return failure(tier.CodeRetry, "%v", err), nil
	}
	if err != nil {
		return nil, fatal(err)
	}
	x.trouble(tier.Problem{Path: log.String(), Reason: tier.Reason{Code: tier.CodeLineage,
		Text: fmt.Sprintf("the source has written anew from offset %d on: its batches are of leader "+
			"epoch %d, the copies of %d; what was copied from there on counts no more", at, epoch, was)}})
	state, ok := x.c.Ledger.Log(log)
	if !ok {
		return nil, fmt.Errorf("ledger: %s is not there after it diverged", log)
	}
	return engine.Diverged{State: state}, nil
}

// agrees reports whether the source's record of its leader epochs says of each run of batches of a
// copy what they said themselves. Where it keeps silent they alone count.
func agrees(record, copied []tier.EpochStart) bool {
	for _, e := range copied {
		if says, known := tier.EpochAt(record, e.Start); known && e.Epoch != tier.NoLeaderEpoch &&
			says != e.Epoch {
			return false
		}
	}
	return true
}
