package daemon

import (
	"context"
	"sync"

	"github.com/tierd/tierd/runtime/exec"
	"github.com/tierd/tierd/runtime/tier"
)

// commits tells whether a call waits for the ledger at the moment. The zero value is ready.
type commits struct {
	mu   sync.Mutex
	over chan struct{} // closed once the commit is over; nil while there is none
}

type commitsKey struct{}

// noted gives a context whose commits c knows of.
func (c *commits) noted(ctx context.Context) context.Context {
	return context.WithValue(ctx, commitsKey{}, c)
}

// underWay gives what is closed when the commit that is under way is over; nil where there is none.
func (c *commits) underWay() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// begin notes a commit until end is called.
func (c *commits) begin() (end func()) {
	over := make(chan struct{})
	c.mu.Lock()
	c.over = over
	c.mu.Unlock()
	return func() {
		c.mu.Lock()
		c.over = nil
		c.mu.Unlock()
		close(over)
	}
}

// notedLedger is the executor's ledger. It notes each commit of a call, for whoever waits for that.
type notedLedger struct{ exec.Ledger }

// Append implements exec.Ledger.
func (l notedLedger) Append(ctx context.Context, r tier.Record) (tier.Position, error) {
	if c, ok := ctx.Value(commitsKey{}).(*commits); ok {
		defer c.begin()()
	}
	return l.Ledger.Append(ctx, r)
}
