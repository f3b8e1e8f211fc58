package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/tier"
)

// inChild is the environment of a process that runs one test, whose name it is: what that leaves
// running ends with the process.
const inChild = "TIERD_TEST_IN_CHILD"

// TestPoliciesThatDoNotEnd: a policy in which one expression takes for ever deletes nothing, is
// told of, and holds up no question of a person; other policies find every worker free, and a stop
// waits for nobody.
func TestPoliciesThatDoNotEnd(t *testing.T) {
	t.Parallel()
	if os.Getenv(inChild) == t.Name() {
		hang(t)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), inChild+"="+t.Name())
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "all was seen") {
		t.Errorf("%v:\n%s", err, out)
	}
}

func hang(t *testing.T) {
	endless, err := os.ReadFile("../../policies/rego/testdata/endless.rego")
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t)
	if err := os.Mkdir(filepath.Join(s.dir, "policies"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.configure(siteConfig + "policies: {paths: [policies]}\n")
	s.put("policies/endless.rego", string(endless))
	tables := 2 * deleters
	for i := range tables {
		s.segments(fmt.Sprintf("t%d/0", i), 2)
	}
	opts := s.options()
	// A slow machine is to come to what never ends by then; and deletions were given up before.
	opts.LookEvery = 500 * time.Millisecond
	r := s.run(opts)
	d := r.Backend.(*Daemon)
	s.until("all is copied, and a deletion is asked about", func() bool {
		_, err := r.Explain(t.Context(), tier.LogID{Table: "t0", Name: "0"}, 0)
		return err != nil && strings.Contains(err.Error(), "endless.rego:") &&
			strings.Contains(err.Error(), " or next: an expression takes for ever")
	})
	stalled := func() float64 {
		return testutil.ToFloat64(d.metrics.stalled.WithLabelValues(policiesTask))
	}
	s.until("it is told of", func() bool {
		st, err := r.Status(t.Context())
		return err == nil && len(st.Reasons) > 0 && st.Reasons[0].Code == tier.CodePolicyError &&
			st.Reasons[0].Alarm && stalled() == 1
	})
	plan, err := r.Plan(t.Context())
	if err != nil || len(plan.Deletions) > 0 || len(plan.Waiting) < tables {
		t.Errorf("the plan: %+v, %v", plan, err)
	}
	q := &api.WhatIf{Policies: &api.Policies{
		Modules: []api.PolicyModule{{Path: "q.rego", Source: string(endless)}}}}
	if _, err := r.Compare(t.Context(), q); err == nil || !strings.Contains(err.Error(), "q.rego:") {
		t.Errorf("a question with policies that do not end: %v", err)
	}
	for i := range tables {
		if n := s.local(fmt.Sprintf("t%d/0", i)); n != 3 {
			t.Errorf("t%d has %d files", i, n)
		}
	}
	s.put("policies/endless.rego",
		"package tierd.other\n\ndeny contains \"never\" if input.table.name == \"other\"\n")
	if err := r.reload(""); err != nil {
		t.Fatal(err)
	}
	s.until("other policies let all go", func() bool {
		left := 0
		for i := range tables {
			left += s.local(fmt.Sprintf("t%d/0", i)) - 1
		}
		return left == 0
	})
	if st, err := r.Status(t.Context()); err != nil || len(st.Reasons) > 0 || stalled() != 0 {
		t.Errorf("with other policies: %+v, %v", st.Reasons, err)
	}
	began := time.Now()
	if err := r.stop(); err != nil || time.Since(began) > 10*time.Second {
		t.Errorf("stopped after %s: %v", time.Since(began), err)
	}
	t.Log("all was seen")
}

// TestAskPolicies: a command gets what it asked for, or its error.
func TestAskPolicies(t *testing.T) {
	t.Parallel()
	want := errors.New("the answer")
	err := AskPolicies(t.Context(), func(_ context.Context, w *rego.Watch) error {
		if _, err := rego.Load(nil, nil, rego.Options{Watch: w}); err != nil {
			return err
		}
		return want
	})
	if !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
}

// TestAPanicIsTheCallers: what a question throws, as OPA may, comes to whoever asked, with the
// place where it was thrown; net/http recovers it, and the daemon runs on.
func TestAPanicIsTheCallers(t *testing.T) {
	t.Parallel()
	defer func() {
		p := fmt.Sprint(recover())
		if !strings.HasPrefix(p, "OPA's") || !strings.Contains(p, "hung_test.go") {
			t.Errorf("thrown: %s", p)
		}
	}()
	value, err := answered(t.Context(), func(context.Context) (int, error) { panic("OPA's") })
	t.Errorf("answered %d, %v", value, err)
}
