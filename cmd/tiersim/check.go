package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tierd/tierd/cmd/internal/screen"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/sim"
	"github.com/tierd/tierd/sim/choose"
	"github.com/tierd/tierd/sim/report"
)

// runFlags say how many histories are tried.
type runFlags struct {
	Seeds  string        `default:"1..200" help:"How many histories, from seed 1 on, or which seeds: N or A..B; ${default} without it." placeholder:"N|A..B"`
	Budget time.Duration `help:"Stop after so long, such as 60s; without it there is no limit." placeholder:"DURATION"`
	Jobs   int           `short:"j" help:"Histories at one time; 0 is one for each processor."`
	Fresh  bool          `help:"Take the first seed from the clock, and print it."`
}

// outputFlags say where reports go.
type outputFlags struct {
	Out    string `default:"." help:"Directory for the scenario and the HTML page of a failure; it is made if it is not there. Without it they are written here." placeholder:"DIR"`
	JUnit  string `name:"junit" help:"Write JUnit XML to the file; - is stdout, with nothing else." placeholder:"FILE"`
	JSON   string `name:"json" help:"Write JSON to the file; - is stdout, with nothing else." placeholder:"FILE"`
	GitHub bool   `name:"github" env:"GITHUB_ACTIONS" help:"Print annotations for GitHub."`
}

// checkCmd tries histories.
type checkCmd struct {
	projectFlags
	runFlags
	outputFlags
	Failures     int           `default:"1" help:"Stop after so many failures."`
	Shrinks      int           `default:"5000" help:"How many histories shrinking one failure may take."`
	ShrinkTime   time.Duration `default:"30s" help:"How long shrinking one failure may take." placeholder:"30s"`
	Regressions  string        `help:"Directory of scenarios that are replayed first; regressions beside the configuration, if it is there, without it." placeholder:"DIR"`
	AllowVacuous bool          `name:"allow-vacuous" help:"Exit 0 also where a situation was not met, or a rule or plugin not tried."`
}

// Help says more.
func (c *checkCmd) Help() string {
	return `Each seed is one history, drawn by chance: of owners that write, processes that copy and
delete, clocks that jump, and stores, disks and machines that fail. An oracle below the engine, with
its own record of every byte, judges each step; the rules of package tierd.sim judge each deletion.

A failure is shrunk to its fewest steps, and its scenario is written to tiersim-SEED.json. Run it
again with replay, tell it with explain, and keep it in a directory regressions beside the
configuration: check replays what lies there before it tries any seed, and ends where that fails.

Exit code: 0 passed, 1 a promise was broken, 2 bad input, 3 vacuous: a situation was not met or a
rule never true or never false, or a plugin never obeyed or never overruled, 4 two runs of a seed
differed, 5 a plugin, or an expression of a policy, did not come back, 130 interrupted.

Examples:

	tiersim check --config ./retention
	tiersim check --seeds 1..5000 --budget 10m --junit report.xml`
}

// seedsMax bounds a range of seeds.
const seedsMax = 10_000_000

// seeds reads the range.
func (r *runFlags) seeds() (from, to uint64, err error) {
	a, b, isRange := strings.Cut(r.Seeds, "..")
	if !isRange {
		a, b = "1", a
	}
	from, errFrom := strconv.ParseUint(a, 10, 63)
	to, errTo := strconv.ParseUint(b, 10, 63)
	switch {
	case errTo == nil && to == 0:
		return 0, 0, fmt.Errorf("--seeds %s: no history at all would show nothing", r.Seeds)
	case errFrom != nil || errTo != nil || to < from:
		return 0, 0, fmt.Errorf("--seeds %s: want a number of histories, or two seeds such as 1..500",
			r.Seeds)
	case r.Budget < 0:
		return 0, 0, negative(r.Budget)
	case to-from >= seedsMax:
		return 0, 0, fmt.Errorf("--seeds %s: %d histories are the most of one run", r.Seeds, seedsMax)
	}
	if r.Fresh {
		first := uint64(time.Now().UnixNano()) >> 10
		from, to = first, first+(to-from)
	}
	return from, to, nil
}

