package daemon

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/tier"
)

// lookEvery is how often evaluations of policies are looked at, where Options do not say.
const lookEvery = time.Second

// policiesTask is the name of evaluations among the tasks that may stall.
const policiesTask = "policies"

// lookPatience is how long the end of the looks is waited for: a place is looked for at that time,
// at the most, which takes as long as an evaluation may.
const lookPatience = 5 * time.Second

// look looks at the evaluations of a Watch until stop is called.
func look(w *rego.Watch, every time.Duration, hung func([]rego.Hung)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if list := w.Look(); len(list) > 0 {
					hung(list)
				}
			}
		}
	}()
	return sync.OnceFunc(func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(lookPatience):
		}
	})
}

// AskPolicies has ask use policies that it loads with the Watch, and returns its error. Where an
// evaluation that it waits for does not end, or ctx does, the error is that, and ask is left
// behind. It is for commands, which end then.
func AskPolicies(ctx context.Context, ask func(context.Context, *rego.Watch) error) error {
	w := &rego.Watch{}
	defer look(w, lookEvery, func([]rego.Hung) {})()
	done := make(chan error, 1)
	go func() {
		_, err := answered(ctx, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, ask(ctx, w)
		})
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answered is what ask answers, on a goroutine of its own. Where an evaluation that it waits for
// does not end, ask is left behind, and the error says so. What ask throws is thrown to the caller:
// a server of HTTP recovers it, where the process would end otherwise.
func answered[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value  T
		err    error
		thrown any
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked, hung := whenHung(ctx)
	done := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if p := recover(); p != nil {
				a.thrown = fmt.Sprintf("%v\n\n%s", p, debug.Stack())
			}
			done <- a
		}()
		a.value, a.err = ask(asked)
	}()
	select {
	case a := <-done:
		if a.thrown != nil {
			panic(a.thrown)
		}
		return a.value, a.err
	case err := <-hung:
		var none T
		return none, err
	}
}

// whenHung gives a context whose evaluations are told of where they do not end, the first of them.
func whenHung(ctx context.Context) (context.Context, <-chan error) {
	hung := make(chan error, 1)
	return rego.WhenHung(ctx, func(err error) {
		select {
		case hung <- err:
		default:
		}
	}), hung
}

// tellHung tells of evaluations that do not end. Their policies let nothing go any more.
func (d *Daemon) tellHung(list []rego.Hung) {
	for _, h := range list {
		g := d.gen.Load()
		if g.policies != h.Policies { // of a question, or of a generation that is over
			d.log.Error("an evaluation of policies that are not in force does not end",
				"policy_digest", h.Policies.Digest(), "why", h.Err)
			continue
		}
		d.log.Error("an evaluation of the policies does not end; nothing is deleted before others "+
			"are loaded", "generation", g.number, "policy_digest", h.Policies.Digest(), "why", h.Err)
	}
	d.gaugePolicies()
}

// gaugePolicies says in the metrics whether the policies in force decide nothing. Who loads others
// may do so while somebody finds that the old ones do not end: the last of the two to come here
// looks at what is in force.
func (d *Daemon) gaugePolicies() {
	d.gauging.Lock()
	defer d.gauging.Unlock()
	stalled := 0.0
	if d.gen.Load().policies.Hung() != nil {
		stalled = 1
	}
	d.metrics.stalled.WithLabelValues(policiesTask).Set(stalled)
}

// policyReasons say why the policies in force decide nothing.
func (d *Daemon) policyReasons() []tier.Reason {
	err := d.gen.Load().policies.Hung()
	if err == nil {
		return nil
	}
	return []tier.Reason{{Code: tier.CodePolicyError,
		Text: "nothing is deleted before other policies are loaded: " + err.Error()}}
}
