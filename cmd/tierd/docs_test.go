package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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