// negative says why a budget is none.
func negative(budget time.Duration) error {
	return fmt.Errorf("--budget %s: want a time such as 60s, or 0 for no limit", budget)
}

// repeatEvery is how many seeds lie between two that are run twice: 5% are.
const repeatEvery = 20

// Run checks.
func (c *checkCmd) Run(a *app) error {
	p, err := c.load(a, layoutOf(c.Layout))
	if err != nil {
		return err
	}
	from, to, err := c.seeds()
	if err != nil {
		return err
	}
	if c.Failures < 1 || c.Shrinks < 0 {
		return fmt.Errorf("--failures %d --shrinks %d: want at least 1 and 0", c.Failures, c.Shrinks)
	}
	if c.JUnit == stdout && c.JSON == stdout {
		return errors.New("--junit - --json -: want one of them in a file")
	}
	if err := room(c.Out, c.JUnit, c.JSON); err != nil {
		return err
	}
	if !c.quiet() {
		a.warn(p)
		a.printf("seeds %d..%d of %s, %s\n", from, to, screen.Line(c.subject()),
			tier.Count(len(p.Logs), "log"))
	}
	past, err := c.past(a, p)
	if err != nil {
		return err
	}
	if past != nil && (len(past.Failures) > 0 || past.PolicyHang != "") {
		return c.finish(a, past)
	}
	r := &runner{p: p, from: from, to: to, flags: &c.runFlags, stopAt: c.Failures, a: a}
	if !c.quiet() {
		r.status.a = a
	}
	hung := r.run()
	out := r.report(c.subject())
	if hung != nil {
		hung.tell(out)
	}
	if past != nil {
		out.Regressions = past.Regressions
	}
	c.failures(a, r, out)
	return c.finish(a, out)
}

// warn says what of the configuration is not simulated.
func (a *app) warn(p *sim.Project) {
	for _, why := range p.Absent {
		a.printf("warning: %s\n", screen.Line(why))
	}
}

// stdout is the name of a report that goes there, and nothing else does.
const stdout = "-"

func (o *outputFlags) quiet() bool { return o.JSON == stdout || o.JUnit == stdout }

// within is true for so long, and until the command is interrupted.
func (a *app) within(d time.Duration) func() bool {
	end := time.Now().Add(d)
	return func() bool { return a.ctx.Err() == nil && time.Now().Before(end) }
}

func (f *projectFlags) subject() string {
	if f.Builtin {
		return "tierd's own project"
	}
	return f.Config
}

// failures shrinks what failed, and writes its files.
func (c *checkCmd) failures(a *app, r *runner, out *report.Run) {
	for _, f := range r.failed {
		before := len(report.StepsOf(f.Scenario))
		small := c.shrunk(a, r, f, out)
		name := filepath.Join(c.Out, fmt.Sprintf("tiersim-%d.json", f.Seed))
		row := c.row(small, before, name, layoutOf(c.Layout))
		kept := c.tell(a, &row, small.Scenario.Encode(), out)
		if !c.quiet() {
			if dir, _ := c.regressions(); dir != "" && kept {
				a.printf("  keep it  mkdir -p %s && cp %s %[1]s/\n", screen.Line(shell(asFile(dir))),
					screen.Line(shell(asFile(name))))
			}
			a.print("\n")
		}
	}
}

// shrunk is the failure with fewer steps; as it is where policies do not answer any more.
func (c *checkCmd) shrunk(a *app, r *runner, f *sim.Failure, out *report.Run) *sim.Failure {
	if out.PolicyHang != "" {
		return f
	}
	small := f
	more := r.status.count("shrinking: %s", a.within(c.ShrinkTime))
	var made *sim.Failure
	hung := a.ask(func() { made = r.p.Shrink(f, c.Shrinks, more) })
	r.status.clear()
	if hung != nil {
		hung.tell(out)
	} else {
		small = made
	}
	return small
}

