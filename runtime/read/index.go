package read

import (
	"cmp"
	"errors"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/tierd/tierd/runtime/tier"
)

// factsPage is how many positions are read from the ledger at once.
const factsPage = 1024

// remoteCopy is what is kept in memory of a copy of the ledger.
type remoteCopy struct {
	tier.Range // what of its range counts: less than the file has where it was clipped
	position   tier.Position
	epoch      tier.TierEpoch
	maxTime    tier.Time
	lineage    []tier.EpochStart
	aborts     bool // it has a .txnindex
	sum        tier.SHA256
	stat       tier.Stat // of the file that was copied
}

// ending is a file that was copied.
type ending struct {
	base tier.Offset
	sum  tier.SHA256
}

// identity is a file on disk.
type identity struct {
	base tier.Offset
	stat tier.Stat
}

// span is a range of offsets with the copy that they are read from.
type span struct {
	tier.Range
	copy *remoteCopy
}

// remoteIndex says which copy of a log has which offsets.
type remoteIndex struct {
	mu      sync.Mutex
	built   stateKey
	settled tier.Position // every copy below it is known
	copies  map[tier.Position]remoteCopy
	spans   []span // ascending, disjoint
	ends    map[identity]tier.Offset
}

// stateKey is what of a log's durable state decides which copies count. Copies that finish out of
// their order change nothing of it: they are found by looking again.
type stateKey struct {
	next             tier.Position
	copied, logStart tier.Offset
	fresh            tier.TierEpoch
	moves, clips     int
	table            tier.TierState
	policy           tier.DisablePolicy
	since            tier.Time
}

func keyOf(v *view) stateKey {
	s, t := &v.state, &v.table
	return stateKey{s.Next, s.Copied, s.LogStart, s.Fresh, len(s.Moves), len(s.Clips), t.State,
		t.Policy, t.Since}
}

// remote returns the index of the log, brought up to date. Where again is set it looks for copies
// that have finished without a trace in the log's state.
func (r *Reader) remote(v *view, again bool) ([]span, error) {
	if !v.opened {
		return nil, nil
	}
	r.mu.Lock()
	x := r.indexes[v.id]
	if x == nil {
		x = &remoteIndex{copies: map[tier.Position]remoteCopy{}}
		r.indexes[v.id] = x
	}
	r.mu.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	key := keyOf(v)
	if key == x.built && !(again && x.settled < key.next) {
		return x.spans, nil
	}
	// It may be another ledger's log, or one that was opened anew. And the ledger forgets what took
	// copies out of a log with the last of them: that they are gone is not seen by its state.
	if key.next < x.built.next || v.table.Leaves() {
		x.copies, x.settled, x.spans = map[tier.Position]remoteCopy{}, 0, nil
	}
	if err := x.learn(r.c.Ledger, v); err != nil {
		return nil, err
	}
	x.spans = x.paint(v)
	x.built = key
	return x.spans, nil
}

// learn reads the facts that are not known yet.
func (x *remoteIndex) learn(ledger Ledger, v *view) error {
	for from := x.settled; from < v.state.Next; from += factsPage {
		facts, err := ledger.Facts(v.id, from, min(from+factsPage, v.state.Next))
		if err != nil {
			return err
		}
		for _, f := range facts {
			if f.Add != nil {
				var records tier.SourceFile
				if files := f.Add.Content.Files; len(files) > 0 {
					records = files[0]
				}
				x.copies[f.Position] = remoteCopy{Range: f.Add.Content.Range, position: f.Position,
					sum: records.SHA256, stat: records.Stat, epoch: f.Add.Epoch,
					maxTime: f.Add.Content.MaxTime, lineage: f.Add.Content.Lineage,
					aborts: slices.ContainsFunc(f.Add.Content.Files, func(s tier.SourceFile) bool {
						return strings.HasSuffix(s.Name, extTxnIndex)
					})}
			}
		}
	}
	for ; x.settled < v.state.Next; x.settled++ {
		if _, known := x.copies[x.settled]; known {
			continue
		}
		_, err := ledger.Attempt(v.id, x.settled)
		if err == nil {
			break // it may still become a copy
		}
		if !errors.Is(err, tier.ErrVanished) {
			return err
		}
	}
	return nil
}

