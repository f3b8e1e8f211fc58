// Package report tells what simulated histories came to: to people on a terminal, to continuous
// integration as JUnit, JSON and GitHub annotations, and as one HTML page that needs no network.
package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/sim"
	"github.com/tierd/tierd/sim/choose"
)

// Run is what a number of histories came to. Times are of the simulated world but for Elapsed.
// docs/json.md describes its JSON.
type Run struct {
	Subject    string `json:"subject"` // the configuration, or what else was simulated
	Digest     string `json:"digest"`
	From       uint64 `json:"from"` // the first seed
	To         uint64 `json:"to"`   // the last one
	Histories  int    `json:"histories"`
	Faultless  int    `json:"faultless"`
	OnBolt     int    `json:"on_bbolt"` // whose ledger lay in a real bbolt file
	Repeated   int    `json:"repeated"` // seeds that were run twice, to compare
	Operations int    `json:"operations"`
	Effects    int    `json:"effects"`
	Crashes    int    `json:"crashes"`
	Decisions  int    `json:"decisions"`   // of the policies
	Deletions  int    `json:"deletions"`   // of local segments
	Judged     int    `json:"judged"`      // deletions that the user's properties were asked about
	Plugins    int    `json:"plugins"`     // questions to plugins
	Hung       int    `json:"plugin_hang"` // of these, not answered within the fuel
	HungText   string `json:"plugin_hang_text"`
	// PolicyHang says which expression of a policy or property does not end, and ended the run, and
	// PolicyHangAt its file:line, where that is known.
	PolicyHang   string        `json:"policy_hang"`
	PolicyHangAt string        `json:"policy_hang_at"`
	Simulated    int64         `json:"simulated_seconds"` // 300 years are too many ns
	Elapsed      time.Duration `json:"elapsed_ns"`
	Situations   []Situation   `json:"situations"`
	Faults       []Fault       `json:"faults"`
	Rules        []Rule        `json:"rules"`
	Heeded       []Plugin      `json:"plugins_heeded"` // the configuration's, in its order
	Failures     []Failure     `json:"failures"`
	// Regressions were replayed first, and no seed was tried where one of them failed.
	Regressions []Regression `json:"regressions"`
	Vacuous     []string     `json:"vacuous"`       // what was not met or tried
	Unasked     []string     `json:"-"`             // of these, plugins and properties as a whole
	Unequal     []uint64     `json:"indeterminate"` // seeds of which two runs differed
	// Untried is how many seeds of those that were asked for the run did not come to: its budget was
	// over, or it was interrupted.
	Untried     uint64 `json:"untried"`
	Interrupted bool   `json:"interrupted"`
	// VacuousAllowed says that what is Vacuous is no failure of this run.
	VacuousAllowed bool `json:"vacuous_allowed"`
	Exit           int  `json:"exit"`
}

// Situation is one that had to be met.
type Situation struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	// NotApplicable says why no history can meet it; "" where they must.
	NotApplicable string `json:"not_applicable"`
}

// Fault is a kind of step that disturbs, and how many steps of all histories were of it.
type Fault struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// Rule is one of the user's rules.
type Rule struct {
	Where  string `json:"where"` // file:line
	Answer string `json:"answer"`
	Title  string `json:"title"`
	True   int    `json:"true"`
	False  int    `json:"false"`
}

// Regression is the scenario of a history that broke a promise once.
type Regression struct {
	Scenario string `json:"scenario"` // its file
	Property string `json:"property"` // that breaks again
	// Unfit says why it was replayed only as far as it fits; "" where it was as a whole.
	Unfit string `json:"unfit"`
}

// Failure is a history that broke a promise.
type Failure struct {
	Seed     uint64   `json:"seed"`
	Rates    string   `json:"rates"` // how likely the seed makes each kind of action
	Property string   `json:"property"`
	Segment  string   `json:"segment"`
	Text     string   `json:"text"`
	Steps    []string `json:"steps"`
	Decided  string   `json:"decided_by"` // the deciding rule, file:line
	Reason   string   `json:"reason"`     // what that said, of which action
	Scenario string   `json:"scenario"`   // the file that replays it
	Replay   string   `json:"replay"`     // the command

	Before    int            `json:"steps_before_shrinking"`
	Trace     []sim.Line     `json:"-"`
	Snapshots []sim.Snapshot `json:"-"`
}

