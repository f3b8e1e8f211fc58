package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/rogpeppe/go-internal/testscript"
)

// TestPoliciesPage does what docs/policies.md tells a new user to do.
func TestPoliciesPage(t *testing.T) {
	t.Parallel()
	follow(t, "policies.md", "From nothing to a tested policy", 8, shortSocket)
}

// TestPluginsPage does what docs/plugins.md tells a new user to do, with the Go compiler that runs
// the tests.
func TestPluginsPage(t *testing.T) {
	t.Parallel()
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	follow(t, "plugins.md", "From nothing to a running plugin", 6, func(env *testscript.Env) error {
		env.Setenv("GOCACHE", strings.TrimSpace(string(cache)))
		env.Setenv("GOTOOLCHAIN", "local")
		env.Setenv("GOFLAGS", "")
		return shortSocket(env)
	})
}

// TestCommandLinePage finds each command in the synopsis of docs/cli.md, with each of its flags.
func TestCommandLinePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	parser, err := kong.New(&cli{})
	if err != nil {
		t.Fatal(err)
	}
	_, synopsis, _ := strings.Cut(string(page), "```\n")
	synopsis, _, _ = strings.Cut(synopsis, "\n```")
	// Long lines go on in the next one.
	synopsis = strings.ReplaceAll(synopsis, "\n      ", " ")
	for _, command := range parser.Model.Leaves(true) {
		name := "tierd"
		for n := command; n.Parent != nil; n = n.Parent {
			name = "tierd " + n.Name + strings.TrimPrefix(name, "tierd")
		}
		i := slices.IndexFunc(strings.Split(synopsis, "\n"), func(line string) bool {
			return line == name || strings.HasPrefix(line, name+" ")
		})
		if i < 0 {
			t.Errorf("the synopsis of docs/cli.md has no line for %q", name)
			continue
		}
		line := strings.NewReplacer("[", " ", "]", " ").Replace(strings.Split(synopsis, "\n")[i])
		for _, f := range command.Flags {
			if f.Name != "output" && !slices.Contains(strings.Fields(line), "--"+f.Name) {
				t.Errorf("the synopsis of docs/cli.md has no --%s of %q", f.Name, name)
			}
		}
	}
}

// follow does what a section of a page says, in order: each block of sh must print what the block
// of text behind it shows, or nothing where there is none.
func follow(t *testing.T, name, title string, stepsMin int,
	setup func(*testscript.Env) error) {
	t.Helper()
	page, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## "+title+"\n")
	section, _, more := strings.Cut(section, "\n## ")
	if !found || !more {
		t.Fatal("the section is not there")
	}
	var script, files strings.Builder
	script.WriteString("mkdir page\ncd page\n")
	blocks := strings.Split(section, "\n```")
	steps := 0
	for i, b := range blocks {
		commands, isStep := strings.CutPrefix(b, "sh\n")
		if !isStep {
			continue
		}
		want := ""
		if i+2 < len(blocks) {
			if text, isText := strings.CutPrefix(blocks[i+2], "text\n"); isText {
				want = text + "\n"
			}
		}
		steps++
		fmt.Fprintf(&script, "exec sh ../step%d.sh\ncmp stdout ../want%d\n", steps, steps)
		fmt.Fprintf(&files, "-- step%d.sh --\nexec 2>&1\n%s\ntrue\n-- want%d --\n%s",
			steps, commands, steps, want)
	}
	if steps < stepsMin {
		t.Fatalf("only %d steps", steps)
	}
	file := filepath.Join(t.TempDir(), "page.txt")
	text := script.String() + files.String()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{Files: []string{file}, Setup: setup})
}