// tell puts a failure into the run and prints it, first of all, so that a file that cannot be
// written hides none; then it keeps it, as keep does.
func (c *checkCmd) tell(a *app, row *report.Failure, scenario []byte, out *report.Run) (kept bool) {
	out.Failures = append(out.Failures, *row)
	if !c.quiet() {
		a.print("\n")
		a.failure(row)
	}
	page, kept := a.keep(row, scenario, c.Out, out.Subject, out.Digest)
	if page != "" && !c.quiet() {
		a.printf("  report   %s\n", screen.Line(page))
	}
	return kept
}

// row describes a failure that had so many steps before it was shrunk, came about with sources of
// the layout, and whose scenario is in the file.
func (f *projectFlags) row(failure *sim.Failure, before int, file string,
	layout tier.Layout) report.Failure {
	row := report.FailureOf(failure, before)
	row.Scenario, row.Replay = file, f.replayLine(failure.Scenario, file, layout)
	return row
}

// replayLine is the command that runs a scenario of the same project again.
func (f *projectFlags) replayLine(s *choose.Scenario, file string, layout tier.Layout) string {
	line := "tiersim replay " + shell(asFile(file))
	if layout != layoutOf(s.Layout) {
		line += " --layout " + string(layout)
	}
	return line + f.flagsAgain()
}

// flagsAgain are the flags that make the same project, but for the layout.
func (f *projectFlags) flagsAgain() string {
	out := ""
	switch {
	case f.Builtin:
		return " --builtin"
	case f.Config != "./tierd.yaml" && f.Config != "tierd.yaml":
		out += " --config " + shell(asFile(f.Config))
	}
	for _, t := range f.Table {
		out += " --table " + shell(t)
	}
	for _, t := range f.Fact {
		out += " --fact " + shell(t)
	}
	return out
}

// finish writes the reports and says how it ended.
func (c *checkCmd) finish(a *app, out *report.Run) error {
	switch {
	case len(out.Failures) > 0:
		out.Exit = exitViolation
	case out.Hung > 0, out.PolicyHang != "":
		out.Exit = exitHang
	case len(out.Unequal) > 0:
		out.Exit = exitIndeterminate
	case out.Interrupted:
		out.Exit = exitInterrupted
	case len(out.Vacuous) > 0 && !c.AllowVacuous:
		out.Exit = exitVacuous
	}
	out.VacuousAllowed = c.AllowVacuous
	text, err := out.JSON()
	if err != nil {
		return err
	}
	switch c.JSON {
	case "":
	case stdout:
		a.print(string(text))
	default:
		a.lose(write(c.JSON, text))
	}
	if !c.quiet() {
		a.summary(out)
	}
	if c.JUnit != "" {
		text, err := out.JUnit()
		if err != nil {
			return err
		}
		shown := screen.Visible(string(text))
		if c.JUnit == stdout {
			a.print(shown)
		} else {
			a.lose(write(c.JUnit, []byte(shown)))
		}
	}
	if c.GitHub && !c.quiet() {
		a.print(screen.Visible(out.Annotations(a.fromWorkspace())))
	}
	return ended(out.Exit)
}

// summary is the end of a run on a terminal.
func (a *app) summary(out *report.Run) {
	if out.PolicyHang != "" {
		a.printf("POLICY HANG: %s\n", screen.Line(out.PolicyHang))
	}
	if out.Histories == 0 && len(out.Failures) > 0 {
		return // a regression failed, and no seed was tried
	}
	a.printf("%s (%d without faults, %d on bbolt, %d run twice) in %s: %s, %s, %s, %s, %s simulated\n",
		tier.Count(out.Histories, "history"), out.Faultless, out.OnBolt, out.Repeated,
		out.Elapsed.Round(time.Millisecond), tier.Count(out.Operations, "operation"),
		tier.Count(out.Crashes, "crash"), tier.Count(out.Decisions, "decision"),
		tier.Count(out.Deletions, "local deletion"), tier.Count(int(out.Simulated/(24*60*60)), "day"))
	switch {
	case out.Interrupted:
		a.printf("interrupted: %s\n", out.NotTried())
	case out.PolicyHang != "":
	case out.Untried > 0:
		a.printf("the budget ended it: %s\n", out.NotTried())
	}
	for _, seed := range out.Unequal {
		a.printf("NOT DETERMINISTIC: two runs of seed %d differ\n", seed)
	}
	if out.Hung > 0 {
		a.printf("PLUGIN HANG: %s\n", screen.Line(out.Hang()))
	}
	for _, p := range out.Heeded {
		a.printf("plugin %s: obeyed %s, overruled %s\n", screen.Line(p.Name),
			tier.Count(p.Obeyed, "time"), tier.Count(p.Overruled, "time"))
	}
	// A failure ends the run before it has met everything.
	if len(out.Failures) == 0 && out.PolicyHang == "" {
		for _, line := range lines(out.NotApplicable()) {
			a.printf("not applicable: %s\n", line)
		}
		for _, v := range lines(out.Vacuous) {
			a.printf("VACUOUS: %s\n", v)
		}
	}
	switch {
	case out.Exit == exitPassed:
		a.printf("passed\n")
	case out.Interrupted, out.PolicyHang != "":
		a.printf("not passed\n")
	case out.Exit == exitVacuous:
		a.printf("not passed: more --seeds may meet it; --allow-vacuous is for runs that are short " +
			"on purpose\n")
	}
}

