package report_test

import (
	"strings"
	"testing"

	"github.com/tierd/tierd/sim"
	"github.com/tierd/tierd/sim/report"
)

// TestHang tells those who read the reports alone of a plugin that did not come back.
func TestHang(t *testing.T) {
	t.Parallel()
	run := report.Run{Histories: 3, Plugins: 9, Hung: 2, HungText: "imp: it used up its fuel"}
	const want = "2 of 9 questions were not answered: imp: it used up its fuel"
	if got := run.Annotations(""); got != "::error title=PLUGIN HANG::"+want+"\n" {
		t.Errorf("annotations: %q", got)
	}
	text, err := run.JUnit()
	if err != nil || !strings.Contains(string(text), `<failure message="`+want+`">`) {
		t.Errorf("JUnit: %v\n%s", err, text)
	}
}

// TestLongSteps: what is left out on the screen is a command away, with the flags of the project.
func TestLongSteps(t *testing.T) {
	t.Parallel()
	f := report.Failure{Property: "S6 NoGap", Text: "a gap", Scenario: "f.json",
		Replay: "tiersim replay f.json --config there", Steps: strings.Split("abcdefghijklm", "")}
	const want = "and 3 more: tiersim explain f.json --config there\n"
	if got := f.Screen(false); !strings.Contains(got, want) {
		t.Errorf("%q is not in\n%s", want, got)
	}
}

// TestLongText: what a property says stays on one screen; the page and JUnit's message have it all.
func TestLongText(t *testing.T) {
	t.Parallel()
	f := report.Failure{Property: "violation a.rego:3", Text: strings.Repeat("ü", 10_000)}
	const want = "ü… and 9500 more letters\n"
	if got := f.Screen(false); len(got) > 1200 || !strings.Contains(got, want) {
		t.Errorf("%d bytes:\n%s", len(got), got)
	}
	run := report.Run{Failures: []report.Failure{f}}
	junit, err := run.JUnit()
	if err != nil || !strings.Contains(string(junit), f.Text) ||
		!strings.Contains(string(report.HTML(&f, "tierd.yaml", "")), f.Text) {
		t.Errorf("it is not whole: %v", err)
	}
}

// TestLongNames: a name that is longer than its place does not run into the bars, and those of two
// logs of one table differ.
func TestLongNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 80)
	f := report.Failure{Property: "S6 NoGap", Text: "a gap", Snapshots: []sim.Snapshot{{
		Logs: []sim.LogSnapshot{{Log: long + "/0"}, {Log: long + "/1"}}}}}
	page := string(report.HTML(&f, "tierd.yaml", ""))
	for _, want := range []string{"<title>" + long + "/0</title>", "nnn…nnnnnnnnnn/0<",
		"nnn…nnnnnnnnnn/1<"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in the page", want)
		}
	}
}

// TestJUnitFails wherever the exit code is not 0, and nowhere else.
func TestJUnitFails(t *testing.T) {
	t.Parallel()
	nothing := []string{"no plugin was asked"}
	for want, run := range map[string]report.Run{
		`failures="0"`:                        {Unasked: nothing, VacuousAllowed: true},
		`VACUOUS: no plugin was asked`:        {Unasked: nothing},
		`interrupted: 7 seeds were not tried`: {Untried: 7, Interrupted: true},
		`two runs differ`:                     {Unequal: []uint64{3}},
	} {
		text, err := run.JUnit()
		if failed := strings.Contains(string(text), "<failure"); err != nil ||
			failed != (run.Unasked == nil || !run.VacuousAllowed) || !strings.Contains(string(text), want) {
			t.Errorf("want %s: %v\n%s", want, err, text)
		}
	}
}
