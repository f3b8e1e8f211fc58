package rego

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/tierd/tierd/runtime/tier"
)

// TestRunaway: of an evaluation that does not stop the caller is told the place; until it ends
// nothing else is asked, and then everything again.
func TestRunaway(t *testing.T) {
	t.Parallel()
	s, f := benchSet(t)
	f.Seg.MaxTime = f.Now - tier.Time(48*time.Hour)
	held, ended := make(chan struct{}), make(chan struct{}, 2)
	s.opts.Watch = func(_ context.Context, run func()) bool {
		asked := make(chan struct{})
		go func() {
			run()
			close(asked)
			ended <- struct{}{}
		}()
		select {
		case <-asked:
			<-ended
			return true
		case held <- struct{}{}: // it is where it does not stop
			return false
		}
	}
	if d, err := s.Decide(t.Context(), f); err != nil || !d.Delete {
		t.Fatalf("before: %v, error %v", d, err)
	}
	release := make(chan struct{})
	q := s.queries[f.Action]
	value, err := inputWith(f, &s.terms)
	if err != nil {
		t.Fatal(err)
	}
	in := &Input{value: value, action: f.Action, now: f.Now}
	err = s.placed(t.Context(), func(tracer topdown.QueryTracer) error {
		e, err := s.begin(t.Context(), q.body, q.compiler, in, tracer)
		if err != nil {
			return err
		}
		return s.within(e, func() error {
			err := e.query.Iter(e.ctx, func(topdown.QueryResult) error { return nil })
			<-held
			<-release
			return err
		})
	})
	if !errors.Is(err, errRunaway) || !strings.HasPrefix(err.Error(), "hold.rego:") {
		t.Errorf("the caller hears %v", err)
	}
	d, again := s.Decide(t.Context(), f)
	if again == nil || d.Delete || again.Error() != err.Error() {
		t.Errorf("while it runs: %v, error %v", d, again)
	}
	if _, err := s.Trace(t.Context(), in); !errors.Is(err, errRunaway) {
		t.Errorf("while it runs there is a trace: %v", err)
	}
	close(release)
	<-ended
	<-ended
	if d, err := s.Decide(t.Context(), f); err != nil || !d.Delete {
		t.Errorf("after it: %v, error %v", d, err)
	}
}
