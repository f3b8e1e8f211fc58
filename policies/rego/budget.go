package rego

import (
	"context"
	"errors"
	"sync/atomic"
)

// errSteps is why a decision ended that took more evaluation steps than allowed.
var errSteps = errors.New("too many evaluation steps")

// checkEvery is how many steps lie between two looks at the context.
const checkEvery = 256

// budget is a topdown.Cancel that ends an evaluation after a number of steps, which is the same on
// every machine, and when its context is over. OPA asks it before each expression. It belongs to
// one evaluation, which runs on one goroutine.
type budget struct {
	ctx  context.Context
	left atomic.Int64 // which a Watch reads meanwhile
	err  error        // why the evaluation ended; nil while it may go on
}

// Cancel implements topdown.Cancel.
func (b *budget) Cancel() { b.err = context.Canceled }

// Cancelled implements topdown.Cancel.
func (b *budget) Cancelled() bool {
	if b.err != nil {
		return true
	}
	left := b.left.Add(-1)
	switch {
	case left < 0:
		b.err = errSteps
	case left%checkEvery == 0:
		b.err = b.ctx.Err()
	}
	return b.err != nil
}
