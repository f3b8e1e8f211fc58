package daemon

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/exec"
	"github.com/tierd/tierd/runtime/tier"
)

// smallSlots bounds the effects that are neither copies nor deletions: records and manifest
// objects. Many at once are welcome, since the ledger commits what comes together as one.
const smallSlots = 64

// bytesPerSecondMin is the slowest transfer that is not yet taken for a hang.
const bytesPerSecondMin = 256 << 10

// afterCommit is how long a call whose time is over may go on after a commit that took so long. It
// begins nothing more, but for what it records of its own end.
const afterCommit = time.Second

// pool performs effects on goroutines, each kind in its own bounded slots. A call that does not
// come back is given up: its effect is answered as unknown, and it keeps its slot until it ends, so
// that hung calls can never pile up. One that waits for the ledger is not given up before its
// commit is over: what is durable then would be news to an engine that has decided otherwise
// meanwhile, and nobody else could commit anything before, either. One that waits for an evaluation
// which does not end gives its slot back: there is no other before a person loads other policies.
type pool struct {
	x       *exec.Executor
	timeout func() time.Duration // of one call of the store
	post    func(engine.Event)
	fatal   func(error)
	begun   func(engine.Effect)
	ended   func(engine.Effect, engine.Result, time.Duration)
	late    func(engine.Delete, engine.Deleted) // after it ended as given up
	posted  func(engine.Effect, engine.Result)  // once the engine knows; may be nil

	small, copies, deletes, removes, selects chan struct{}
	wg                                       sync.WaitGroup
}

func newPool(x *exec.Executor, copies, deletes, removes int) *pool {
	return &pool{x: x, small: make(chan struct{}, smallSlots), selects: make(chan struct{}, 1),
		copies: make(chan struct{}, copies), deletes: make(chan struct{}, deletes),
		removes: make(chan struct{}, removes)}
}

// run starts the effect and returns at once. Its result is posted, unless ctx ends first.
func (p *pool) run(ctx context.Context, f engine.Effect) {
	slots := p.slots(f)
	p.wg.Go(func() {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		p.perform(ctx, f, func() { <-slots })
	})
}

func (p *pool) slots(f engine.Effect) chan struct{} {
	switch f.(type) {
	case engine.Copy, engine.Resolve:
		return p.copies
	case engine.Delete:
		return p.deletes
	case engine.Remove:
		return p.removes
	case engine.Select:
		return p.selects
	default:
		return p.small
	}
}

type answer struct {
	result engine.Result
	err    error
}

// perform does the effect on a goroutine of its own and waits for it no longer than its budget and
// a little. release gives the slot back when the call has really ended.
func (p *pool) perform(ctx context.Context, f engine.Effect, release func()) {
	budget := p.budget(f)
	callCtx, cancel := context.WithTimeout(ctx, budget)
	callCtx, hung := whenHung(callCtx)
	var ledger commits
	callCtx = ledger.noted(callCtx)
	release = sync.OnceFunc(release)
	done := make(chan answer, 1)
	start := time.Now()
	p.begun(f)
	go func() {
		defer release()
		defer cancel()
		result, err := p.x.Do(callCtx, f)
		done <- answer{result, err}
	}()
	patience := time.NewTimer(budget + budget/10 + time.Second)
	defer patience.Stop()
	var committed <-chan struct{}
	for {
		select {
		case a := <-done:
			p.answer(f, a, time.Since(start))
			return
		case err := <-hung:
			// Nothing ends it, and its policies let nothing go any more: the slot is for others.
			cancel()
			release()
			p.answer(f, answer{result: engine.Failed{Reason: tier.Reason{Code: tier.CodePolicyError,
				Text: fmt.Sprintf("%s: %v", effectName(f), err)}}}, time.Since(start))
			return
		case <-committed:
			committed = nil
			patience.Reset(afterCommit)
		case <-patience.C:
			if committed = ledger.underWay(); committed != nil {
				continue
			}
			p.answer(f, p.giveUp(f), time.Since(start))
			go p.awaitLate(f, done, hung, release)
			return
		}
	}
}

// awaitLate waits for a call that was given up, and tells what it came to. That nothing ends it may
// only be seen then.
func (p *pool) awaitLate(f engine.Effect, done <-chan answer, hung <-chan error, release func()) {
	select {
	case a := <-done:
		if a.err != nil {
			p.fatal(a.err)
			return
		}
		if r, ok := a.result.(engine.Deleted); ok { // nobody tells of it again
			p.late(f.(engine.Delete), r)
		}
		p.post(engine.Late{Effect: f, Result: a.result})
	case err := <-hung:
		if err != nil {
			release()
		}
	}
}

func (p *pool) answer(f engine.Effect, a answer, took time.Duration) {
	if a.err != nil {
		p.fatal(a.err)
		return
	}
	p.ended(f, a.result, took)
	p.post(engine.Finished{ID: f.EffectID(), Result: a.result})
	if p.posted != nil {
		p.posted(f, a.result)
	}
}

// giveUp answers a call that did not come back. What it was doing is resolved by looking; whatever
// it does later is refused, by the ledger for a copy, and by its ended context for a deletion. A
// drop that had begun goes on to its end, of which the engine hears then.
func (p *pool) giveUp(f engine.Effect) answer {
	failed := engine.Failed{Reason: tier.Reason{Code: tier.CodeUnknownOutcome,
		Text: fmt.Sprintf("%s did not come back within %s; it is resolved by looking",
			effectName(f), p.budget(f))}}
	if a, ok := p.x.Attempt(f.EffectID()); ok {
		failed.Attempt = &a
	}
	return answer{result: failed}
}

// budget is how long an effect may take: its calls, each with the store's timeout, and its bytes.
func (p *pool) budget(f engine.Effect) time.Duration {
	calls, bytes := 4, int64(0)
	switch f := f.(type) {
	case engine.Select: // no call of the store; it has a patience of its own
		return selectPatience + time.Second
	case engine.Copy:
		calls, bytes = 16, f.Segment.Bytes
	case engine.Resolve:
		calls, bytes = 16, 1<<30
	case engine.Remove:
		calls = 8 * len(f.Copies)
	case engine.Sweep:
		calls = 1000 // it lists and may remove a lot; what it does not reach waits for the next
	case engine.Delete:
		calls = 8 * len(f.Segments)
	}
	// Each byte may be read and sent a few times: check, upload, read back.
	return time.Duration(calls)*p.timeout() + time.Duration(bytes/bytesPerSecondMin)*4*time.Second
}

// wait returns when every effect has ended, or when ctx is done.
func (p *pool) wait(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		p.wg.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

func effectName(f engine.Effect) string {
	switch f := f.(type) {
	case engine.Copy:
		return fmt.Sprintf("copy of %s %s", f.Log, f.Segment.Range)
	case engine.Resolve:
		return fmt.Sprintf("look at the copy of %s %s", f.Log, f.Attempt.Range)
	case engine.Delete:
		return fmt.Sprintf("deletion of %s of %s", tier.Count(len(f.Segments), "segment"), f.Log)
	default:
		return fmt.Sprintf("%T", f)
	}
}
