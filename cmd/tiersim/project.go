package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/facts"
	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/plugin"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/sim"
)

// projectFlags say what is simulated.
type projectFlags struct {
	Config  string   `short:"c" default:"./tierd.yaml" env:"TIERD_CONFIG" help:"Configuration file of tierd, or a directory with a tierd.yaml."`
	Builtin bool     `help:"Simulate tierd's own project in place of a configuration: the built-in policy, and settings that change at any moment."`
	Layout  string   `enum:",plain,kafka" default:"" help:"What the simulated sources are: plain, directories of files; or kafka, that of a broker, with leaders that change and replicas that fall behind. Without it they are what the scenario was made with, or else plain." placeholder:"plain|kafka"`
	Table   []string `sep:"none" help:"A table to simulate besides those of the configuration and the policies; may be repeated." placeholder:"NAME"`
	Fact    []string `sep:"none" help:"A sample of a fact, for one whose file is not here: NAME=FILE; may be repeated." placeholder:"NAME=FILE"`
}

// tablesMax bounds how many tables are simulated, and namedMax how many logs of one that policies
// and data name: a list of holds may name thousands.
const (
	tablesMax = 8
	namedMax  = 4
)

// ages is longer than any sample of a fact is old.
const ages = 100 * 366 * 24 * time.Hour

// load reads the project, with sources of the layout.
func (f *projectFlags) load(a *app, layout tier.Layout) (*sim.Project, error) {
	p, err := f.read(a, layout)
	if err != nil {
		return nil, err
	}
	p.Scratch = a.scratch
	return p, nil
}

// scratch makes a directory of its own for a ledger that lies in a file. All are in one, which goes
// with the command: whatever hangs does not remove its own.
func (a *app) scratch() (dir string, remove func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dir == "" {
		if a.dir, err = os.MkdirTemp("", "tiersim-"); err != nil {
			return "", nil, err
		}
	}
	dir, err = os.MkdirTemp(a.dir, "")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// clean removes what scratch made.
func (a *app) clean() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dir != "" {
		_ = os.RemoveAll(a.dir)
	}
}

func (f *projectFlags) read(a *app, layout tier.Layout) (*sim.Project, error) {
	if f.Builtin && layout == tier.LayoutKafka {
		return sim.BuiltinKafka()
	}
	if f.Builtin {
		return sim.Builtin()
	}
	name := filepath.Clean(f.Config)
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		name = filepath.Join(name, "tierd.yaml")
	}
	host := config.OS()
	host.LookupEnv = a.lookupEnv
	files, err := config.LoadGeneration(name, host)
	if err != nil {
		return nil, err
	}
	cfg := files.Config
	if len(cfg.Sources) == 0 {
		return nil, fmt.Errorf("%s: no source is configured: there is nothing to simulate", name)
	}
	modules := make([]rego.Module, len(files.Policies))
	for i, p := range files.Policies {
		modules[i] = rego.Module{Path: relative(p.Path), Source: p.Content}
	}
	opts := rego.Options{Facts: cfg.FactNames(), Fields: cfg.FactFields(), Timeout: rego.NoTimeout,
		Watch: a.watch}
	set, err := rego.Load(modules, files.Document, opts)
	if err != nil {
		return nil, err
	}
	promises, err := rego.LoadPromises(modules, files.Document, opts)
	if err != nil {
		return nil, err
	}
	p := &sim.Project{Config: worldOf(cfg, set), Promises: promises}
	p.Config.Layout, p.Config.Hung = layout, a.whenHung(0)
	if p.Config.Plugins, err = plugins(files); err != nil {
		return nil, err
	}
	for _, r := range set.Rules() {
		p.UserPolicies = p.UserPolicies || !r.Builtin
	}
	mentioned := rego.Mentioned(modules, files.Document)
	p.Spans = mentioned.Spans
	var left []string
	if p.Logs, left, err = f.logs(cfg, mentioned); err != nil {
		return nil, err
	}
	if p.Facts, p.Absent, err = f.facts(cfg); err != nil {
		return nil, err
	}
	p.Absent = append(p.Absent, left...)
	p.Digest = digestOf(p, set)
	return p, p.Validate()
}

