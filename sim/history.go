package sim

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/plugin"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
	"github.com/tierd/tierd/sim/choose"
)

// settleRounds of a minute each are longer than every backoff and slow period of the engine.
const settleRounds = 8

// The offset basis and the prime of FNV-1a with 64 bits.
const (
	fnvBasis = 14695981039346656037
	fnvPrime = 1099511628211
)

// historyStepsMax bounds a history whose chooser never ends it.
const historyStepsMax = 2_000

// Outcome is what a history came to.
type Outcome struct {
	// Violation is the first promise that was broken; nil where none was.
	Violation *Violation
	// Hash is over every operation with its fate, every effect, answer and choice of the process:
	// two runs of the same choices are the same run exactly if their hashes are.
	Hash uint64
	// Faultless is set where the history was drawn without faults.
	Faultless  bool
	Steps      int
	Operations int           // of the process on disk, store and ledger
	Effects    int           // performed
	Crashes    int           // of process or machine
	Decisions  int           // of the policies
	Deletions  int           // of local segments
	Judged     int           // deletions that the user's properties were asked about
	Simulated  time.Duration // that passed before everything healed
	// Met counts the situations of Situations, in its order.
	Met [situationsMax]int
	// Rules says of each rule of the policies, by its number in rego.Set.Rules, whether it gave a
	// reason and whether it was asked and gave none.
	Rules []RuleSeen
	// Plugins counts the questions to plugins, Hung those that one did not answer within its fuel.
	Plugins, Hung int
	// HungText says which plugin hung last, and in what.
	HungText string
	// Heeded says of each plugin of the project, in configured order, how its word was taken.
	Heeded []PluginHeeded
	// Faults counts the steps that disturb, of each kind that there is, in a fixed order.
	Faults []FaultSeen
	// Trace and Snapshots, one after each step, are there only where Options.Trace.
	Trace     []Line
	Snapshots []Snapshot

	deciders map[deletionOf]Decided
}

// FaultSeen says how often a step was drawn that disturbs.
type FaultSeen struct {
	Name  string
	Count int
}

// RuleSeen says how a rule was seen.
type RuleSeen struct{ True, False int }

// Line is one thing that happened, for people.
type Line struct {
	Step int       // from 1; 0 is what comes before
	At   tier.Time // by the machine's clock
	Lane Lane
	Text string
	// Operation is set for one of the process on the world that came to what it should.
	Operation bool
}

// Lane says where something happened: at a Place, or elsewhere.
type Lane string

// The lanes, in the order in which reports show them.
const (
	LaneStep   Lane = "step"
	LaneEffect Lane = "effect"
	LaneClock  Lane = "clock"
	LaneDisk        = Lane(OnDisk)
	LaneStore       = Lane(InStore)
	LaneLedger      = Lane(InLedger)
	LaneCopied Lane = "copied offset"
	LanePolicy Lane = "policy"
	LaneCrash  Lane = "crash"
	LaneOracle Lane = "oracle"
)

// Options are how a history is run.
type Options struct {
	Trace  bool    // keep the lines
	Bounds *Bounds // of an exhaustive search; nil for none

	// search is the exhaustive search that the history is part of; nil where it is made on its own.
	search *searcher
	// asked is told of each question to the policies; nil is nobody.
	asked func(*gate.Facts, rego.Evaluation)
}

