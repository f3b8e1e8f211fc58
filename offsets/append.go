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
	done     chan struct{} // closed once position and err are final
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
	p := &pending{record: r, done: make(chan struct{})}
	l.queueMu.Lock()
	l.queue = append(l.queue, p)
	l.queueMu.Unlock()
	select {
	case l.leading <- struct{}{}:
		// What comes first takes all; the record may also have gone with the group before.
		for !p.settled() {
			// Those who were just told how the last group ended come with their next records, if they
			// are let: then these go together, and not one now and the others with the next group.
			runtime.Gosched()
			l.commitGroup(l.takeGroup())
		}
		<-l.leading
	case <-p.done:
	case <-ctx.Done():
		if l.withdraw(p) {
			return 0, withdrawn(ctx)
		}
		<-p.done
	}
	return p.position, p.err
}

func withdrawn(ctx context.Context) error {
	return fmt.Errorf("%w: withdrawn before it was written: %w", tier.ErrRefused,
		context.Cause(ctx))
}

func (p *pending) settled() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// withdraw takes p out of the queue; false if a group has it already.
func (l *Ledger) withdraw(p *pending) bool {
	l.queueMu.Lock()
	defer l.queueMu.Unlock()
	i := slices.Index(l.queue, p)
	if i < 0 {
		return false
	}
	l.queue = slices.Delete(l.queue, i, i+1)
	return true
}

// takeGroup takes the oldest records out of the queue.
func (l *Ledger) takeGroup() []*pending {
	l.queueMu.Lock()
	defer l.queueMu.Unlock()
	n := min(len(l.queue), groupMax)
	taken := slices.Clone(l.queue[:n])
	l.queue = slices.Delete(l.queue, 0, n)
	return taken
}

// commitGroup commits the records in one transaction and tells each caller its outcome. The caller
// holds the lead.
func (l *Ledger) commitGroup(records []*pending) {
	g, err := l.commit(records)
	if err == nil {
		l.mu.Lock()
		l.index.take(g)
		l.mu.Unlock()
	} else {
		err = l.fail(err)
	}
	for _, p := range records {
		switch {
		case err != nil:
			// Nothing is certain now, not even why a record was refused.
			p.position, p.err = 0, err
		case p.err != nil && !errors.Is(p.err, tier.ErrRefused):
			p.err = l.fail(p.err)
		}
		close(p.done)
	}
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
