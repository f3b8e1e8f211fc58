package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tierd/tierd/runtime/plugin"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// pluginCmd holds the commands for authors of plugins.
type pluginCmd struct {
	Inspect pluginInspectCmd `cmd:"" help:"Describe a module, and say what speaks against it."`
	Test    pluginTestCmd    `cmd:"" help:"Run the golden cases of a plugin, in both engines, twice."`
	Bench   pluginBenchCmd   `cmd:"" help:"Measure what a plugin costs."`
	New     pluginNewCmd     `cmd:"" help:"Begin a plugin that builds and passes its test."`
}

// pluginInspectCmd describes a module.
type pluginInspectCmd struct {
	output
	Module string `arg:"" help:"A .wasm file."`
}

// Help gives examples.
func (c *pluginInspectCmd) Help() string {
	return `Runs nothing of it: what a module does when it starts, "tierd plugin test" shows.

Exit code: 0 if nothing speaks against the module, 1 if tierd would refuse it.

Example:

	tierd plugin inspect hot_first.wasm -o json | jq -r .sha256`
}

// Run describes.
func (c *pluginInspectCmd) Run(a *app) error {
	wasm, err := plugin.ReadModule(c.Module)
	if err != nil {
		return usagef("%v", err)
	}
	in := plugin.Inspect(wasm, plugin.Limits{})
	err = c.print(a, in, func(p *page) {
		p.line("sha256   %s", in.SHA256)
		p.line("size     %s, %s, %s", humanBytes(int64(in.Bytes)), tier.Count(in.Funcs, "function"),
			tier.Count(in.Tables, "table"))
		p.line("abi      %s", strings.Join(in.ABI, " "))
		if m := in.Memory; m != nil {
			p.line("memory   %d to %d pages of 64 KiB", m.PagesMin, m.PagesMax)
		}
		for _, x := range in.Imports {
			p.line("import   %s %s %s", x.Kind, x.Name, x.Signature)
		}
		for _, x := range in.Exports {
			p.line("export   %s %s %s", x.Kind, x.Name, x.Signature)
		}
		for _, text := range in.Problems {
			p.alarm("refused: %s", text)
		}
	})
	if err == nil && len(in.Problems) > 0 {
		err = errCheck
	}
	return err
}

// pluginTestCmd runs golden cases.
type pluginTestCmd struct {
	Module  string   `arg:"" help:"A .wasm file."`
	Cases   []string `arg:"" help:"Golden files."`
	Rewrite bool     `help:"Write the answers that the plugin gives into the files."`
}

// Help gives examples.
func (c *pluginTestCmd) Help() string {
	return `Each case is run twice in the compiler and twice in the interpreter, and must give the
written answer with the same fuel each time. docs/plugins.md describes the files.

Exit code: 0 if all pass, 1 if not, 2 if a file is wrong.

Example:

	tierd plugin test hot_first.wasm cases/*.txt`
}

// Run tests.
func (c *pluginTestCmd) Run(a *app) error {
	wasm, err := plugin.ReadModule(c.Module)
	if err != nil {
		return usagef("%v", err)
	}
	g, err := plugin.NewGolden(wasm, plugin.GoldenOptions{Name: pluginName(c.Module)})
	if err != nil {
		return usagef("%s: %v", c.Module, err)
	}
	passed, failed, err := c.run(a, g)
	if cerr := g.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(a.stdout, "%d passed, %d failed\n", passed, failed); err != nil {
		return err
	}
	if failed > 0 || passed == 0 {
		return errCheck
	}
	return nil
}

// casesBytesMax bounds a file of cases.
const casesBytesMax = 16 << 20

// run runs all files.
func (c *pluginTestCmd) run(a *app, g *plugin.Golden) (passed, failed int, err error) {
	for _, file := range c.Cases {
		text, err := vfs.ReadRegular(file, casesBytesMax)
		if err != nil {
			return 0, 0, usagef("%v", err)
		}
		cases, rewritten, err := g.Run(file, string(text))
		if err != nil {
			return 0, 0, usagef("%v", err)
		}
		if c.Rewrite {
			if err := replaceFile(file, []byte(rewritten)); err != nil {
				return 0, 0, err
			}
			passed += len(cases)
			continue
		}
		for _, x := range cases {
			if x.Passed() {
				passed++
				continue
			}
			failed++
			a.complain("%s:%d: want\n%sgot\n%s%s", x.File, x.Line, x.Want, x.Got, x.Differs)
		}
	}
	return passed, failed, nil
}

