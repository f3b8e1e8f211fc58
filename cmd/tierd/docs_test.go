package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestPoliciesPage does what docs/policies.md tells a new user to do, in order: each block of sh
// must print what the block of text behind it shows, or nothing where there is none.
func TestPoliciesPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## From nothing to a tested policy\n")
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
	if steps < 8 {
		t.Fatalf("only %d steps", steps)
	}
	name := filepath.Join(t.TempDir(), "page.txt")
	text := script.String() + files.String()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{Files: []string{name}, Setup: shortSocket})
}
