package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/plugin"
	"github.com/tierd/tierd/runtime/tier"
)

// Project is what histories are about: a configuration with its policies and facts, the logs that
// live under it, and what may change meanwhile. It is immutable and safe for concurrent use.
type Project struct {
	// Config is what a world begins with, but for Extern and Node, which histories choose.
	Config Config
	Logs   []tier.LogID
	// Facts are the user's, by name, as they are while they are known; nil for one that never is.
	Facts map[string]any
	// Absent says what of the configuration histories do not have, such as a fact that nobody wrote,
	// and why.
	Absent []string
	// Spans are times after which policies may change their answer.
	Spans []time.Duration
	// Unsettled lets histories change table settings and policies at any moment. Without it they
	// stay as they are, so that what a history shows is what the user has.
	Unsettled bool
	// Focus makes the actions that it names, as "kind: name", so many times as likely as they are.
	// Kinds that a seed has nothing of are among those that the focus names all the same.
	Focus map[string]int
	// UserPolicies is set where policies beside the built-in one are in force.
	UserPolicies bool
	// Promises are the user's own properties; nil for none.
	Promises *rego.Promises
	// Scratch gives a history whose ledger lies in a real file an empty directory, and what takes it
	// away again. It may be nil: then there are no such histories.
	Scratch func() (dir string, remove func(), err error)
	// Digest identifies configuration, policies and data, for scenarios.
	Digest string

	held    *rego.Set // denies everything; only where Unsettled
	failing *rego.Set // fails on everything; only where Unsettled
	// wild are the plugins of wildNames; only where Unsettled.
	wild []*plugin.Set
	// openBolt opens the file of a ledger; nil as a process does.
	openBolt func(at string) (*offsets.Bolt, error)
}

// builtinStart is when the histories of the built-in project begin: 2027-01-15T08:00:00Z.
const builtinStart = tier.Time(1_800_000_000_000_000_000)

// Builtin is tierd's own project: the built-in policy, three logs of two tables, and settings that
// change at any moment. It is how the engine is tested where no user's configuration is.
func Builtin() (*Project, error) {
	set, err := rego.Load(nil, nil, rego.Options{Timeout: rego.NoTimeout})
	if err != nil {
		return nil, err
	}
	held, err := rego.Load([]rego.Module{{Path: "hold.rego", Source: []byte("package tierd.hold\n\n" +
		"deny contains \"on hold\"\n")}}, nil, rego.Options{Timeout: rego.NoTimeout})
	if err != nil {
		return nil, err
	}
	failing, err := rego.Load([]rego.Module{{Path: "fail.rego", Source: []byte(
		"package tierd.fail\n\ndeny contains \"never\" if to_number(input.log.id) > 0\n")}}, nil,
		rego.Options{Timeout: rego.NoTimeout})
	if err != nil {
		return nil, err
	}
	wild, err := wildSets()
	if err != nil {
		return nil, err
	}
	table := tier.Table{TTL: 7 * 24 * time.Hour, LocalTTL: time.Hour, Tiering: true,
		DisablePolicy: tier.PolicyRetain, Entry: "defaults"}
	return &Project{
		Config: Config{
			Tables: func(name string) (tier.Table, bool) {
				t := table
				t.Name = name
				return t, true
			},
			Policies: set, Workers: 2, Verify: tier.VerifyFull, Delete: tier.LocalDeleteUnlink,
			Brake:     tier.Brake{MaxSegments: 1000, MaxBytes: 1 << 40, Per: time.Hour},
			Tolerance: 5 * time.Minute, AskAgain: 5 * time.Minute, Next: logdir.NextFollowing,
			Grace: 10 * time.Minute, OrphanAge: 24 * time.Hour, MaxClockStep: 7 * 24 * time.Hour,
		},
		Logs: []tier.LogID{{Table: "orders", Name: "0"}, {Table: "orders", Name: "1"},
			{Table: "payroll", Name: "0"}},
		Unsettled: true, held: held, failing: failing, wild: wild,
		Digest: set.Digest(),
	}, nil
}

// layout is that of the sources, as scenarios have it.
func (p *Project) layout() string { return string(cmp.Or(p.Config.Layout, tier.LayoutPlain)) }

// tables are the names of the project's tables, ascending.
func (p *Project) tables() []string {
	var out []string
	for _, id := range p.Logs {
		out = append(out, id.Table)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// span is a time that means something to the project.
type span struct {
	name  string
	long  time.Duration
	asked bool // policies ask for it
}

// spans are the times that histories let pass, each once: those after which something may become
// due under the project's settings, and some that every day has.
func (p *Project) spans() []span {
	c := &p.Config
	out := []span{{name: "a minute", long: time.Minute}, {name: "an hour", long: time.Hour},
		{name: "9 hours", long: 9 * time.Hour}, {name: "a day", long: 24 * time.Hour},
		{name: "remote_delete_grace", long: c.Grace}, {name: "orphan_age", long: c.OrphanAge},
		{name: "the window of the brake", long: c.Brake.Per}}
	for _, name := range p.tables() {
		t, _ := c.Tables(name)
		out = append(out, span{name: "half the local TTL of " + name, long: t.LocalTTL / 2},
			span{name: "the local TTL of " + name, long: t.LocalTTL},
			span{name: "the TTL of " + name, long: t.TTL})
	}
	for _, d := range p.Spans {
		out = append(out, span{d.String() + ", of the policies", d, true})
	}
	var once []span
	for _, s := range out {
		i := slices.IndexFunc(once, func(o span) bool { return o.long == s.long })
		if s.long > 0 && i < 0 {
			once = append(once, s)
		} else if i >= 0 {
			once[i].asked = once[i].asked || s.asked
		}
	}
	return once
}

// longest is longer than everything that settings let data wait for.
func (p *Project) longest() time.Duration {
	var out time.Duration
	for _, s := range p.spans() {
		out = max(out, s.long)
	}
	return min(out, century) + min(p.Config.HoldMax, century) + 200*time.Hour
}

// factNames are the names of the facts, ascending.
func (p *Project) factNames() []string { return slices.Sorted(maps.Keys(p.Facts)) }

// logNames are the logs' ids as texts.
func (p *Project) logNames() []string {
	out := make([]string, len(p.Logs))
	for i, id := range p.Logs {
		out[i] = id.String()
	}
	return out
}

// Validate says why no history can be made of the project.
func (p *Project) Validate() error {
	if len(p.Logs) == 0 {
		return fmt.Errorf("no log: no table is configured")
	}
	for _, name := range p.tables() {
		if _, ok := p.Config.Tables(name); !ok {
			return fmt.Errorf("table %q: no entry of tables governs it", name)
		}
	}
	return nil
}