// play is one history that is being made.
type play struct {
	p    *Project
	c    choose.Chooser
	w    *World
	o    *Oracle
	out  *Outcome
	opts Options
	hash uint64 // of all that was done; in a search of what was done in the last action
	rate rates
	// rules are those of the project's policies.
	rules []rego.Rule

	heed    *heed   // how plugins fare; of the world
	broker  *broker // that owns the logs; nil where they are plain
	over    overrides
	policy  int          // of policyNames, in force; only where Unsettled
	store   []storeFault // faults of the store that wait for their call
	storm   bool         // every call of the store fails
	lag     bool         // listings of manifests show nothing
	twice   bool         // what the store does it does once more, later
	disk    int          // points until the next fault of disk or ledger; 0 for none
	fate    Fate         // of it
	hit     Point        // the last point that was hit
	full    bool         // nothing more goes on the disk
	lies    bool         // the ledger's disk says too early that a commit is durable
	putBack func()       // puts an old ledger back; nil where none was kept
	// entries are of entryNames, by table; they are replaced as a whole.
	entries map[string]int
	inside  int             // calls of the store until something happens in the middle of one
	meet    func()          // what then happens
	aside   int             // points until the owner comes in between; 0 for never
	deed    func()          // what it then does
	brake   int             // operations on the audit log until somebody pauses; 0 for never
	unknown map[string]bool // facts that are not known now
	recent  []Point         // of the effect under way
	effect  engine.Effect   // under way; nil for none
	began   tier.Time
	start   bool // a process is starting
	fired   bool // a fault of disk or ledger happened in it
	// stopIn is the kind of effect in whose middle the process stops next, after so many operations.
	stopIn    string
	stopAfter int
	stopFate  Fate
	moment    int // of moments, at which the process stops next; negative for none
	healing   bool
	// disturbed counts the disturbances of an exhaustive search, part what the process was let do in
	// the step that is being made; last is the last part of that, where it is known.
	disturbed, part, last int
	// inRecovery arms what happens while the next process starts; nil for nothing.
	inRecovery func()
}

// storeFault is one of the store that happens at the next call that fits.
type storeFault struct {
	kind   fault.OpKind
	key    string
	name   string
	effect fault.Effect
}

// overrides are the settings of all tables that a history changed.
type overrides struct {
	ttl, localTTL                    *time.Duration
	localSegments, localBytes, bytes *tier.Limit
	tiering                          *bool
	disable                          *tier.DisablePolicy
}

func (o *overrides) apply(t tier.Table) tier.Table {
	set(&t.TTL, o.ttl)
	set(&t.LocalTTL, o.localTTL)
	set(&t.LocalSegments, o.localSegments)
	set(&t.LocalBytes, o.localBytes)
	set(&t.Bytes, o.bytes)
	set(&t.Tiering, o.tiering)
	set(&t.DisablePolicy, o.disable)
	return t
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// ended is what unwinds a history whose end came in the middle of a step.
type ended struct{}

// Run makes one history. Every choice is c's. Choosers may panic, as choose.Replay does.
func (p *Project) Run(c choose.Chooser, opts Options) (out *Outcome) {
	h := p.play(c, opts)
	defer func() {
		h.out.Hash = h.hash
		if h.w != nil {
			h.out.Met[SaidAgain] = h.w.mended
			h.w.Close()
		}
	}()
	h.until(func() {
		h.begin()
		h.steps()
		h.heal()
		h.judge()
	})
	return h.out
}

// play is a history of which nothing is made yet.
func (p *Project) play(c choose.Chooser, opts Options) *play {
	rules := p.Config.Policies.Rules()
	return &play{p: p, c: c, opts: opts, hash: fnvBasis, unknown: map[string]bool{}, moment: -1,
		rules: rules, out: &Outcome{Rules: make([]RuleSeen, len(rules))}}
}

// until makes part of a history, which may end in the middle of it: then it reports false.
func (h *play) until(do func()) (through bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, over := r.(ended); !over {
				panic(r)
			}
		}
	}()
	do()
	return true
}

func (h *play) begin() {
	h.rate = h.p.drawRates(h.c)
	h.out.Faultless = h.rate.faultless
	c := h.p.Config
	c.Workers = choose.Number(h.c, "workers", 1, 2)
	c.Tables = h.table
	c.Extern = h.extern
	hour := choose.Number(h.c, "hour of the week", 0, 7*24-1)
	w, err := NewWorld(c, builtinStart.Add(time.Duration(hour)*time.Hour))
	must(err)
	h.w, h.o, h.began = w, w.Observe(), w.Now
	if h.p.openBolt != nil {
		w.openBolt = h.p.openBolt
	}
	// What plugins keep is no more overdue than what policies keep.
	h.o.Policies = h.p.UserPolicies || h.p.Config.Plugins != nil
	h.o.Promises = h.p.Promises
	h.o.Denied = func(tier.LogID) bool { return h.policy > 0 }
	h.setDisk(90)
	h.shape()
	w.Watch, w.Before, w.Trace, w.Asked = h.watch, h.before, h.after, h.asked
	w.Answered = h.answered
	h.heed = newHeed(w)
	h.out.Heeded = h.heed.list
	w.Stepped = h.heed.stepped
	w.Bucket.SetHook(h.onStore)
	w.remembered = h.opts.search.remembered()
	if w.Config.Layout == tier.LayoutKafka {
		silent := choose.Yes(h.c, "without a record of epochs")
		h.broker = newBroker(w, silent, h.p.Logs...)
	}
	h.startProcess()
	if h.broker == nil {
		for _, id := range h.p.Logs {
			must(w.Append(id, 1))
		}
	}
	h.small()
}