// layoutOf is the first layout that is one; plain where none is.
func layoutOf(texts ...string) tier.Layout {
	return tier.Layout(cmp.Or(cmp.Or(texts...), string(tier.LayoutPlain)))
}

// plugins loads the plugins of the configuration; nil where there are none. The set is for as long
// as the command runs.
func plugins(files *config.Generation) (*plugin.Set, error) {
	if len(files.Config.Plugins) == 0 {
		return nil, nil
	}
	specs := make([]plugin.Spec, len(files.Config.Plugins))
	for i, p := range files.Config.Plugins {
		specs[i] = plugin.Spec{Name: p.Name, Wasm: files.Modules[i], SHA256: p.SHA256, Config: p.Config}
	}
	set, err := plugin.Load(specs, plugin.Options{Node: "sim"})
	if err != nil {
		return nil, files.Config.PluginProblems(err, plugin.NameOf)
	}
	return set, nil
}

// relative is the path as it is shown: from the working directory.
func relative(name string) string {
	dir, err := os.Getwd()
	if err != nil {
		return name
	}
	if rel, err := filepath.Rel(dir, name); err == nil {
		return rel
	}
	return name
}

// worldOf is the configuration as a world has it. Sources are plain directories there, and a way to
// delete that a broker has a part in is unlink: what proves a deletion is the same.
func worldOf(cfg *config.Config, set *rego.Set) sim.Config {
	way := tier.LocalDeleteNever
	for _, s := range cfg.Sources {
		if s.LocalDelete != tier.LocalDeleteNever {
			way = tier.LocalDeleteUnlink
		}
	}
	return sim.Config{Tables: cfg.Table, Policies: set, Workers: min(cfg.Copy.Workers, 2),
		Brake: cfg.Limits.Brake(), Verify: cfg.Copy.Verify, Delete: way,
		Tolerance: cfg.Limits.ClockTolerance, AskAgain: 5 * time.Minute,
		Next: logdir.NextFollowing, Grace: cfg.Limits.RemoteDeleteGrace,
		OrphanAge: cfg.Limits.OrphanAge, MaxClockStep: cfg.Limits.MaxClockStep,
		HoldMax: cfg.Copy.HoldMax}
}

// noTable says why no source of the configuration can have a table of the name; "" where one can.
func noTable(cfg *config.Config, name string) string {
	if err := (tier.LogID{Table: name, Name: "0"}).Validate(); err != nil {
		return err.Error()
	}
	kafka := !slices.ContainsFunc(cfg.Sources, func(s config.Source) bool {
		return s.Layout != tier.LayoutKafka
	})
	if kafka && !tier.LegalTopic(name) {
		return fmt.Sprintf("every source is of the layout kafka, and a topic has letters, digits, dots, "+
			"underscores and dashes, %d at most", tier.TopicBytesMax)
	}
	return ""
}

