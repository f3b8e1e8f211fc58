package read

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"sync"

	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/tier"
)

// extSnapshot is the ending of the file with the state of the producers at the base of a segment.
const extSnapshot = ".snapshot"

// stepsBack is how many segments without a snapshot are looked through, for transactions that are
// still open. A broker writes one for each segment, and keeps it as long.
const stepsBack = 4

// stablesMax bounds how many logs' open transactions are remembered.
const stablesMax = 1024

// LastStable returns the offset below which every transaction has ended: what read_committed reads
// up to. It is the end of the log where none is open. The state of the producers comes from the
// last segment's .snapshot, as when a broker loads the log, and from the batches behind it; what
// was seen once is remembered.
func (r *Reader) LastStable(ctx context.Context, id tier.LogID) (tier.Offset, error) {
	v, err := r.view(id)
	if err != nil || v.layout != tier.LayoutKafka {
		return v.end, err
	}
	u := r.stables.of(id)
	select { // one at a time: others wait for what it finds
	case u.lock <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-u.lock }()
	if u.known && u.at != v.end {
		if err := u.confirm(ctx, r, &v); err != nil {
			return 0, err
		}
	}
	if !u.known {
		if err := u.begin(ctx, r, &v); err != nil {
			return 0, err
		}
	}
	if err := u.goOn(ctx, r, &v); err != nil {
		return 0, err
	}
	stable := v.end
	for _, first := range u.open {
		stable = min(stable, first)
	}
	return max(stable, v.start), nil
}

// stables holds what is known of logs' open transactions.
type stables struct {
	mu    sync.Mutex
	logs  map[tier.LogID]*undecided
	order []tier.LogID
}

func (s *stables) of(id tier.LogID) *undecided {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.logs[id]; u != nil {
		return u
	}
	if s.logs == nil {
		s.logs = map[tier.LogID]*undecided{}
	}
	if len(s.order) == stablesMax {
		delete(s.logs, s.order[0])
		s.order = s.order[1:]
	}
	u := &undecided{lock: make(chan struct{}, 1)}
	s.logs[id], s.order = u, append(s.order, id)
	return u
}

// undecided is the open transactions of one log, of the batches below at.
type undecided struct {
	lock  chan struct{} // held by whoever uses the rest
	known bool
	at    tier.Offset
	last  kbatch.Batch          // the one before at; its Size is 0 where none was seen
	open  map[int64]tier.Offset // by producer: where its transaction begins
}

// confirm looks whether the log still has the batch that was seen last. A log that was cut off and
// written anew, as after an election without the old leader, is looked at from the beginning.
func (u *undecided) confirm(ctx context.Context, r *Reader, v *view) error {
	if u.known = u.at <= v.end && u.at >= v.start && u.last.Size > 0; !u.known {
		return nil
	}
	p, ok, err := r.place(v, u.last.Base, true, false)
	if err != nil || !ok {
		u.known = false
		return err
	}
	f, err := r.openPlace(ctx, v, p)
	if err != nil {
		u.known = false
		return nil // begin tells, if it still cannot be opened
	}
	b, _, err := f.seek(u.last.Base)
	u.known = err == nil && b.Base == u.last.Base && b.CRC == u.last.CRC
	return f.close()
}

// begin finds the last segment at whose base the producers are known, or the one to begin with
// where that is not known of any.
func (u *undecided) begin(ctx context.Context, r *Reader, v *view) error {
	u.at, u.last, u.open = v.start, kbatch.Batch{}, map[int64]tier.Offset{}
	o := v.end - 1
	for step := 0; o >= v.start; step++ {
		p, ok, err := r.place(v, o, true, false)
		if err != nil {
			return err
		}
		if !ok {
			break // nothing lies there
		}
		open, found := map[int64]tier.Offset(nil), false
		err = r.inPlace(ctx, v, p, func(f *segfile) (err error) {
			u.at = f.base
			open, found, err = f.snapshot()
			return err
		})
		if err != nil {
			return err
		}
		if found {
			u.open = open
		}
		if found || p.Base <= v.start || p.Base > o || step == stepsBack {
			break
		}
		o = p.Base - 1
	}
	u.known = true
	return nil
}

// inPlace opens a place for fn.
func (r *Reader) inPlace(ctx context.Context, v *view, p place, fn func(*segfile) error) (
	err error) {
	f, err := r.openPlace(ctx, v, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	return fn(f)
}

// goOn looks at the batches up to the end of the log. What an error cuts short is gone on with the
// next time.
func (u *undecided) goOn(ctx context.Context, r *Reader, v *view) error {
	if u.at == v.end {
		return nil
	}
	err := r.each(ctx, v, max(u.at, v.start), func(p place) (bool, error) {
		return true, r.inPlace(ctx, v, p, func(f *segfile) error { return u.walk(f, v, p) })
	})
	if err == nil {
		u.at = v.end
	}
	return err
}

// walk looks at the batches of one place, and at nothing behind the end of the log: what lies there
// may be half of one.
func (u *undecided) walk(f *segfile, v *view, p place) error {
	below := f.below(v, p)
	b, _, err := f.seek(u.at)
	for err == nil && b.Last < below && b.Base < p.Next {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		if u.add(&b); u.at >= v.end {
			return nil
		}
		b, err = f.next(b.Position + b.Size)
	}
	if err != nil && err != io.EOF {
		return f.named(err)
	}
	return nil
}

// add takes one batch more. A marker ends its producer's transaction, whichever way.
func (u *undecided) add(b *kbatch.Batch) {
	u.at, u.last = b.Next(), *b
	switch _, open := u.open[b.ProducerID]; {
	case !b.Transactional:
	case b.Control:
		delete(u.open, b.ProducerID)
	case !open:
		u.open[b.ProducerID] = b.Base
	}
}

// snapshot reads the open transactions at the base of the segment; false where no snapshot tells.
//
// It is a version i16 (1), a CRC-32C u32 of all that follows, a count i32, and entries of 46 bytes:
// producer id i64, epoch i16, last sequence i32, last offset i64, offset delta i32, timestamp i64,
// coordinator epoch i32, first offset of the current transaction i64 or -1 (source: Apache Kafka,
// ProducerStateManager).
func (f *segfile) snapshot() (open map[int64]tier.Offset, found bool, err error) {
	data, err := f.content(extSnapshot)
	if useless(err) || err == nil && data == nil {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	const head, entry = 10, 46
	if len(data) < head || binary.BigEndian.Uint16(data) != 1 || binary.BigEndian.Uint32(data[2:]) !=
		crc32.Checksum(data[6:], crc32.MakeTable(crc32.Castagnoli)) {
		return nil, false, nil
	}
	open = map[int64]tier.Offset{}
	for rest := data[head:]; len(rest) >= entry; rest = rest[entry:] {
		if first := int64(binary.BigEndian.Uint64(rest[38:])); first >= 0 {
			open[int64(binary.BigEndian.Uint64(rest))] = tier.Offset(first)
		}
	}
	return open, true, nil
}
