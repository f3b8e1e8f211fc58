package config

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cockroachdb/datadriven"
	"go.yaml.in/yaml/v3"
)

// home is the directory of the file under test; it is cut off from what the scenarios show.
const home = "/etc/tierd/"

// base completes a scenario's file to one that is valid.
const base = `
sources: [{name: wal, layout: plain, path: /srv/wal, pattern: '(?P<base>\d+)\.log'}]
bucket: {type: FILESYSTEM, config: {directory: /srv/bucket}}
`

// machine is a Host without a machine: its files and environment are what a scenario gave it.
type machine struct {
	files fstest.MapFS
	env   map[string]string
	links map[string]string
}

func newMachine() *machine {
	return &machine{files: fstest.MapFS{}, env: map[string]string{}, links: map[string]string{}}
}

func (m *machine) host() Host {
	rooted := func(name string) string { return strings.TrimPrefix(name, "/") }
	return Host{
		ReadFile: func(name string) ([]byte, error) { return fs.ReadFile(m.files, rooted(name)) },
		ReadDir: func(name string) ([]fs.DirEntry, error) {
			return fs.ReadDir(m.files, rooted(name))
		},
		LookupEnv: func(name string) (string, bool) {
			v, ok := m.env[name]
			return v, ok
		},
		RealPath: func(name string) string {
			for link, target := range m.links {
				if within(name, link) {
					return target + strings.TrimPrefix(name, link)
				}
			}
			return name
		},
		CheckBucket: func(kind string, config *yaml.Node) []BucketProblem {
			if kind != typeFilesystem && kind != "S3" {
				return []BucketProblem{{Text: fmt.Sprintf("no provider %q", kind), Hint: "try S3"}}
			}
			var out []BucketProblem
			for i := 0; i < len(config.Content); i += 2 {
				if k := config.Content[i]; k.Value == "bukket" {
					out = append(out, BucketProblem{k, "unknown key", `did you mean "bucket"?`})
				}
			}
			return out
		},
	}
}

// TestScenarios runs testdata/*.txt. Their commands are
//
//	load            the input is the whole file: prints "ok" and warnings, or every problem
//	add             like load, with a valid source and bucket appended to the input
//	print           like add, then prints the whole effective configuration
//	show            like load, then prints the bucket as the configuration is printed
//	table name=N    the effective settings of a table of the file that was loaded last
//	file name=F     puts a file on the machine
//	env             the input is NAME=value lines
//	link            the input is "link target" lines
//	generation      like load, then reads policies and data and prints their names
//
// go test ./runtime/config -rewrite writes the outputs anew.
func TestScenarios(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		m := newMachine()
		var last *Config
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			out := m.run(t, td, &last)
			return strings.ReplaceAll(out, home, "")
		})
	})
}

func (m *machine) run(t *testing.T, td *datadriven.TestData, last **Config) string {
	t.Helper()
	input := td.Input
	switch td.Cmd {
	case "add", "print":
		input += base
	case "env":
		for line := range strings.Lines(input + "\n") {
			if name, v, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok {
				m.env[name] = v
			}
		}
		return ""
	case "link":
		link, target, _ := strings.Cut(input, " ")
		m.links[link] = target
		return ""
	case "file":
		var name string
		td.ScanArgs(t, "name", &name)
		m.files[strings.TrimPrefix(name, "/")] = &fstest.MapFile{Data: []byte(input)}
		return ""
	case "table":
		var name string
		td.ScanArgs(t, "name", &name)
		return describeTable(*last, name)
	}
	m.files[home[1:]+"tierd.yaml"] = &fstest.MapFile{Data: []byte(input)}
	g, err := LoadGeneration(home+"tierd.yaml", m.host())
	if err != nil {
		return err.Error() + "\n"
	}
	*last = g.Config
	var b strings.Builder
	switch td.Cmd {
	case "print", "whole":
		out, err := g.Config.Redacted()
		if err != nil {
			t.Fatal(err)
		}
		b.Write(out)
	case "show":
		out, err := yaml.Marshal(g.Config.Bucket.print())
		if err != nil {
			t.Fatal(err)
		}
		b.Write(out)
	case "generation":
		for _, f := range append(g.Policies, g.Data...) {
			fmt.Fprintf(&b, "%s (%d bytes)\n", f.Path, len(f.Content))
		}
		fmt.Fprintf(&b, "data: %v\n", g.Document)
	default:
		b.WriteString("ok\n")
	}
	for _, w := range g.Config.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w.Error())
	}
	return b.String()
}

