package offsets

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/tierd/tierd/runtime/tier"
)

// groupMax bounds how many records are committed together.
const groupMax = 4096

// pending is a record that waits for its commit.
type pending struct {
	record   tier.Record
	position tier.Position
	err      error
}

// batch is the records of one group. They are told together.
type batch struct {
	records []*pending
	done    chan struct{} // closed once position and err of each are final
}

// Append makes r durable before it returns, together with whatever else is appended at the same
// time: of those that wait, one commits for all, and those that come meanwhile form the next group.
// A lone caller does not wait for company.
//
// The position is the one that the record took, if it is one that takes a position. An error that
// wraps tier.ErrRefused concerns this record alone: nothing of it was written. So it is, too, where
// ctx ends before a group has taken the record; the error then wraps the context's as well. Once it
// is taken, Append waits for the outcome, whatever ctx says. After any other error nothing is known
// to be durable any more: the ledger gives the same error for ever, and the process must end.
func (l *Ledger) Append(ctx context.Context, r tier.Record) (tier.Position, error) {
	if err := ctx.Err(); err != nil {
		return 0, withdrawn(ctx)
	}
	p := &pending{record: r}
	b := l.enqueue(p)
	select {
	case l.leading <- struct{}{}:
		l.lead(b)
	case <-b.done:
	case <-ctx.Done():
		if l.withdraw(b, p) {
			return 0, withdrawn(ctx)
		}
		<-b.done
	}
	return p.position, p.err
}

// lead commits what waits until b is settled. The caller holds the lead, and gives it up by this.
func (l *Ledger) lead(b *batch) {
	defer func() { <-l.leading }()
	// What comes first takes all; the record may also have gone with the group before.
	for !b.settled() {
		// Those who were just told how the last group ended come with their next records, if they
		// are let: then these go together, and not one now and the others with the next group.
		runtime.Gosched()
		l.commitBatch(l.takeBatch())
	}
}

func withdrawn(ctx context.Context) error {
	return fmt.Errorf("%w: withdrawn before it was written: %w", tier.ErrRefused,
		context.Cause(ctx))
}

func (b *batch) settled() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// enqueue puts p into the newest batch that no one has taken, or into a new one where that is full.
func (l *Ledger) enqueue(p *pending) *batch {
	l.queueMu.Lock()
	defer l.queueMu.Unlock()
	last := len(l.queue) - 1
	if last < 0 || len(l.queue[last].records) == groupMax {
		l.queue = append(l.queue, &batch{done: make(chan struct{})})
		last++
	}
	b := l.queue[last]
	b.records = append(b.records, p)
	return b
}

// withdraw takes p out of its batch; false if that was taken already.
func (l *Ledger) withdraw(b *batch, p *pending) bool {
	l.queueMu.Lock()
	defer l.queueMu.Unlock()
	if !slices.Contains(l.queue, b) {
		return false
	}
	i := slices.Index(b.records, p)
	b.records = slices.Delete(b.records, i, i+1)
	return true
}

// takeBatch takes the oldest batch out of the queue. There is one: that of the caller, at least.
func (l *Ledger) takeBatch() *batch {
	l.queueMu.Lock()
	defer l.queueMu.Unlock()
	b := l.queue[0]
	l.queue = slices.Delete(l.queue, 0, 1)
	return b
}

// errThrown is the last word of a ledger whose commit panicked.
var errThrown = errors.New("a commit panicked, and nothing is known of it")

// commitBatch commits the records in one transaction and tells the callers their outcomes. The
// caller holds the lead. A panic goes on to the caller; the others are told that the ledger broke.
func (l *Ledger) commitBatch(b *batch) {
	defer func() {
		if !b.settled() {
			err := l.fail(errThrown)
			for _, p := range b.records {
				p.position, p.err = 0, err
			}
			close(b.done)
		}
	}()
	g, err := l.commit(b.records)
	if err == nil {
		l.take(g)
	} else {
		err = l.fail(err)
	}
	for _, p := range b.records {
		switch {
		case err != nil:
			// Nothing is certain now, not even why a record was refused.
			p.position, p.err = 0, err
		case p.err != nil && !errors.Is(p.err, tier.ErrRefused):
			p.err = l.fail(p.err)
		}
	}
	close(b.done)
}

// take makes what a group came to visible.
func (l *Ledger) take(g *group) {
	l.mu.Lock()
	defer l.mu.Unlock() // also where it panics: whoever hears of that looks at the ledger
	l.index.take(g)
}

// commit writes what the records change. An error that concerns one record is put down there.
func (l *Ledger) commit(records []*pending) (g *group, err error) {
	if err := l.Err(); err != nil {
		return nil, err
	}
	err = l.medium.Update(func(tx Tx) error {
		if g, err = newGroup(&l.index, tx); err != nil {
			return err
		}
		for _, p := range records {
			d, err := g.add(p.record)
			switch {
			case err == nil:
				p.position, p.err = d.position, d.alarm
			case errors.Is(err, tier.ErrRefused):
				p.err = err
			default:
				return err
			}
		}
		return g.finish()
	})
	if err == errUnchanged { // and nothing else: no error joined to it
		err = nil
	}
	return g, err
}