// startProcess begins a process. One that does not start, though no fault is left, breaks a
// promise.
func (h *play) startProcess() {
	h.start, h.fired = true, false
	h.heed.forget()
	if arm := h.inRecovery; arm != nil {
		h.inRecovery = nil
		arm()
	}
	err := h.w.Start()
	h.disk = 0
	if err == nil && h.out.Crashes%twiceEvery == 1 {
		h.heed.forget()
		err = h.w.startAgain()
	}
	h.start = false
	if err == nil {
		h.situationsAtStart()
		return
	}
	if h.fired {
		h.crashed()
		return
	}
	if h.o.old {
		// Not every old ledger can be begun with: that of which the audit log shows a deletion that
		// it does not know ends the process, and says what to do.
		h.line(LaneLedger, "the process does not start: %v", err)
		h.rebuilds()
		return
	}
	h.o.violate(Recovered, "the process does not start: %v", err)
	h.judge()
}

// steps makes the steps until the chooser ends them.
func (h *play) steps() {
	s := h.stepper()
	h.snapshot()
	defer func() { h.out.Simulated = h.w.Now.Sub(h.began) }() // also where a violation ends it
	for h.out.Steps < h.opts.Bounds.steps() && s.step() {
	}
	h.out.Met[DriftedApart] = h.w.driftedApart
}

// stepper makes the steps of a history.
type stepper struct {
	h       *play
	acts    []act
	names   []string // of what can be chosen: the end, and then the acts
	fault   []int    // by act, its number in Faults, from 1; 0 for none
	weights []int
	then    []int // the weights after rates.length steps
}

func (h *play) stepper() *stepper {
	s := &stepper{h: h, acts: h.opts.Bounds.among(h.acts()), names: []string{"the end"}}
	s.fault = make([]int, len(s.acts))
	for i, a := range s.acts {
		s.names = append(s.names, a.kind+": "+a.name)
		if slices.Contains(faultKinds, a.kind) {
			h.out.Faults = append(h.out.Faults, FaultSeen{Name: s.names[i+1]})
			s.fault[i] = len(h.out.Faults)
		}
	}
	s.weights, s.then = h.rate.weights(s.acts, s.names, h.rate.favours(h.c, s.names[1:]))
	return s
}

// step chooses what happens next, and does it; false where that is the end.
func (s *stepper) step() bool {
	h := s.h
	if h.out.Steps == h.rate.length {
		s.weights = s.then
	}
	i := choose.Pick(h.c, choose.Step, s.names, s.weights)
	if i == 0 {
		return false
	}
	h.out.Steps++
	if n := s.fault[i-1]; n > 0 {
		h.out.Faults[n-1].Count++
	}
	h.line(LaneStep, "%s", s.names[i])
	h.last = lastPart[s.names[i]]
	s.acts[i-1].do()
	h.stepped()
	return true
}

// stepped ends a step.
func (h *play) stepped() {
	h.part = 0
	h.snapshot()
	h.judge()
}

// judge ends the history at the first broken promise.
func (h *play) judge() {
	h.out.Deletions, h.out.Judged = len(h.o.deletions), h.o.judged
	if v := h.o.Violations(); len(v) > 0 {
		h.out.Violation = &v[0]
		h.snapshot()
		h.line(LaneOracle, "%s", v[0])
		panic(ended{})
	}
}

func (h *play) line(lane Lane, format string, args ...any) {
	if h.opts.Trace {
		h.out.Trace = append(h.out.Trace, Line{Step: h.step(), At: h.w.Now, Lane: lane,
			Text: fmt.Sprintf(format, args...)})
	}
}

// step is the number of the step that is being made; that after the last one heals everything.
func (h *play) step() int {
	if h.healing {
		return h.out.Steps + 1
	}
	return h.out.Steps
}

