package plugin

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

func TestScriptReads(t *testing.T) {
	t.Parallel()
	s, err := parseScript("f", strings.Join([]string{
		"# a comment",
		"config {\"k\": 1}",
		"",
		"node n1",
		"now 2026-03-01T12:00:00.5Z",
		"table orders tier=hot team=",
		"  table clicks",
		"log clicks/0 local_bytes=3KiB disk_used=2GiB disk_free=1TiB state=DISABLING",
		"seg 5 7 bytes=4MiB age=1h30m local remote copied verified",
		"seg 7 7",
		"log elsewhere/1",
		"seg 0 1 bytes=12",
		"----",
		"an answer",
		"of two lines",
		"",
		"log a/0",
		"seg 0 1",
		"----",
		"",
	}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.cases) != 2 {
		t.Fatalf("%d cases", len(s.cases))
	}
	c := s.cases[0]
	now := tier.TimeOf(time.Date(2026, 3, 1, 12, 0, 0, 5e8, time.UTC))
	if c.line != 2 || c.node != "n1" || string(c.config) != `{"k": 1}` || c.batch.Now != now ||
		c.want != "an answer\nof two lines\n" || c.batch.Tables.Len() != 2 {
		t.Errorf("case %+v", c)
	}
	l := c.batch.Logs[0]
	if l.ID.String() != "clicks/0" || l.Table != 1 || l.State != tier.Disabling ||
		l.LocalBytes != 3<<10 || l.DiskUsedBytes != 2<<30 || l.DiskFreeBytes != 1<<40 ||
		len(l.Segments) != 2 {
		t.Errorf("log %+v", l)
	}
	want := Segment{Range: tier.Range{Base: 5, Next: 7}, Bytes: 4 << 20, Age: 90 * time.Minute,
		MaxTime: now.Add(-90 * time.Minute), Local: true, Remote: true, Copied: true,
		Verified: true}
	if l.Segments[0] != want {
		t.Errorf("segment %+v, want %+v", l.Segments[0], want)
	}
	if other := c.batch.Logs[1]; other.Table != -1 || other.Segments[0].Bytes != 12 {
		t.Errorf("log %+v", other)
	}
	if next := s.cases[1]; next.line != 17 || next.want != "" || next.batch.Tables.Len() != 0 ||
		next.config != nil || next.batch.Now != tier.TimeOf(defaultNow) {
		t.Errorf("the second case does not stand alone: %+v", next)
	}
}

func TestScriptRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", "f: there is no case in it"},
		{"# nothing", "f: there is no case in it"},
		{"log a/0\nseg 0 1", `f:1: the case has no "----" before its answer`},
		{"\nlog a/0\n----", "f:3: the case has no seg"},
		{"segment 0 1", `f:1: "segment" is no directive; there are config, node,`},
		{"config {", "f:1: config is not JSON: {"},
		{"now tomorrow", "f:1: now tomorrow: want a time such as 2026-03-01T12:00:00Z"},
		{"table", "f:1: table: want a name"},
		{"table a b", "f:1: label b: want key=value"},
		{"log", "f:1: log: want an id such as orders/0"},
		{"log orders", `f:1: log id "orders": want table/name`},
		{"log a/0 size=1", "f:1: size=1: want local_bytes=, disk_used=,"},
		{"log a/0 local_bytes=1MB", "f:1: local_bytes=1MB: want bytes, such as 1024 or 100MiB"},
		{"log a/0 local_bytes=99999999TiB", "f:1: local_bytes=99999999TiB: want bytes"},
		{"log a/0 local_bytes=-5", "f:1: local_bytes=-5: want bytes"},
		{"log a/0 state=enabled", "f:1: state=enabled: want ENABLED, DISABLING or DISABLED"},
		{"seg 0 1", "f:1: seg: want base and next offsets, after a log"},
		{"log a/0\nseg 0", "f:2: seg: want base and next offsets, after a log"},
		{"log a/0\nseg x 1", "f:2: base x: want an offset"},
		{"log a/0\nseg 5 4", "f:2: next 4: want an offset that is not below the base"},
		{"log a/0\nseg 0 1 old", "f:2: old: want bytes=, age=, local, remote, copied or verified"},
		{"log a/0\nseg 0 1 age=1d", "f:2: age=1d: time: unknown unit"},
		{"log a/0\nseg 5 9\nseg 8 12\n----",
			"f:3: the segments of a log ascend: [8, 12) follows [5, 9)"},
	} {
		_, err := parseScript("f", c.text)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v; want %q", c.text, err, c.want)
		}
	}
}

