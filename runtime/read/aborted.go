package read

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"github.com/tierd/tierd/runtime/tier"
)

// Aborted returns the aborted transactions that have records in [from, to) or around it, as the
// segments' .txnindex files tell, ascending by their last offset: what a client of read_committed
// needs to leave them out.
func (r *Reader) Aborted(ctx context.Context, id tier.LogID, from, to tier.Offset) (
	[]AbortedTxn, error) {
	v, err := r.view(id)
	if err != nil || v.layout != tier.LayoutKafka || from >= to {
		return nil, err
	}
	var out []AbortedTxn
	look := func(p place) (bool, error) {
		list, err := r.abortedIn(ctx, &v, p)
		for _, t := range list {
			if t.Last >= from && t.First < to {
				out = append(out, t)
			}
			if t.LastStable >= to {
				return false, err // every later one began above
			}
		}
		return true, err
	}
	o := max(from, v.start)
	for more := true; more && err == nil && o < v.end; {
		if o, err = r.withoutAborts(&v, o); err == nil && o < v.end {
			o, more, err = r.step(ctx, &v, o, look)
		}
	}
	slices.SortStableFunc(out, func(a, b AbortedTxn) int { return cmp.Compare(a.Last, b.Last) })
	return slices.Compact(out), err
}

// withoutAborts steps over remote copies that have no .txnindex, of which the ledger tells: a log
// can have a hundred thousand of them, and most logs nothing else. It stops where something is
// local.
func (r *Reader) withoutAborts(v *view, o tier.Offset) (tier.Offset, error) {
	spans, err := r.remote(v, false)
	if err != nil {
		return o, err
	}
	end := v.end
	if v.local.Usable {
		if s, ok := r.c.Local.From(v.id, max(o, v.local.SourceStart)); ok {
			end = min(end, max(s.Base, v.local.SourceStart))
		}
	}
	for i := firstAbove(spans, o); o < end && i < len(spans) && spans[i].Base <= o; i++ {
		if spans[i].copy.aborts {
			break
		}
		o = min(spans[i].Next, end)
	}
	return o, nil
}

// AbortedTxn is an aborted transaction. All offsets are inclusive but LastStable, below which every
// transaction had ended when this one did.
type AbortedTxn struct {
	ProducerID  int64
	First, Last tier.Offset
	LastStable  tier.Offset
}

// quiet remembers closed local segments that have no .txnindex. It is safe for concurrent use.
type quiet struct {
	mu    sync.Mutex
	files map[quietFile]bool
}

// quietFile is a segment's file as it was: one that was written anew may have aborted transactions.
type quietFile struct {
	log  tier.LogID
	base tier.Offset
	stat tier.Stat
}

// quietMax bounds how many are remembered.
const quietMax = 1 << 16

func (q *quiet) has(f quietFile) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.files[f]
}

func (q *quiet) add(f quietFile) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.files == nil || len(q.files) == quietMax {
		q.files = map[quietFile]bool{}
	}
	q.files[f] = true
}

// abortedIn reads the .txnindex of the place. One that the store lost cannot be made up for by
// looking at less: without it, aborted records would pass for committed ones.
func (r *Reader) abortedIn(ctx context.Context, v *view, p place) (out []AbortedTxn, err error) {
	known := quietFile{v.id, p.segment.Base, p.segment.Log}
	if p.local && r.quiet.has(known) {
		return nil, nil
	}
	f, err := r.openPlace(ctx, v, p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	data, err := f.content(extTxnIndex)
	if err != nil {
		return nil, err
	}
	if data == nil && p.local {
		// There was none, or all of the segment is going just now.
		again, err := r.c.Local.Open(ctx, v.id, f.name)
		if err != nil {
			return nil, err
		}
		if p.segment.Closed() && f.stat == known.stat {
			r.quiet.add(known)
		}
		return nil, again.Close()
	}
	for ; len(data) >= txnIndexEntryBytes; data = data[txnIndexEntryBytes:] {
		n := func(at int) int64 { return int64(binary.BigEndian.Uint64(data[at:])) }
		if version := binary.BigEndian.Uint16(data); version != 0 {
			return nil, f.named(tier.ErrNewer)
		}
		out = append(out, AbortedTxn{n(2), tier.Offset(n(10)), tier.Offset(n(18)), tier.Offset(n(26))})
	}
	return out, nil
}