// FailureOf describes a failure that was shrunk from so many steps.
func FailureOf(f *sim.Failure, before int) Failure {
	v, said := f.Outcome.Violation, f.Outcome.Decided()
	reason := ""
	if said.Rule != "" {
		reason = string(said.Action) + ": " + said.Text
	}
	return Failure{Seed: f.Seed, Rates: f.Rates, Property: string(v.Property), Segment: v.Segment,
		Text: v.Text, Steps: StepsOf(f.Scenario), Decided: said.Rule, Reason: reason,
		Before: before, Trace: f.Outcome.Trace, Snapshots: f.Outcome.Snapshots}
}

// StepsOf are the steps of a scenario in words, what was chosen in each behind it. What is as
// simple as can be is left out.
func StepsOf(s *choose.Scenario) []string {
	var out []string
	for _, step := range choose.Steps(s.Choices)[1:] {
		if step[0].Pick == 0 {
			out = append(out, "everything heals, and time passes")
			continue
		}
		var with []string
		for _, c := range step[1:] {
			if c.Pick > 0 || c.Name != "" {
				with = append(with, c.String())
			}
		}
		text := step[0].Name
		if len(with) > 0 {
			const most = 4
			if len(with) > most {
				with = append(with[:most], fmt.Sprintf("and %d more", len(with)-most))
			}
			text += " (" + strings.Join(with, ", ") + ")"
		}
		out = append(out, text)
	}
	return out
}

// StepText is the line of a step, with what was chosen in it where the steps say so: a scenario
// that does not fit its project has others than the history that was made of it.
func StepText(steps []string, l sim.Line) string {
	if i := l.Step - 1; i >= 0 && i < len(steps) && strings.HasPrefix(steps[i], l.Text) {
		return steps[i]
	}
	return l.Text
}