// TestGoldenRewrites: running a file gives it back with the answers that the plugin gave, and
// running that passes.
func TestGoldenRewrites(t *testing.T) {
	t.Parallel()
	g, err := NewGolden(says([]int64{3, -1}, ActionKeep, ActionHold), GoldenOptions{Name: "p"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}()
	first, second := "# first\nlog a/0\nseg 0 1\nlog b/0\nseg 0 1\n----\n",
		"log c/0\nseg 0 1\nseg 1 2\n----\n"
	text := first + "wrong\n\n" + second
	want := first + "a/0 [0, 1) score 3 keep\nb/0 [0, 1) score -1 hold\n\n" +
		second + "c/0 [0, 1) score 3 keep\nc/0 [1, 2) score -1 hold\n"
	cases, got, err := g.Run("f", text)
	if err != nil || got != want {
		t.Fatalf("rewritten as\n%s\nwant\n%s: %v", got, want, err)
	}
	if cases[0].Passed() || cases[1].Passed() || cases[1].Fuel == 0 || cases[0].Line != 2 {
		t.Errorf("cases %+v", cases)
	}
	cases, again, err := g.Run("f", got)
	if err != nil || again != got || !cases[0].Passed() || !cases[1].Passed() {
		t.Errorf("the rewritten file: %+v, %v\n%s", cases, err, again)
	}
	if _, _, err := g.Run("f", "nonsense"); err == nil {
		t.Error("nonsense was run")
	}
}

// TestGoldenDoesNotWaitForAStart: what a plugin that never becomes ready does is seen once. The
// interpreter would take a minute for the fuel of a start, so here another plugin stands in for it.
func TestGoldenDoesNotWaitForAStart(t *testing.T) {
	t.Parallel()
	limits := GoldenOptions{Limits: quick}
	one, err := NewGolden(with(func(g *guest) { g.configure = forever() }), limits)
	if err != nil {
		t.Fatal(err)
	}
	two, err := NewGolden(says([]int64{2}), limits)
	if err != nil {
		t.Fatal(err)
	}
	one.engines[1], two.engines[1] = two.engines[1], one.engines[1]
	cases, _, err := one.Run("f", "log a/0\nseg 0 1\n----\n")
	const want = "fault fuel: it used up its fuel in function 2 < tierd_configure\n"
	if err != nil || cases[0].Got != want || cases[0].Differs != "" {
		t.Errorf("%+v, %v; want %s", cases, err, want)
	}
	if err := errors.Join(one.Close(), two.Close()); err != nil {
		t.Error(err)
	}
}

// TestGoldenSeesWhatDiffers: a plugin whose answer is not the same in every run does not pass, even
// if it is what the file says. Another plugin stands in for the one that runs in the interpreter.
func TestGoldenSeesWhatDiffers(t *testing.T) {
	t.Parallel()
	one, err := NewGolden(says([]int64{1}), GoldenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	two, err := NewGolden(says([]int64{2}), GoldenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	one.engines[1], two.engines[1] = two.engines[1], one.engines[1]
	cases, _, err := one.Run("f", "log a/0\nseg 0 1\n----\na/0 [0, 1) score 1\n")
	want := "run 1 in the interpreter used 9 units of fuel, the first 9, and answered:\n" +
		"a/0 [0, 1) score 2\n"
	if err != nil || cases[0].Passed() || cases[0].Differs != want {
		t.Errorf("%+v, %v; want that it differs: %s", cases, err, want)
	}
	if err := errors.Join(one.Close(), two.Close()); err != nil {
		t.Error(err)
	}
}