// mix goes on with the FNV-1a hash of the history.
func (h *play) mix(parts ...string) {
	hash := h.hash
	for _, p := range parts {
		for i := range len(p) {
			hash = (hash ^ uint64(p[i])) * fnvPrime
		}
		hash *= fnvPrime // of a zero byte, which ends the part
	}
	h.hash = hash
}

// watch decides about one operation: the armed fault of disk or ledger happens, the owner comes in
// between, or nothing.
func (h *play) watch(p Point) Fate {
	h.out.Operations++
	if h.aside > 0 {
		if h.aside--; h.aside == 0 {
			h.w.aside(h.deed)
		}
	}
	if h.brake > 0 && announces(p) {
		if h.brake--; h.brake == 0 {
			h.w.aside(h.pauseOrGoOn)
		}
	}
	fate := Proceed
	fits := p.Place != InStore || h.fate == StopBefore || h.fate == StopAfter
	if h.disk > 0 && fits {
		if h.disk--; h.disk == 0 {
			h.hit, fate, h.fired = p, h.fate, true
		}
	}
	if fate == Proceed && h.awaited(p) {
		h.hit, fate, h.fired = p, StopBefore, true
	}
	if h.lies && fate == Proceed && p.Place == InLedger {
		fate = Lose
	}
	if h.full && fate == Proceed && growing(p) {
		fate, h.fired, h.w.cause = Fail, true, vfs.ErrFull
	}
	if b := h.opts.Bounds; b != nil && p.Changes() && h.mayDisturb() {
		if choose.Yes(h.c, "stop before "+p.String()) {
			h.disturbed++
			h.hit, fate, h.fired = p, StopBefore, true
		}
	}
	h.mix(string(p.Place), p.Kind, p.Name, p.To, string('0'+rune(fate)))
	if p.Changes() && h.opts.Trace {
		h.line(Lane(p.Place), "%s%s", p.what(), fateText(fate))
		h.out.Trace[len(h.out.Trace)-1].Operation = fate == Proceed
	}
	if fate != StopBefore && fate != Fail && p.Changes() {
		h.recent = append(h.recent, p)
	}
	if fate == StopBefore || fate == StopAfter {
		h.situationsAtStop()
	}
	return fate
}

func fateText(f Fate) string {
	return map[Fate]string{Fail: " fails", FailAfter: " takes effect, and reports a failure",
		StopBefore: " is not reached: the process stops", StopAfter: " is the last: the process stops",
		Lose: " is said to be durable, and is not",
	}[f]
}

// onStore lets the first armed fault of the store that fits happen.
func (h *play) onStore(op fault.Op) fault.Effect {
	if h.inside > 0 {
		if h.inside--; h.inside == 0 {
			h.meet()
		}
	}
	if h.storm {
		return fault.Effect{Err: errBusy}
	}
	// That a ledger is an old one, only a listing tells; RATIONALE says what that takes.
	if h.lag && !h.o.old && op.Kind == fault.OpIter && strings.Contains(op.Key, "manifest") {
		return fault.Effect{Hide: func(string) bool { return true }}
	}
	h.disturb(op)
	for i, a := range h.store {
		if a.fits(op) && (a.effect.Hide == nil || !h.o.old) {
			h.store = slices.Delete(h.store, i, i+1)
			h.mix("store", a.name)
			h.line(LaneStore, "%s %s: %s", op.Kind, op.Key, a.name)
			if a.effect.Applied {
				h.met(TimeOutWithEffect)
			}
			return a.effect
		}
	}
	return fault.Effect{Twice: h.twice}
}

// mayDisturb reports whether an exhaustive search may disturb what happens now.
func (h *play) mayDisturb() bool {
	return h.disturbed < h.opts.Bounds.Disturbances && h.out.Steps > 0 && !h.healing
}

// disturb chooses whether this very call fails, in an exhaustive search.
func (h *play) disturb(op fault.Op) {
	if h.opts.Bounds == nil || !h.mayDisturb() || !h.w.acting {
		return
	}
	may := boundedChoices[op.Kind]
	if may == nil {
		return
	}
	if i := choose.Pick(h.c, string(op.Kind), may.names, nil); i > 0 {
		h.disturbed++
		h.store = append(h.store, may.faults[i])
	}
}