// report sums the histories up.
func (r *runner) report(subject string) *report.Run {
	out := r.sum
	out.Subject, out.Digest = subject, r.p.Digest
	for _, s := range sim.Situations() {
		why := r.p.NotApplicable(s)
		out.Situations = append(out.Situations, report.Situation{Name: s.String(), Count: r.met[s],
			NotApplicable: why})
		if r.met[s] == 0 && why == "" {
			out.Vacuous = append(out.Vacuous, "never met: "+s.String())
		}
	}
	for i, rule := range r.p.Config.Policies.Rules() {
		if rule.Builtin {
			continue
		}
		seen := r.rules[i]
		out.Rules = append(out.Rules, report.Rule{Where: rule.Where, Answer: rule.Answer,
			Title: rule.Title, True: seen.True, False: seen.False})
		if seen.True == 0 {
			out.Vacuous = append(out.Vacuous, fmt.Sprintf("never true: %s %s", rule.Answer, rule.Where))
		}
		if seen.False == 0 {
			out.Vacuous = append(out.Vacuous, fmt.Sprintf("never false: %s %s", rule.Answer, rule.Where))
		}
	}
	if r.p.Config.Plugins != nil && out.Plugins == 0 {
		out.Unasked = append(out.Unasked, "no plugin was asked")
	}
	for _, seen := range r.heeded {
		x := report.Plugin{Name: seen.Name, Obeyed: seen.Obeyed, Overruled: seen.Overruled}
		x.NeverObeyed, x.NeverOverruled = r.p.Unheedable(seen)
		out.Heeded = append(out.Heeded, x)
		out.Vacuous = append(out.Vacuous, x.Vacuous()...)
	}
	if r.p.Promises != nil && out.Judged == 0 {
		out.Unasked = append(out.Unasked, "no deletion was put to the rules of package tierd.sim")
	}
	out.Vacuous = append(out.Vacuous, out.Unasked...)
	if len(r.failed) > 0 || out.Interrupted || out.Hung > 0 {
		out.Vacuous = nil // what a run that ended, or whose plugin did, does not meet says nothing
	}
	slices.Sort(out.Unequal)
	return &out
}

// runner makes histories on several processors.
type runner struct {
	a        *app
	p        *sim.Project
	from, to uint64
	flags    *runFlags
	stopAt   int
	status   status

	mu     sync.Mutex
	next   uint64
	failed []*sim.Failure
	met    map[sim.Situation]int
	rules  []sim.RuleSeen
	heeded []sim.PluginHeeded
	sum    report.Run
	over   bool // what histories come to counts no more
}