// logs are the logs that are simulated: two of the first table, and one of each other that the
// configuration or the policies speak of by name or by pattern. What are too many is left out,
// which left says.
func (f *projectFlags) logs(cfg *config.Config, m rego.Mentions) (out []tier.LogID, left []string,
	err error) {
	var tables []string
	add := func(name string) {
		if _, governed := cfg.Table(name); governed && !slices.Contains(tables, name) {
			tables = append(tables, name)
		}
	}
	for _, name := range f.Table {
		if why := noTable(cfg, name); why != "" {
			return nil, nil, fmt.Errorf("--table %q: no table can have this name: %s", name, why)
		}
		if _, governed := cfg.Table(name); !governed {
			return nil, nil, fmt.Errorf("--table %s: no entry of tables governs it", name)
		}
		add(name)
	}
	ids := map[string][]string{} // names of logs that are spoken of, by table
	for _, text := range m.Logs {
		if id, err := tier.ParseLogID(text); err == nil {
			add(id.Table)
			ids[id.Table] = append(ids[id.Table], id.Name)
		}
	}
	for _, name := range slices.Concat(m.Tables, cfg.Names()) {
		add(example(name))
	}
	for _, pattern := range m.Patterns {
		add(example(pattern))
	}
	if cfg.Names() == nil && len(tables) < 2 {
		add("orders")
		add("clicks")
	}
	if len(tables) == 0 {
		return nil, nil, fmt.Errorf("%s: no table can be simulated: name one with --table", cfg.Path)
	}
	if n := len(tables); n > tablesMax {
		left = append(left, fmt.Sprintf("%d of %d tables are simulated, and not %s; name those that "+
			"matter with --table", tablesMax, n, strings.Join(tables[tablesMax:min(n, tablesMax+3)], ", ")))
		tables = tables[:tablesMax]
	}
	for i, table := range tables {
		if n := len(ids[table]); n > namedMax {
			left = append(left, fmt.Sprintf("%d of %d logs of %s that policies and data name are simulated",
				namedMax, n, table))
			ids[table] = ids[table][:namedMax]
		}
		names := append(ids[table], "0")
		if i == 0 && len(ids[table]) == 0 {
			names = append(names, "1")
		}
		for _, name := range names {
			if id := (tier.LogID{Table: table, Name: name}); !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	return out, left, nil
}

// example is a name that the glob matches; the name itself where it is none.
func example(glob string) string {
	name := strings.NewReplacer("*", "x", "?", "x", `\`, "").Replace(glob)
	if ok, err := path.Match(glob, name); err == nil && ok {
		return name
	}
	return ""
}

// facts reads the samples of the facts, as they are while they are known. What has none is never
// known, which absent names.
func (f *projectFlags) facts(cfg *config.Config) (known map[string]any, absent []string,
	err error) {
	samples := map[string]string{}
	for _, text := range f.Fact {
		name, file, ok := strings.Cut(text, "=")
		if !ok || file == "" {
			return nil, nil, fmt.Errorf("--fact %s: want NAME=FILE", text)
		}
		if names := cfg.FactNames(); !slices.Contains(names, name) {
			return nil, nil, fmt.Errorf("--fact %s: the configuration has no fact %q; it has %s", text, name,
				cmp.Or(strings.Join(names, ", "), "none"))
		}
		samples[name] = file
	}
	known = map[string]any{}
	for _, fact := range cfg.Facts {
		file := facts.File{Name: fact.Name, Path: fact.Path, MaxAge: ages}
		if sample := samples[fact.Name]; sample != "" {
			file.Path = sample
		}
		set := facts.New([]facts.File{file}, nil,
			func(document any) (any, error) { return document, nil })
		now := tier.TimeOf(time.Now())
		set.Load(now, tier.Time(ages))
		values, unknown := set.At(now, tier.Time(ages), tier.LogID{})
		if len(unknown) > 0 && samples[fact.Name] != "" {
			return nil, nil, fmt.Errorf("--fact %s: %s", fact.Name, unknown[0].Why)
		}
		if len(unknown) > 0 && fact.Kafka != "" {
			unknown[0].Why = "no cluster is asked for its groups"
		}
		if len(unknown) > 0 {
			absent = append(absent, fmt.Sprintf("the fact %s is never known here: %s; give a sample "+
				"with --fact %s=FILE", fact.Name, unknown[0].Why, fact.Name))
			known[fact.Name] = nil
			continue
		}
		known[fact.Name] = values[fact.Name]
	}
	return known, absent, nil
}

// digestOf identifies what a scenario depends on.
func digestOf(p *sim.Project, set *rego.Set) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s\n%v\n", set.Digest(), p.Logs)
	if p.Config.Layout != tier.LayoutPlain {
		_, _ = fmt.Fprintf(h, "%s\n", p.Config.Layout)
	}
	for _, id := range p.Logs {
		t, _ := p.Config.Tables(id.Table)
		_, _ = fmt.Fprintf(h, "%+v\n", t)
	}
	text, err := json.Marshal(p.Facts)
	if err != nil {
		text = []byte(err.Error())
	}
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}
