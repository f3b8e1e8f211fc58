package daemon

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// told is a daemon that does nothing, with its clock and its log.
type told struct {
	*Daemon
	now time.Time
	out bytes.Buffer
}

func newTold() *told {
	d := &told{now: time.Unix(1_800_000_000, 0)}
	d.Daemon = newDaemon(Options{Now: func() time.Time { return d.now },
		Registry: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(&d.out, nil))})
	return d
}

// lines are those of the log with the text, since they were asked for last.
func (d *told) lines(text string) int {
	defer d.out.Reset()
	return strings.Count(d.out.String(), text)
}

func (d *told) stalledNow(task string) float64 {
	d.tellStalls()
	return testutil.ToFloat64(d.metrics.stalled.WithLabelValues(task))
}

var errStore = engine.Failed{Reason: tier.Reason{Code: tier.CodeStoreError,
	Text: "it is out of order"}}

// Litestream 1083, Aiven 550, 596: uploads stalled, or a task died, with frozen metrics and no
// error. What does not come back, waits for a slot for ever, or only fails is told of once, with
// the reason, and so is its going on. What is idle, or fails for a while, is none.
func TestAStallIsToldOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stalls func(d *told) // what happens within the first minutes
		why    string
	}{
		"it does not come back": {func(d *told) {
			d.watchdog.begins(engine.Copy{ID: 1}, d.now, time.Minute)
			d.now = d.now.Add(time.Minute)
		}, ""},
		"it only fails": {func(d *told) {
			for id := range engine.EffectID(5) {
				f := engine.Copy{ID: id}
				d.watchdog.begins(f, d.now, time.Minute)
				d.result(f, errStore, time.Second)
			}
		}, "it is out of order"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newTold()
			c.stalls(d)
			for range 10 {
				if d.now = d.now.Add(59 * time.Second); d.stalledNow("copy") != 0 {
					t.Fatal("stalled too soon")
				}
			}
			for range 3 {
				if d.now = d.now.Add(10 * time.Second); d.stalledNow("copy") != 1 {
					t.Fatal("not stalled after ten minutes")
				}
			}
			text := d.out.String()
			if n := d.lines("a task stalls"); n != 1 || !strings.Contains(text, c.why) {
				t.Errorf("%d lines, want one with the reason: %s", n, text)
			}
			d.result(engine.Copy{ID: 1}, engine.Copied{}, time.Second)
			if d.stalledNow("copy") != 0 || d.lines("a task goes on again") != 1 {
				t.Error("it is still stalled after a success")
			}
			d.now = d.now.Add(24 * time.Hour)
			if d.stalledNow("copy") != 0 || d.stalledNow("delete") != 0 || d.out.Len() > 0 {
				t.Errorf("an idle task stalls: %s", d.out.String())
			}
		})
	}
}

// effects has one of each kind.
var effects = []engine.Effect{engine.Open{}, engine.Copy{}, engine.Resolve{}, engine.Compare{},
	engine.Delete{}, engine.RecordHole{}, engine.Publish{}, engine.Checkpoint{}, engine.ChangeTier{},
	engine.Govern{}, engine.OpenEpoch{}, engine.MoveStart{}, engine.Expire{}, engine.Remove{},
	engine.Clear{}, engine.Sweep{}, engine.Pause{}, engine.Select{}}

// TestEveryEffectHasAName: what the engine's source calls an effect is in the list above, and so in
// the test below.
func TestEveryEffectHasAName(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../engine/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("the engine's source: %v, %v", files, err)
	}
	method := regexp.MustCompile(`(?m)^func \(f (\w+)\) EffectID\(\)`)
	found := 0
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range method.FindAllStringSubmatch(string(source), -1) {
			found++
			if !slices.ContainsFunc(effects, func(f engine.Effect) bool {
				return fmt.Sprintf("%T", f) == "engine."+m[1]
			}) {
				t.Errorf("%s is an effect, and not in the list", m[1])
			}
		}
	}
	if found != len(effects) {
		t.Errorf("%d effects in the source, %d in the list", found, len(effects))
	}
}

// Litestream 236: a failed retention was not logged. Each failure of each kind of work is a line
// and a count, once, and a success is a time.
func TestAFailureIsCountedAndLogged(t *testing.T) {
	t.Parallel()
	kinds := map[string]bool{}
	for _, f := range effects {
		d, kind := newTold(), effectKind(f)
		if kinds[kind] {
			t.Errorf("%T has the name of another kind: %s", f, kind)
		}
		kinds[kind] = true
		d.result(f, errStore, time.Second)
		count := testutil.ToFloat64(d.metrics.failures.WithLabelValues(kind, "store-error"))
		if n := d.lines("it is out of order"); n != 1 || count != 1 {
			t.Errorf("a failure of %s: %d lines, counted %v times", kind, n, count)
		}
		if d.metrics.lastSuccess.WithLabelValues(kind); testutil.ToFloat64(
			d.metrics.lastSuccess.WithLabelValues(kind)) != 0 {
			t.Errorf("a failure of %s is a success", kind)
		}
		d.result(f, engine.Done{}, time.Second)
		if testutil.ToFloat64(d.metrics.lastSuccess.WithLabelValues(kind)) == 0 {
			t.Errorf("a success of %s has no time", kind)
		}
	}
}