// pluginBenchCmd measures a plugin.
type pluginBenchCmd struct {
	output
	Module       string `arg:"" help:"A .wasm file."`
	Segments     int    `default:"10000" help:"Segments of a batch, from 10 to 100,000; logs have ten each."`
	PluginConfig string `placeholder:"JSON" default:"{}" help:"What tierd.yaml would have under config."`
}

// benchSegmentsMin and benchSegmentsMax bound a batch of "plugin bench". The daemon's batches have
// about 10,000 segments at most.
const (
	benchSegmentsMin = 10
	benchSegmentsMax = 100_000
)

// Help gives examples.
func (c *pluginBenchCmd) Help() string {
	return `Loads the module twice, the second time from a cache of its own, and times batches of
made-up logs in eight tables. The fastest batch counts, which a busy machine disturbs least.

Exit code: 0 if the plugin answered, 2 if not.

Examples:

	tierd plugin bench hot_first.wasm
	tierd plugin bench keep_last.wasm --plugin-config '{"keep": 2}' -o json`
}

// Run measures.
func (c *pluginBenchCmd) Run(a *app) error {
	if c.Segments < benchSegmentsMin || c.Segments > benchSegmentsMax {
		return usagef("--segments %d: want a number from %d to %d", c.Segments, benchSegmentsMin,
			benchSegmentsMax)
	}
	var config map[string]any
	if err := json.Unmarshal([]byte(c.PluginConfig), &config); err != nil || config == nil {
		return usagef("--plugin-config %s: want a JSON object, such as {\"keep\": 2}", c.PluginConfig)
	}
	wasm, err := plugin.ReadModule(c.Module)
	if err != nil {
		return usagef("%v", err)
	}
	cache, err := os.MkdirTemp("", "tierd-plugin-")
	if err != nil {
		return err
	}
	start := time.Now()
	r, err := plugin.Bench(pluginName(c.Module), wasm, plugin.BenchOptions{
		Segments: c.Segments, Config: json.RawMessage(c.PluginConfig), CacheDir: cache,
		Clock: func() time.Duration { return time.Since(start) }})
	if rerr := os.RemoveAll(cache); rerr != nil {
		return rerr
	}
	if err != nil {
		return usagef("%s: %v", c.Module, err)
	}
	return c.print(a, r, func(p *page) {
		p.line("load         %s, from the cache %s; first batch %s", short(r.Load),
			short(r.CachedLoad), short(r.FirstBatch))
		p.line("batch        %s of %d segments, %.1f ns a segment", short(r.Batch), r.Segments,
			r.PerSegment)
		p.line("fuel         %.1f units a segment, %.1f%% of what a batch may use",
			r.FuelPerSegment, 100*r.FuelShare)
		p.line("memory       %s", humanBytes(int64(r.MemoryBytes)))
	})
}

// short leaves out what nobody reads of a time that was measured.
func short(d time.Duration) time.Duration {
	if d > time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d
}

// pluginName names a plugin by its file.
func pluginName(module string) string {
	return strings.TrimSuffix(filepath.Base(module), filepath.Ext(module))
}

// pluginNewCmd begins a plugin.
type pluginNewCmd struct {
	Lang string `required:"" enum:"go,c,rust" placeholder:"LANGUAGE" help:"Language: ${enum}."`
	Dir  string `arg:"" help:"Directory to make."`
}

// Help gives examples.
func (c *pluginNewCmd) Help() string {
	return `Makes a project that builds with make and passes its test.

Exit code: 0 if it is made, 2 if the name is none for a plugin or the directory is not empty.

Example:

	tierd plugin new --lang go hot-first && make -C hot-first test`
}

// Run makes the project.
func (c *pluginNewCmd) Run(a *app) error {
	files, err := plugin.New(c.Lang, c.Dir)
	if path := (*fs.PathError)(nil); err != nil && !errors.As(err, &path) {
		return usagef("%v", err)
	} else if err != nil {
		return err
	}
	for _, f := range files {
		if _, err := fmt.Fprintln(a.stdout, f); err != nil {
			return err
		}
	}
	return nil
}
