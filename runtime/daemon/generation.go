package daemon

import (
	"errors"
	"time"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/exec"
	"github.com/tierd/tierd/runtime/facts"
	"github.com/tierd/tierd/runtime/tier"
)

// The pace of retries and of asking a denial again.
const (
	backoffMin = time.Second
	backoffMax = 5 * time.Minute
	askAgain   = 5 * time.Minute
)

// deleters is how many logs may be deleting at one time, each of another table.
const deleters = 4

// removersEach is how many logs may be removing remote objects at one time, for each of them that
// may be with the store (limits.remote_delete_workers). The others announce what they will remove,
// or write down that they did: that takes the local disk's time, and must not be the store's.
const removersEach = 4

func removers(l config.Limits) int { return removersEach * l.RemoteDeleteWorkers }

// generation is everything that takes effect together: configuration, policies and their data.
type generation struct {
	number   uint64
	loadedAt time.Time
	config   *config.Config
	policies *rego.Set
	facts    *facts.Set // read anew at each interval, and so no part of what changes as one
	exec     *exec.Generation
	modules  [][]byte  // of the plugins, until they are loaded
	plugins  *selector // nil where there are no plugins
}

// loadGeneration reads and compiles a generation, as a whole or not at all. Its plugins are loaded
// by loadPlugins, once data_dir is known to be this daemon's.
func (d *Daemon) loadGeneration(number uint64) (*generation, error) {
	files, err := config.LoadGeneration(d.opts.ConfigPath, d.opts.Host)
	if err != nil {
		return nil, err
	}
	set, err := compile(files, d.evaluations)
	if err != nil {
		return nil, err
	}
	g := &generation{number: number, loadedAt: d.opts.Now(), config: files.Config, policies: set,
		facts: newFacts(files.Config, d.now()), modules: files.Modules}
	g.exec = &exec.Generation{
		Number:    number,
		Table:     files.Config.Table,
		Gate:      gate.New(set),
		Brake:     files.Config.Limits.Brake(),
		Tolerance: tier.Time(files.Config.Limits.ClockTolerance),
		Verify:    files.Config.Copy.Verify,
		Paused:    func() *tier.Reason { return d.paused(g) },
		Input:     set.RecordJSON,
		Extern:    g.factsAt,
		Clocks:    d.agree,
		Grace:     tier.Time(files.Config.Limits.RemoteDeleteGrace),
		OrphanAge: tier.Time(files.Config.Limits.OrphanAge),
		Node:      d.node,
	}
	return g, nil
}

// Check loads the configuration, compiles the policies and loads the plugins, and does nothing
// else. The error has all that is wrong with them, as far as one does not hide another: policies
// are compiled where they and their data could all be read, and plugins loaded where the file
// itself is right.
func Check(path string, host config.Host) (*config.Config, *rego.Set, error) {
	files, problems := config.Examine(path, host)
	var set *rego.Set
	var errs []error
	if len(problems) > 0 {
		errs = append(errs, problems)
	}
	if files.Document != nil {
		opts := rego.Options{} // takes every fact: those of a wrong file are not all known
		if len(problems) == 0 {
			opts = PolicyOptions(files.Config)
		}
		var err error
		set, err = rego.Load(modulesOf(files), files.Document, opts)
		errs = append(errs, err)
	}
	if len(problems) == 0 {
		errs = append(errs, checkPlugins(files.Config, files.Modules))
	}
	return files.Config, set, errors.Join(errs...)
}

func compile(files *config.Generation, w *rego.Watch) (*rego.Set, error) {
	opts := PolicyOptions(files.Config)
	opts.Watch = w
	return rego.Load(modulesOf(files), files.Document, opts)
}

func modulesOf(files *config.Generation) []rego.Module {
	modules := make([]rego.Module, len(files.Policies))
	for i, p := range files.Policies {
		modules[i] = rego.Module{Path: p.Path, Source: p.Content}
	}
	return modules
}

// PolicyOptions are those of policies that belong to the configuration.
func PolicyOptions(c *config.Config) rego.Options {
	return rego.Options{Facts: c.FactNames(), Fields: c.FactFields()}
}

// settings is the generation as the engine needs it.
func (g *generation) settings() engine.Settings {
	c := g.config
	ways := make(map[string]tier.LocalDelete, len(c.Sources))
	for _, s := range c.Sources {
		ways[s.Name] = s.LocalDelete
	}
	return engine.Settings{
		Generation: g.number,
		Table:      c.Table,
		LocalDelete: func(source string) tier.LocalDelete {
			if way, ok := ways[source]; ok {
				return way
			}
			return tier.LocalDeleteNever
		},
		Workers:    c.Copy.Workers,
		Deleters:   deleters,
		Removers:   removers(c.Limits),
		Grace:      tier.Time(c.Limits.RemoteDeleteGrace),
		OrphanAge:  tier.Time(c.Limits.OrphanAge),
		SweepEvery: tier.Time(max(c.Limits.OrphanAge/8, time.Minute)),
		Brake:      c.Limits.Brake(),
		Tolerance:  tier.Time(c.Limits.ClockTolerance),
		HoldMax:    tier.Time(c.Copy.HoldMax),
		Plugins:    g.plugins != nil,
		AskAgain:   tier.Time(askAgain),
		Backoff:    engine.Backoff{Min: tier.Time(backoffMin), Max: tier.Time(backoffMax)},
		ExpireRule: g.policies.Expires(),

		ExpireRemoteRule: g.policies.ExpiresRemote(),
		SelectEvery:      tier.Time(selectEvery),
	}
}

// fixed says which keys differ that only a restart can change; empty if none does.
func fixed(a, b *config.Config) string {
	switch {
	case a.DataDir != b.DataDir:
		return "data_dir"
	case string(a.Bucket.YAML) != string(b.Bucket.YAML):
		return "bucket"
	case a.HTTP != b.HTTP:
		return "http"
	case a.Read != b.Read:
		return "read"
	case a.Kafka != b.Kafka:
		return "kafka"
	case a.Copy.Workers != b.Copy.Workers:
		return "copy.workers"
	case a.Copy.Timeout != b.Copy.Timeout:
		return "copy.timeout"
	case a.Limits.RemoteDeleteWorkers != b.Limits.RemoteDeleteWorkers:
		return "limits.remote_delete_workers"
	case len(a.Sources) != len(b.Sources):
		return "sources"
	}
	for i := range a.Sources {
		x, y := a.Sources[i], b.Sources[i]
		x.Place, y.Place = config.Place{}, config.Place{}
		if x != y {
			return "sources"
		}
	}
	return ""
}
