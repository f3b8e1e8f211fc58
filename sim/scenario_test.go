package sim

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/plugin"
	"github.com/tierd/tierd/runtime/tier"
)

// TestScenarios runs the stories in testdata/scenarios. Each file is one behaviour, readable on its
// own; "go test ./sim -run TestScenarios -rewrite" writes down what happens now.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			s := newScenario(t)
			datadriven.RunTest(t, file, s.command)
		})
	}
}

// scenario is one story: a world, and what was said about it so far.
type scenario struct {
	t       *testing.T
	w       *World
	yaml    string
	policy  []rego.Module
	out     strings.Builder
	faults  []armed
	oracle  *Oracle
	judged  int // violations that were reported
	plugins *plugin.Set
	broker  *broker // of a story about a broker's directory; nil otherwise

	putBack func()    // puts an old ledger back
	between []between // what happens in the middle of calls that are to come
}

// armed is a fault that waits for its call.
type armed struct {
	kind   fault.OpKind
	key    string // part of the object's key
	skip   int    // calls that go well before it
	times  int    // calls that it hits; 0 is all
	effect fault.Effect
}

// scenarioStart is when every story begins.
var scenarioStart = tier.TimeOf(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))

func newScenario(t *testing.T) *scenario {
	s := &scenario{t: t, yaml: "defaults: {table.log.ttl: 7d, table.log.local-ttl: 1h}\n"}
	c, err := s.config()
	if err != nil {
		t.Fatal(err)
	}
	if s.w, err = NewWorld(c, scenarioStart); err != nil {
		t.Fatal(err)
	}
	s.oracle = s.w.Observe()
	s.w.Trace, s.w.Trouble = s.trace, s.trouble
	s.w.Bucket.SetHook(s.hook)
	if err := s.w.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// config loads the scenario's settings through the daemon's own configuration.
func (s *scenario) config() (Config, error) {
	text := "data_dir: /data\nsources: [{name: wal, layout: plain, path: /wal}]\n" +
		"bucket: {type: FILESYSTEM, config: {directory: /bucket}}\n" + s.yaml
	host := config.Host{
		ReadFile: func(name string) ([]byte, error) {
			if name == "tierd.yaml" || name == "/tierd.yaml" {
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		},
		ReadDir:   func(string) ([]fs.DirEntry, error) { return nil, fs.ErrNotExist },
		LookupEnv: func(string) (string, bool) { return "", false },
		RealPath:  filepath.Clean,
	}
	c, err := config.Load("/tierd.yaml", host)
	if err != nil {
		return Config{}, err
	}
	set, err := rego.Load(s.policy, nil, rego.Options{Timeout: rego.NoTimeout})
	if err != nil {
		return Config{}, err
	}
	return Config{Tables: c.Table, Policies: set, Workers: 1, Brake: c.Limits.Brake(),
		Verify: c.Copy.Verify, Delete: tier.LocalDeleteUnlink, Next: logdir.NextFollowing,
		Tolerance: c.Limits.ClockTolerance, AskAgain: 5 * time.Minute,
		Plugins: s.plugins, HoldMax: c.Copy.HoldMax,
		Grace: c.Limits.RemoteDeleteGrace, OrphanAge: c.Limits.OrphanAge}, nil
}

// command performs one command of a story and returns what is to be seen.
func (s *scenario) command(t *testing.T, d *datadriven.TestData) string {
	s.out.Reset()
	if err := s.perform(d); err != nil {
		fmt.Fprintf(&s.out, "error: %v\n", err)
	}
	for _, v := range s.oracle.Violations()[s.judged:] {
		s.judged++
		t.Errorf("%s: %s", d.Pos, v)
	}
	return s.out.String()
}

func (s *scenario) perform(d *datadriven.TestData) error {
	switch d.Cmd {
	case "config":
		s.yaml = d.Input + "\n"
		return s.reload(d.HasArg("later"))
	case "policy":
		s.oracle.Policies = true
		s.policy = []rego.Module{{Path: "policy.rego", Source: []byte(d.Input)}}
		return s.reload(false)
	case "append":
		return s.w.Append(s.log(d), s.number(d, "segments", 1))
	case "write":
		base := tier.Offset(s.number(d, "base", 0))
		data := Content(s.log(d), base, s.number(d, "version", 2))
		if d.HasArg("second") {
			return s.w.WriteCompanion(s.log(d), base, data)
		}
		if d.HasArg("empty") {
			data = nil
		}
		return s.w.Write(s.log(d), base, data)
	case "remove":
		return s.w.Remove(s.log(d), tier.Offset(s.number(d, "base", 0)))
	case "vanish":
		return s.w.Vanish()
	case "return":
		return s.w.Return()
	case "advance":
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		s.w.Advance(by)
		return err
	case "run":
		return s.w.Run()
	case "stop":
		s.stop(d)
		return nil
	case "crash":
		s.w.Watch = nil
		s.w.Crash(nil)
		return nil
	case "kill":
		s.w.Watch = nil
		s.w.Kill()
		return nil
	case "start":
		return s.w.Start()
	case "pause":
		s.w.SetPaused(true)
		return nil
	case "unpause":
		s.w.SetPaused(false)
		return nil
	case "resume":
		return s.w.Resume(d.CmdArgs[0].Key)
	case "remember":
		s.putBack = s.w.Remember()
		return nil
	case "putback":
		s.putBack()
		return nil
	case "spoil", "shorten", "newer", "older":
		return s.spoil(d.Cmd, d.CmdArgs[0].Key)
	case "rebuild":
		return s.rebuild()
	case "drop":
		return s.w.Drop(d.CmdArgs[0].Key)
	case "fault":
		return s.arm(d)
	case "lose":
		return s.lose(d.CmdArgs[0].Key)
	case "stray": // stray ledger=02: an object that nothing names, under the id of another ledger
		if d.HasArg("ledger") {
			return s.foreign(d)
		}
		s.w.Stray(s.log(d))
		return nil
	case "land":
		return s.land(s.number(d, "nth", 0))
	case "ls":
		return s.ls(s.log(d))
	case "status":
		return s.status(s.log(d))
	case "objects":
		return s.objects(d)
	case "audit":
		for _, in := range s.w.intents() {
			fmt.Fprintf(&s.out, "%s %s %d: %s\n", in.action, in.log, in.base,
				cmp.Or(string(in.outcome), "no outcome yet"))
		}
		return nil
	}
	return s.more(d)
}

// reload takes over a changed configuration: at once, or "later", when a process starts with it.
func (s *scenario) reload(later bool) error {
	c, err := s.config()
	if err != nil {
		return err
	}
	old := s.w.Config
	c.Layout = old.Layout
	s.w.Config = c
	if later {
		return nil
	}
	if err := s.w.Reload(); err != nil {
		s.w.Config = old
		return err
	}
	return nil
}

// log is the one that the command names; orders/0 where it names none.
func (s *scenario) log(d *datadriven.TestData) tier.LogID {
	name := "orders/0"
	d.MaybeScanArgs(s.t, "log", &name)
	id, err := tier.ParseLogID(name)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func (s *scenario) number(d *datadriven.TestData, key string, otherwise int) int {
	d.MaybeScanArgs(s.t, key, &otherwise)
	return otherwise
}

// stop lets everything stop after the next operation of the kind whose target has the part:
// "stop rename at=.dead", "stop commit skip=1".
func (s *scenario) stop(d *datadriven.TestData) {
	kind, part, skip := d.CmdArgs[0].Key, "", s.number(d, "skip", 0)
	d.MaybeScanArgs(s.t, "at", &part)
	s.w.Watch = func(p Point) Fate {
		if p.Kind != kind || !strings.Contains(p.Name+" "+p.To, part) {
			return Proceed
		}
		if skip--; skip >= 0 {
			return Proceed
		}
		return StopAfter
	}
}

// arm sets a fault of the store:
// "fault put key=.log skip=2 times=1 how=failed|applied|late|short|rotten".
func (s *scenario) arm(d *datadriven.TestData) error {
	if d.CmdArgs[0].Key == "none" {
		s.faults = nil
		return nil
	}
	a := armed{kind: fault.OpKind(d.CmdArgs[0].Key), skip: s.number(d, "skip", 0),
		times: s.number(d, "times", 1)}
	if a.kind == "put" {
		a.kind = fault.OpUpload
	}
	d.MaybeScanArgs(s.t, "key", &a.key)
	how := "failed"
	d.MaybeScanArgs(s.t, "how", &how)
	a.effect.Err = errors.New("the store did not answer")
	switch how {
	case "failed":
	case "applied":
		a.effect.Applied = true
	case "late":
		a.effect.Late = true
	case "twice":
		a.effect = fault.Effect{Twice: true}
	case "short":
		a.effect.Mangle = fault.Cut(3)
		a.effect.Err = nil
	case "rotten":
		a.effect.Mangle = fault.Flip(5)
		a.effect.Err = nil
	default:
		return fmt.Errorf("no such kind of fault: %s", how)
	}
	s.faults = append(s.faults, a)
	return nil
}

func (s *scenario) hook(op fault.Op) fault.Effect {
	e := s.effect(op)
	s.meets(op)
	return e
}

// effect is that of the first fault that was armed for such a call.
func (s *scenario) effect(op fault.Op) fault.Effect {
	for i := range s.faults {
		a := &s.faults[i]
		if op.Kind != a.kind || !strings.Contains(op.Key, a.key) {
			continue
		}
		if a.skip > 0 {
			a.skip--
			continue
		}
		if a.times == 1 {
			a.kind = "" // spent
		} else if a.times > 1 {
			a.times--
		}
		return a.effect
	}
	return fault.Effect{}
}

func (s *scenario) lose(part string) error {
	for _, key := range s.w.Objects.Keys() {
		if strings.Contains(key, part) {
			s.w.Lose(key)
			fmt.Fprintf(&s.out, "the store lost %s\n", shortKey(key))
			return nil
		}
	}
	return fmt.Errorf("no object has %q in its key", part)
}

// trace writes what an effect did.
func (s *scenario) trace(f engine.Effect, r engine.Result) {
	switch r := r.(type) {
	case engine.Copied:
		verb := "copied"
		if _, ok := f.(engine.Resolve); ok {
			verb = "found whole, and finished,"
		}
		fmt.Fprintf(&s.out, "%s %s %s; copied offset %d\n", verb, subject(f), r.Remote.Range,
			r.Offset)
	case engine.Abandoned:
		fmt.Fprintf(&s.out, "abandoned an attempt of %s\n", subject(f))
	case engine.Failed:
		what := "it is tried again"
		switch {
		case r.Quarantine:
			what = "quarantined"
		case r.Attempt != nil:
			what = "its outcome is unknown"
		}
		fmt.Fprintf(&s.out, "%s of %s failed (%s), %s\n", effectWord(f), subject(f), r.Reason.Code,
			what)
	case engine.Deleted:
		for _, g := range r.Gone {
			fmt.Fprintf(&s.out, "deleted %s %s\n", subject(f), g.Range)
		}
		if r.Kept != nil {
			for _, why := range r.Kept.Reasons {
				fmt.Fprintf(&s.out, "kept %s %s (%s)\n", subject(f), r.Kept.Segment.Range, why.Code)
			}
		}
	case engine.HoleDone:
		fmt.Fprintf(&s.out, "hole %s %s (%s); copied offset %d\n", subject(f), r.Hole.Range,
			r.Hole.Cause, r.Offset)
	case engine.Moved:
		fmt.Fprintf(&s.out, "start of %s moved to %d (%s); expired %v\n", subject(f), r.Start, r.Cause,
			r.Expired)
		s.keptRemote(f, r.Kept)
	case engine.StaysAll:
		s.keptRemote(f, &r.Kept)
	case engine.Removed:
		fmt.Fprintf(&s.out, "removed %d copies of %s\n", len(r.Positions), subject(f))
		for i := range r.Kept {
			s.keptRemote(f, &r.Kept[i])
		}
	case engine.Swept:
		if r.Objects > 0 || r.Stale != nil {
			fmt.Fprintf(&s.out, "swept %d orphans, %d stay\n", r.Objects, r.Kept)
		}
		if r.Stale != nil {
			fmt.Fprintf(&s.out, "alarm: %s\n", r.Stale.Code)
		}
	case engine.Opened:
		if o, ok := f.(engine.OpenEpoch); ok {
			fmt.Fprintf(&s.out, "epoch %d of %s opened at %d, fresh: %v; copied offset %d\n", o.Epoch,
				subject(f), o.Start, o.Fresh, r.State.Copied)
			return
		}
		fmt.Fprintf(&s.out, "opened %s at %d\n", subject(f), r.State.Start)
	case engine.Diverged:
		clip := r.State.Clips[len(r.State.Clips)-1]
		fmt.Fprintf(&s.out, "%s left its lineage at %d; copied offset %d\n", subject(f), clip.Offset,
			r.State.Copied)
	case engine.Done:
		if c, ok := f.(engine.ChangeTier); ok {
			fmt.Fprintf(&s.out, "%s is %s, epoch %d %s\n", c.Table, c.State, c.Epoch, c.Policy)
			return
		}
		fmt.Fprintf(&s.out, "%s %s\n", effectWord(f), subject(f))
	}
}

func (s *scenario) keptRemote(f engine.Effect, k *engine.KeptRemote) {
	if k == nil {
		return
	}
	for _, why := range k.Reasons {
		fmt.Fprintf(&s.out, "kept remote %s %s (%s)\n", subject(f), k.Range, why.Code)
	}
}

func effectWord(f engine.Effect) string {
	return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", f), "engine."))
}

func (s *scenario) ls(id tier.LogID) error {
	list, ok := s.w.Engine().Segments(id)
	if !ok {
		return fmt.Errorf("%s is not known", id)
	}
	for _, v := range list {
		var tiers []string
		if v.Local {
			tiers = append(tiers, "local")
		}
		if v.Remote {
			tiers = append(tiers, "remote")
		}
		fmt.Fprintf(&s.out, "%-12s %-12s %s\n", v.Range, v.State, strings.Join(tiers, " "))
	}
	return nil
}

func (s *scenario) status(id tier.LogID) error {
	v, ok := s.w.Engine().Log(id)
	if !ok {
		return fmt.Errorf("%s is not known", id)
	}
	if v.State != tier.Enabled || v.Epoch != 1 {
		fmt.Fprintf(&s.out, "%s, epoch %d, log start %d\n", v.State, v.Epoch, v.LogStart)
	}
	fmt.Fprintf(&s.out, "copied offset %d, local [%d, %d), remote [%d, %d), lag %d\n", v.Copied,
		v.Local.Base, v.Local.Next, v.Remote.Base, v.Remote.Next, v.Uncopied.Segments)
	for _, r := range v.Alarms {
		fmt.Fprintf(&s.out, "alarm   %s: %s\n", r.Code, r.Text)
	}
	for _, r := range v.Waiting {
		fmt.Fprintf(&s.out, "waiting %s: %s\n", r.Code, r.Text)
	}
	return nil
}

// shortKey leaves out the ledger's id and the zeros of ids.
func shortKey(key string) string {
	_, rest, _ := strings.Cut(key, "/")
	return strings.ReplaceAll(rest, "0000000000000000", "~")
}