func describeTable(c *Config, name string) string {
	t, ok := c.Table(name)
	if !ok {
		return "not governed\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "entry=%s ttl=%s local-ttl=%s tiering=%v named=%v\n",
		t.Entry, t.TTL, t.LocalTTL, t.Tiering, c.Named(name))
	for _, s := range c.Settings(name) {
		fmt.Fprintf(&b, "%-32s %-8s %s\n", s.Key, s.Value, s.Origin)
	}
	return b.String()
}

// TestOSReadsThisMachine loads a file from disk through links, the way the daemon does.
func TestOSReadsThisMachine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "conf/tierd.yaml"), base+"policies: {paths: [../policies]}\n")
	write(t, filepath.Join(dir, "policies/hold.rego"), "package tierd.hold\n")
	g, err := LoadGeneration(filepath.Join(dir, "conf/tierd.yaml"), OS())
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Policies) != 1 || g.Policies[0].Path != filepath.Join(dir, "policies/hold.rego") {
		t.Errorf("policies: %v", g.Policies)
	}
	if _, err := Load(filepath.Join(dir, "none.yaml"), OS()); err == nil {
		t.Error("a file that is not there was loaded")
	}
}

// TestDataDir: a daemon is found by a file that is wrong everywhere else.
func TestDataDir(t *testing.T) {
	t.Parallel()
	m := newMachine()
	for content, want := range map[string]string{
		"data_dir: x\ninteval: 3\n":   home + "x",
		"inteval: 3\n":                home + "tierd-data",
		"data_dir: [x]\nsources: 7\n": home + "tierd-data",
		"data_dir: /y\n---\n":         "/y",
		"- x\n":                       "",
		"data_dir: [":                 "",
		"":                            "",
	} {
		m.files[home[1:]+"tierd.yaml"] = &fstest.MapFile{Data: []byte(content)}
		dir, err := DataDir(home+"tierd.yaml", m.host())
		if dir != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", content, dir, err, want)
		}
	}
}

// TestWhatGovernsATableCanBeNoted: the ledger takes up to 4 KiB for the entry that governs a table,
// and a glob longer than that can match a short name.
func TestWhatGovernsATableCanBeNoted(t *testing.T) {
	t.Parallel()
	for n, ok := range map[int]bool{patternBytesMax: true, patternBytesMax + 1: false} {
		content := "sources: [{name: a, layout: plain, path: a}]\n" +
			"bucket: {type: FILESYSTEM, config: {directory: b}}\n" +
			"tables: [{name: \"" + strings.Repeat("*", n) + "\"}]\n"
		c, err := Parse(home+"tierd.yaml", []byte(content), newMachine().host())
		if ok != (err == nil) {
			t.Errorf("%d bytes: %v", n, err)
		}
		if !ok {
			continue
		}
		if table, found := c.Table("orders"); !found || len(table.Governor) > 4096 {
			t.Errorf("found %t, a governor of %d bytes", found, len(table.Governor))
		}
	}
}

// TestEveryKeyIsDocumented prints a file that has every key, and looks for each in
// docs/configuration.md.
func TestEveryKeyIsDocumented(t *testing.T) {
	t.Parallel()
	const full = `
sources: [{name: a, layout: plain, path: a, next: base+1, closed_after: 1h}]
bucket: {type: FILESYSTEM, config: {directory: b}}
tables:
  - {name: t, compacted: false, labels: {a: b}, table.log.ttl: 1d, table.log.local-ttl: 1d,
     table.log.tiered.local-segments: 1, table.log.bytes: 1, table.log.local-bytes: 1,
     remote.storage.enable: true}
http: {web_config: web.yml}
facts: [{name: f, path: f.json, max_age: 1m}]
plugins: [{name: p, path: p.wasm,
  sha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}]
`
	c, err := Parse(home+"tierd.yaml", []byte(full), newMachine().host())
	if err != nil {
		t.Fatal(err)
	}
	printed, err := c.Redacted()
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	keys := regexp.MustCompile(`(?m)^[ -]*([a-z_.-]+):`).FindAllSubmatch(printed, -1)
	if len(keys) < 40 {
		t.Fatalf("only %d keys in\n%s", len(keys), printed)
	}
	for _, m := range keys {
		if key := string(m[1]); key != "a" && !strings.Contains(string(docs), "`"+key+"`") {
			t.Errorf("docs/configuration.md says nothing of %s", key)
		}
	}
}
