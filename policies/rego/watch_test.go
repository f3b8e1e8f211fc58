package rego

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// inChild is the environment of a process that runs one test, whose name it is: what that leaves
// running ends with the process.
const inChild = "TIERD_TEST_IN_CHILD"

// TestHung: whoever waits for an evaluation that does not end is told so, with its place and log,
// and from then on its policies let nothing go, at once. Other policies do not mind.
func TestHung(t *testing.T) {
	t.Parallel()
	if os.Getenv(inChild) == t.Name() {
		hang(t, DefaultTimeout)
		hang(t, NoTimeout)
		t.Log("all was seen")
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestHung$", "-test.v")
	child.Env = append(os.Environ(), inChild+"="+t.Name())
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "all was seen") {
		t.Errorf("%v:\n%s", err, out)
	}
}

func hang(t *testing.T, timeout time.Duration) {
	endless, err := os.ReadFile("testdata/endless.rego")
	if err != nil {
		t.Fatal(err)
	}
	watch := &Watch{}
	set, err := Load([]Module{{Path: "endless.rego", Source: endless}}, nil,
		Options{Watch: watch, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	_, f := benchSet(t)
	f.Seg.MaxTime = f.Now - tier.Time(48*time.Hour)
	told := make(chan error, 1)
	go func() {
		_, _ = set.Decide(WhenHung(t.Context(), func(err error) { told <- err }), f)
		t.Error("it has ended")
	}()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	// It has come to what never ends once it takes no step any more.
	for same, last := 0, int64(-1); same < 5; same++ {
		<-ticker.C
		watch.mu.Lock()
		left := int64(-1)
		for _, e := range watch.running {
			left = e.limit.left.Load()
		}
		watch.mu.Unlock()
		if left < 0 || left != last {
			same, last = 0, left
		}
	}
	var hung []Hung
	for range 12 {
		<-ticker.C
		if hung != nil {
			t.Fatalf("hung too soon: %v", hung)
		}
		hung = watch.Look()
	}
	err = <-told
	if len(hung) != 1 || hung[0].Policies != set || hung[0].Err != err || set.Hung() != err {
		t.Errorf("%v, and whoever waits was told %v", hung, err)
	}
	const want = "endless.rego:6 or next: an expression takes for ever, asked about delete_local of " +
		"orders/0"
	if err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if again := watch.Look(); again != nil {
		t.Errorf("told twice: %v", again)
	}
	if d, again := set.Decide(t.Context(), f); d.Delete || again != err {
		t.Errorf("afterwards: %v, error %v", d, again)
	}
	other, err := Load(nil, nil, Options{Watch: watch})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := other.Decide(t.Context(), f); err != nil || !d.Delete {
		t.Errorf("others: %v, error %v", d, err)
	}
}

// TestWatchForgets: what ends is looked at no more, in whichever order, and who has no time-out,
// and takes steps, is never hung.
func TestWatchForgets(t *testing.T) {
	t.Parallel()
	watch := &Watch{}
	var es [3]evaluation
	for i := range es {
		es[i].set = &Set{opts: Options{Timeout: NoTimeout, Watch: watch}}
		watch.enter(&es[i])
	}
	watch.leave(&es[0])
	watch.leave(&es[2])
	for range 100 {
		es[1].limit.left.Add(-1)
		if hung := watch.Look(); hung != nil {
			t.Fatal(hung)
		}
	}
	watch.leave(&es[1])
	if len(watch.running) > 0 || es[0].looks > 0 || es[1].looks != 1 {
		t.Errorf("%d running, %d and %d looks", len(watch.running), es[0].looks, es[1].looks)
	}
}

// TestTracesTakeTheSameSteps: an evaluation that is run anew for its place comes to where it was.
func TestTracesTakeTheSameSteps(t *testing.T) {
	t.Parallel()
	set, f := benchSet(t)
	for _, unknown := range [][]tier.UnknownFact{nil, {{Name: "queue"}}} {
		f.Unknown = unknown
		in := &Input{action: f.Action, now: f.Now, unknown: f.Unknown}
		var err error
		if in.value, err = inputOf(f); err != nil {
			t.Fatal(err)
		}
		var steps []int64
		for _, again := range []*evaluation{{}, {tracer: &lastPlace{}}} {
			again.ctx, again.in = t.Context(), in
			again.run = func(e *evaluation) error { return set.run(e, set.queries[f.Action]) }
			if err := set.evaluate(again); err != nil {
				t.Fatal(err)
			}
			steps = append(steps, again.limit.left.Load())
		}
		if steps[0] != steps[1] {
			t.Errorf("steps left: %v", steps)
		}
	}
}

// TestWhatIsRunAnewSaysNothing: an evaluation that is slow and not endless may end well while it is
// run anew for its place, which stops before its end. What it came to is its own.
func TestWhatIsRunAnewSaysNothing(t *testing.T) {
	t.Parallel()
	set, f := benchSet(t)
	in := &Input{action: f.Action, now: f.Now}
	var err error
	if in.value, err = inputOf(f); err != nil {
		t.Fatal(err)
	}
	q := set.queries[f.Action]
	e, err := set.placed(t.Context(), in, func(e *evaluation) error { return set.run(e, q) })
	if err != nil || len(e.found) != len(q.asks) {
		t.Fatalf("found %v, %v", e.found, err)
	}
	steps := e.steps()
	if e.before() == nil || len(e.found) != len(q.asks) || e.steps() != steps {
		t.Errorf("afterwards it has found %v in %d steps, and not in %d", e.found, e.steps(), steps)
	}
}

// TestAPanicIsNoHang: what OPA throws is for whoever asked to recover; nothing is under way then.
func TestAPanicIsNoHang(t *testing.T) {
	t.Parallel()
	watch := &Watch{}
	set := &Set{opts: Options{Timeout: 1, Watch: watch}}
	func() {
		defer func() { _ = recover() }()
		_ = set.evaluate(&evaluation{run: func(*evaluation) error { panic("OPA's") }})
	}()
	for range 20 {
		watch.Look()
	}
	if len(watch.running) > 0 || set.Hung() != nil {
		t.Errorf("%d are under way, %v", len(watch.running), set.Hung())
	}
}