// paint says which copy has which offsets: of several the one that came last.
func (x *remoteIndex) paint(v *view) []span {
	var list []*remoteCopy
	for pos, c := range x.copies {
		if c.Next <= v.state.LogStart && len(v.state.Moves) == 0 {
			delete(x.copies, pos) // out of the log for good, and its objects with it
			continue
		}
		if counts(v, &c) {
			list = append(list, &c)
		}
	}
	if openEnded(v) {
		x.end(list)
	}
	slices.SortFunc(list, func(a, b *remoteCopy) int {
		return cmp.Or(cmp.Compare(a.Base, b.Base), cmp.Compare(a.position, b.position))
	})
	var out []span
	var over []*remoteCopy // copies that reach beyond at
	at := tier.Offset(0)
	for i := 0; i < len(list) || len(over) > 0; {
		if len(over) == 0 {
			at = max(at, list[i].Base)
		}
		for ; i < len(list) && list[i].Base <= at; i++ {
			over = append(over, list[i])
		}
		over = slices.DeleteFunc(over, func(c *remoteCopy) bool { return c.Next <= at })
		if len(over) == 0 {
			continue
		}
		top := slices.MaxFunc(over, func(a, b *remoteCopy) int {
			return cmp.Compare(a.position, b.position)
		})
		end := top.Next
		if i < len(list) {
			end = min(end, list[i].Base)
		}
		if n := len(out); n > 0 && out[n-1].copy == top && out[n-1].Next == at {
			out[n-1].Next = end
		} else {
			out = append(out, span{tier.Range{Base: at, Next: end}, top})
		}
		at = end
	}
	return out
}

// end lets each copy end where the same file ever ended, and notes where that is: a file ends where
// the next one begins, and its range grows where that goes away. It did not.
func (x *remoteIndex) end(list []*remoteCopy) {
	ends := map[ending]tier.Offset{}
	for _, c := range list {
		if end, known := ends[ending{c.Base, c.sum}]; !known || c.Next < end {
			ends[ending{c.Base, c.sum}] = c.Next
		}
	}
	x.ends = map[identity]tier.Offset{}
	for _, c := range list {
		c.Next = ends[ending{c.Base, c.sum}]
		x.ends[identity{c.Base, c.stat}] = c.Next
	}
}

// openEnded reports whether the log may have files of which nothing but the next one tells where
// they end.
func openEnded(v *view) bool { return v.layout == tier.LayoutPlain }

// shorten lets a local segment end where its file did when it was copied. It reports whether it has
// offsets above o.
func (r *Reader) shorten(v *view, s *tier.LocalSegment, o tier.Offset) (bool, error) {
	if _, err := r.remote(v, false); err != nil || !openEnded(v) || !v.opened {
		return true, err
	}
	r.mu.Lock()
	x := r.indexes[v.id]
	r.mu.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if end, known := x.ends[identity{s.Base, s.Log}]; known && s.Closed() {
		s.Next = min(s.Next, end)
	}
	return s.Next > o, nil
}

// counts reports whether the copy can be read at all, and cuts it where clips say so.
func counts(v *view, c *remoteCopy) bool {
	for _, clip := range v.state.Clips {
		if clip.Position > c.position {
			c.Next = min(c.Next, clip.Offset)
		}
	}
	// A log may come into the epoch of its table later than others, when its source is back.
	if c.Empty() || c.epoch < max(v.state.Fresh, v.table.Fresh) {
		return false
	}
	if v.table.Policy != tier.PolicyDelete || v.table.State == tier.Enabled {
		return true
	}
	for _, m := range v.state.Moves {
		if m.Cause == tier.MoveDisabled && m.At >= v.table.Since {
			return c.Next <= v.state.LogStart // for those who were reading it when it left
		}
	}
	return true
}

// from returns the first span that ends above the offset.
func from(spans []span, o tier.Offset) (span, bool) {
	i := firstAbove(spans, o)
	if i == len(spans) {
		return span{}, false
	}
	return spans[i], true
}

func firstAbove(spans []span, o tier.Offset) int {
	return sort.Search(len(spans), func(i int) bool { return spans[i].Next > o })
}