// run makes the histories. The hang is nil where they all ended.
func (r *runner) run() *hang {
	began := time.Now()
	ctx := r.a.ctx
	if r.flags.Budget > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.flags.Budget)
		defer cancel()
	}
	r.next, r.met = r.from, map[sim.Situation]int{}
	r.rules = make([]sim.RuleSeen, len(r.p.Config.Policies.Rules()))
	jobs := r.flags.Jobs
	if jobs <= 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	var wait sync.WaitGroup
	for range jobs {
		wait.Go(func() {
			for {
				seed, more := r.take(ctx)
				if !more {
					return
				}
				r.try(seed)
			}
		})
	}
	hung := r.a.ask(wait.Wait)
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	if made := uint64(r.sum.Histories); made < r.to-r.from+1 && len(r.failed) < r.stopAt {
		r.sum.Untried = r.to - r.from + 1 - made
		r.sum.Interrupted = hung == nil && r.a.ctx.Err() != nil
	}
	r.sum.From, r.sum.To, r.sum.Elapsed = r.from, max(r.next, r.from+1)-1, time.Since(began)
	slices.SortFunc(r.failed, func(a, b *sim.Failure) int { return cmp.Compare(a.Seed, b.Seed) })
	if len(r.failed) > r.stopAt {
		r.failed = r.failed[:r.stopAt]
	}
	r.status.clear()
	return hung
}

// stuck reports whether policies or properties do not answer any more. What histories come to then
// says nothing.
func (r *runner) stuck() bool {
	return r.p.Config.Policies.Hung() != nil || r.p.Promises != nil && r.p.Promises.Hung() != nil
}

// take gives the next seed. However short the budget is, one history is made: none would show
// nothing.
func (r *runner) take(ctx context.Context) (uint64, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	late := ctx.Err() != nil && (r.next > r.from || r.a.ctx.Err() != nil)
	if r.next > r.to || len(r.failed) >= r.stopAt || late || r.over || r.stuck() {
		return 0, false
	}
	r.next++
	return r.next - 1, true
}

// boltEvery is how many seeds lie between two whose ledger lies in a real bbolt file.
const boltEvery = 25

// find makes the history of a seed, with its ledger in a file where it is its turn.
func (r *runner) find(seed uint64) (out *sim.Outcome, failure *sim.Failure, onBolt bool) {
	p := *r.p
	p.Config.Hung = r.a.whenHung(seed)
	if seed%boltEvery == 0 {
		if out, failure, err := p.FindOnBolt(seed); err == nil {
			return out, failure, true
		}
	}
	out, failure = p.Find(seed)
	return out, failure, false
}

func (r *runner) try(seed uint64) {
	out, failure, onBolt := r.find(seed)
	again := out
	if seed%repeatEvery == 0 {
		p := *r.p
		p.Config.Hung = r.a.whenHung(seed)
		again = p.Run(choose.NewRandom(seed), sim.Options{})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || r.stuck() {
		return
	}
	if failure != nil {
		r.failed = append(r.failed, failure)
	}
	s := &r.sum
	if again != out {
		s.Repeated++
		if again.Hash != out.Hash {
			s.Unequal = append(s.Unequal, seed)
		}
	}
	s.Histories++
	if onBolt {
		s.OnBolt++
	}
	if out.Faultless {
		s.Faultless++
	}
	s.Operations += out.Operations
	s.Effects += out.Effects
	s.Crashes += out.Crashes
	s.Decisions += out.Decisions
	s.Deletions += out.Deletions
	s.Judged += out.Judged
	s.Plugins += out.Plugins
	s.Hung += out.Hung
	if out.Hung > 0 {
		s.HungText = out.HungText
	}
	s.Simulated += int64(out.Simulated / time.Second)
	for _, name := range sim.Situations() {
		r.met[name] += out.Met[name]
	}
	if r.heeded == nil {
		r.heeded = make([]sim.PluginHeeded, len(out.Heeded))
	}
	for i, seen := range out.Heeded {
		r.heeded[i].Add(seen)
	}
	if s.Faults == nil {
		s.Faults = make([]report.Fault, len(out.Faults))
	}
	for i, seen := range out.Faults {
		s.Faults[i].Name = seen.Name
		s.Faults[i].Count += seen.Count
	}
	for i, seen := range out.Rules {
		r.rules[i].True += seen.True
		r.rules[i].False += seen.False
	}
	r.status.show("%d of %d histories, %d failed", s.Histories, r.to-r.from+1, len(r.failed))
}