// Screen is the failure on one screen of a terminal.
func (f *Failure) Screen(color bool) string {
	red, bold, off := "", "", ""
	if color {
		red, bold, off = "\x1b[31m", "\x1b[1m", "\x1b[0m"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%sFAILED%s  %s%s%s", red, off, bold, f.Property, off)
	if f.Segment != "" {
		fmt.Fprintf(&b, "  %s", f.Segment)
	}
	fmt.Fprintf(&b, "\n\n  %s\n\n", cut(f.Text))
	for i, s := range f.Steps {
		const most = 10
		if i == most {
			fmt.Fprintf(&b, "      and %d more: tiersim explain%s\n", len(f.Steps)-most,
				strings.TrimPrefix(f.Replay, "tiersim replay"))
			break
		}
		fmt.Fprintf(&b, "  %2d  %s\n", i+1, s)
	}
	if f.Before > len(f.Steps) {
		fmt.Fprintf(&b, "\n  seed     %d, shrunk from %s to %d", f.Seed, tier.Count(f.Before, "step"),
			len(f.Steps))
	}
	b.WriteByte('\n')
	if f.Rates != "" {
		fmt.Fprintf(&b, "  rates    %s\n", f.Rates)
	}
	if f.Decided != "" {
		fmt.Fprintf(&b, "  decided  %s  %s\n", f.Decided, cut(f.Reason))
	}
	fmt.Fprintf(&b, "  replay   %s\n", f.Replay)
	return b.String()
}

// cut gives what fits on a screen beside the rest.
func cut(text string) string {
	const most = 500
	letters := []rune(text)
	if len(letters) <= most {
		return text
	}
	return string(letters[:most]) + "… and " + tier.Count(len(letters)-most, "more letter")
}

// NotApplicable are the reasons for which histories cannot meet situations, with these, one a line.
func (r *Run) NotApplicable() (lines []string) {
	var whys []string
	names := map[string][]string{}
	for _, s := range r.Situations {
		if why := s.NotApplicable; why != "" {
			if names[why] == nil {
				whys = append(whys, why)
			}
			names[why] = append(names[why], s.Name)
		}
	}
	for _, p := range r.Heeded {
		lines = append(lines, p.notApplicable()...)
	}
	for _, why := range whys {
		lines = append(lines, why+": "+strings.Join(names[why], "; "))
	}
	return lines
}

// JSON is the run as one object, by the rules of docs/json.md: a list that is empty is [], a text
// that there is none of is null.
func (r *Run) JSON() ([]byte, error) {
	one := *r
	one.Failures = slices.Clone(r.Failures)
	for i := range one.Failures {
		listed(&one.Failures[i].Steps)
	}
	listed(&one.Situations)
	listed(&one.Faults)
	listed(&one.Rules)
	listed(&one.Heeded)
	listed(&one.Failures)
	listed(&one.Regressions)
	listed(&one.Vacuous)
	listed(&one.Unequal)
	text, err := json.MarshalIndent(&one, "", "  ")
	// No text holds these bytes: its quotes are escaped.
	text = bytes.ReplaceAll(text, []byte(`": ""`), []byte(`": null`))
	return append(text, '\n'), err
}

// listed makes a list of none.
func listed[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}

// Hang says which plugin did not come back.
func (r *Run) Hang() string {
	were := "were"
	if r.Hung == 1 {
		were = "was"
	}
	return fmt.Sprintf("%d of %s %s not answered: %s", r.Hung, tier.Count(r.Plugins, "question"), were,
		r.HungText)
}

// NotTried says how many seeds the run did not come to.
func (r *Run) NotTried() string {
	were := "were"
	if r.Untried == 1 {
		were = "was"
	}
	return tier.Count(r.Untried, "seed") + " " + were + " not tried"
}

// Annotations are GitHub's workflow commands, one a line: each failure at the rule that decided, or
// at the property where that rule is tierd's own. Names of files begin at from, which is below the
// root of the repository, or "".
func (r *Run) Annotations(from string) string {
	at := func(where string) string { return at(from, where) }
	var b strings.Builder
	for i := range r.Failures {
		f := &r.Failures[i]
		place := cmp.Or(at(f.Decided), at(strings.TrimPrefix(f.Property, "violation ")))
		fmt.Fprintf(&b, "::error %stitle=%s::%s; %s\n", place, escape(f.Property, true),
			escape(f.Text, false), escape(f.Replay, false))
	}
	if r.Hung > 0 {
		fmt.Fprintf(&b, "::error title=PLUGIN HANG::%s\n", escape(r.Hang(), false))
	}
	if r.PolicyHang != "" {
		fmt.Fprintf(&b, "::error %stitle=POLICY HANG::%s\n", at(r.PolicyHangAt),
			escape(r.PolicyHang, false))
	}
	level := "error"
	if r.VacuousAllowed {
		level = "warning"
	}
	if len(r.Failures) == 0 { // a failure ends the run before it has met everything
		for _, v := range r.Vacuous {
			fmt.Fprintf(&b, "::%s title=VACUOUS::%s\n", level, escape(v, false))
		}
		if r.Interrupted {
			fmt.Fprintf(&b, "::error title=not passed::%s\n", "interrupted: "+r.NotTried())
		}
	}
	for _, seed := range r.Unequal {
		fmt.Fprintf(&b, "::error title=not deterministic::two runs of seed %d differ\n", seed)
	}
	return b.String()
}

// at is the place of an annotation; nothing where file:line is of no file of the user's.
func at(from, where string) string {
	i := strings.LastIndexByte(where, ':')
	if i < 0 || path.Dir(where) == "tierd" {
		return ""
	}
	file := where[:i]
	if !path.IsAbs(file) {
		file = path.Join(from, file)
	}
	return fmt.Sprintf("file=%s,line=%s,", escape(file, true), where[i+1:])
}

func escape(s string, property bool) string {
	s = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
	if property {
		s = strings.NewReplacer(":", "%3A", ",", "%2C").Replace(s)
	}
	return s
}

// Matrix shows situations, faults, rules and plugins with their counts, for coverage.
func (r *Run) Matrix() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, seeds %d..%d\n\nsituation%smet\n", tier.Count(r.Histories, "history"),
		r.From, r.To, strings.Repeat(" ", 63))
	for _, s := range r.Situations {
		if s.NotApplicable != "" {
			fmt.Fprintf(&b, "  %-64s        -  %s\n", s.Name, s.NotApplicable)
			continue
		}
		fmt.Fprintf(&b, "  %-64s %8d%s\n", s.Name, s.Count, missing(s.Count == 0))
	}
	if len(r.Faults) > 0 {
		fmt.Fprintf(&b, "\nfault%sdrawn\n", strings.Repeat(" ", 65))
	}
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "  %-64s %8d\n", f.Name, f.Count)
	}
	if len(r.Rules) > 0 {
		fmt.Fprintf(&b, "\nrule%strue    false\n", strings.Repeat(" ", 58))
	}
	for _, rule := range r.Rules {
		fmt.Fprintf(&b, "  %-54s %8d %8d%s\n", rule.Answer+" "+rule.Where, rule.True, rule.False,
			missing(rule.True == 0 || rule.False == 0))
	}
	r.matrixOfPlugins(&b)
	return b.String()
}

func missing(is bool) string {
	if is {
		return "  VACUOUS"
	}
	return ""
}