// before begins to note what an effect does.
func (h *play) before(f engine.Effect) error {
	h.effect, h.recent = f, h.recent[:0]
	h.out.Effects++
	kind := reflect.TypeOf(f).Name()
	if kind == h.stopIn {
		h.stopIn, h.disk, h.fate = "", h.stopAfter, h.stopFate
	}
	h.mix(kind)
	h.line(LaneEffect, "%s %s", kind, subject(f))
	return nil
}

// after is told how an effect ended.
func (h *play) after(f engine.Effect, r engine.Result) {
	h.situationsAfter(f, r)
	h.heed.ended(f, r)
	h.mix(reflect.TypeOf(r).String())
	switch r := r.(type) {
	case engine.Selected:
		if f, ok := f.(engine.Select); ok && h.opts.Trace {
			for _, line := range saidLines(f, &r) {
				h.line(LanePolicy, "%s", line)
			}
		}
	case engine.Copied:
		h.line(LaneCopied, "%s is copied up to %d", subject(f), r.Offset)
	case engine.Moved:
		h.line(LaneCopied, "%s begins at %d (%s)", subject(f), r.Start, r.Cause)
	case engine.HoleDone:
		h.line(LaneCopied, "%s has a hole %s (%s)", subject(f), r.Hole.Range, r.Hole.Cause)
	}
	h.effect = nil
}

// answered is told what the plugins said.
func (h *play) answered(_ engine.Selected, faults []plugin.Fault) {
	h.out.Plugins++
	h.situationsAnswered(faults)
	for _, f := range faults {
		h.mix(f.Plugin, string(f.Kind))
		h.line(LanePolicy, "plugin %s gives no answer: %s", f.Plugin, f.Text)
		own := h.w.Config.Plugins == h.p.Config.Plugins
		if own && (f.Kind == plugin.FaultFuel || f.Kind == plugin.FaultTime) {
			h.out.Hung++
			h.out.HungText = f.Plugin + ": " + f.Text
		}
	}
}

// extern gives the facts that are known now.
func (h *play) extern(tier.Time, tier.LogID) (known map[string]any,
	unknown []tier.UnknownFact) {
	known = map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(h.p.Facts)) {
		if h.unknown[name] || h.p.Facts[name] == nil {
			unknown = append(unknown, tier.UnknownFact{Name: name, Why: "nobody wrote it"})
		} else {
			known[name] = h.p.Facts[name]
		}
	}
	return known, unknown
}

// setDisk sets how full the disk is, in per cent free.
func (h *play) setDisk(free int64) {
	const gib = 1 << 30
	h.w.Config.Node = gate.NodeFacts{DiskFreeBytes: free * gib, DiskUsedBytes: (100 - free) * gib}
}

// alive answers what an action of the process came to. A process that ended is started again:
// alone, or with its machine.
func (h *play) alive(err error) {
	h.disk = 0
	h.part++
	if err == nil {
		return
	}
	if h.w.Ended() == nil {
		h.o.violate(NoLivelock, "the process goes on after: %v", err)
		h.judge()
	}
	h.crashed()
}

// crashed plays the end of a process, and what begins after it.
func (h *play) crashed() {
	h.opts.search.beforeStop(h)
	h.ends()
	h.opts.search.afterStop(h)
	h.startProcess()
	h.line(LaneCrash, "a new process has started")
}

// ends plays the end of a process, alone or with its machine.
func (h *play) ends() {
	h.out.Crashes++
	h.disk, h.effect, h.full = 0, nil, false // an operator makes room
	// An fsync that failed ends the trust in its file until the machine is started anew.
	if h.hit.Kind != string(vfs.OpSync) && !h.lies && choose.Yes(h.c, "the process alone") {
		h.line(LaneCrash, "the process is killed")
		h.w.Kill()
	} else {
		h.hit = Point{}
		h.line(LaneCrash, "the machine stops")
		h.losesCommits()
		all := h.opts.Bounds != nil && choose.Yes(h.c, "all that was not synced survives")
		h.w.Crash(func(label string, n int) int {
			if h.opts.Bounds != nil && all {
				return min(n-1, 1)
			} else if h.opts.Bounds != nil {
				return 0
			}
			pick := choose.Number(h.c, label, 0, n-1)
			if pick > 0 {
				h.line(LaneDisk, "survives, though nobody synced it: %s", label)
			}
			return pick
		})
		h.boots()
	}
}

// heal ends all faults and stops, lets time pass, and asks the oracle for what is due.
func (h *play) heal() {
	h.healing = true
	h.disarms()
	h.unknown = map[string]bool{}
	h.line(LaneStep, "everything heals, and time passes")
	h.w.Skew, h.w.Drift = 0, 0
	must(h.w.Return())
	h.movesAway()
	h.leadersHeal()
	forbidden := h.w.Config.Delete != h.p.Config.Delete
	h.w.Config.Delete = h.p.Config.Delete
	h.w.Config.Brake = h.p.Config.Brake
	h.w.SetPaused(false)
	stays := []string{"as they were", "as they are"}
	denies := h.policy == 1 // one that fails is to be mended
	if h.policy > 0 && !(denies && choose.Later(h.c, "the policies in the end", stays, nil) == 1) {
		h.setPolicy(0)
	}
	if h.over.tiering != nil && choose.Later(h.c, "the tiering in the end", stays, nil) == 0 {
		h.over.tiering = nil
	}
	away := h.entries != nil
	if away && choose.Later(h.c, "the entries in the end", stays, nil) == 0 {
		h.entries = nil
	}
	h.over.ttl = nil
	limits := []string{"table.log.ttl, too", "table.log.bytes alone"}
	sized := h.over.bytes != nil && h.over.bytes.Set
	if sized && choose.Later(h.c, "the limits in the end", limits, nil) == 1 {
		h.over.ttl = new(time.Duration) // what is not beyond its size stays for ever
	}
	h.w.Config.Plugins = h.p.Config.Plugins
	refused := h.reload() != nil
	h.rebuilds()
	// The way to delete is the source's, and read once. What was being disabled when its entry went
	// away goes on where a process begins with one, whatever it says.
	if choose.Yes(h.c, "a new process in the end") || forbidden || refused && away {
		h.w.Kill()
		h.startProcess()
	}
	h.acceptClock()
	h.alive(h.w.Scrub())
	for round := 0; refused && round < settleRounds; round++ {
		// A disablement is in progress, and by a clock that went back its grace may be long.
		h.settle()
		h.alive(h.w.Elapse(24 * time.Hour))
		refused = h.reload() != nil
	}
	h.o.refused = refused
	before := 1
	if h.broker != nil {
		before += settleRounds
		h.settle()
		h.repairsAgain()
	}
	h.minutes(before)
	h.o.Current()
	h.judge()
	h.opts.search.afterSettling(h)
	h.landsAllAgain()
	h.alive(h.w.Elapse(min(h.p.longest(), lastMoment.Sub(h.w.Now))))
	h.minutes(2*settleRounds - before + h.mostHoles()*settleRounds)
	h.o.Quiet()
}

// mostHoles is how many holes the log has that has the most. An expiry stops at each one for a slow
// period, in which what came back there is copied, and asked about.
func (h *play) mostHoles() (most int) {
	ledger := h.w.process.ledger
	for _, id := range ledger.Logs() {
		state, _ := ledger.Log(id)
		most = max(most, len(state.Holes))
	}
	return most
}

// minutes lets the process do what it can, and so many minutes pass. Nobody changes anything any
// more: in a minute that makes nothing due for the engine nothing happens.
func (h *play) minutes(n int) {
	for i := range n {
		if at, waits := h.w.process.engine.NextDue(); i == 0 || waits && at <= h.w.Now {
			h.settle()
		}
		h.w.Advance(time.Minute)
		if most := h.w.Config.MaxClockStep; most > 0 && h.w.Now.Sub(h.w.process.ledger.Clock()) > most/2 {
			h.alive(h.w.tendClock()) // a daemon looks each interval, and sees no step
		}
	}
}

// settle lets the process do all that it can do now, with no table paused.
func (h *play) settle() {
	for _, table := range h.p.tables() {
		if h.w.process.ledger.Table(table).Paused != nil {
			h.resume(table)
		}
	}
	if err := h.w.Run(); err != nil {
		h.o.violate(Recovered, "nothing fails any more, and the process ends: %v", err)
		h.judge()
	}
	h.judge()
}

func (h *play) resume(table string) {
	if err := h.w.Resume(table); err != nil && !errors.Is(err, tier.ErrRefused) {
		h.alive(err)
	}
}
