package config

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// write makes a file and the directories above it.
func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// blocks finds the inputs of the scenarios, as seeds.
var blocks = regexp.MustCompile(`(?ms)^(load|add|print|generation)\n(.*?)^----$`)

// FuzzConfig: no text makes Parse panic; a text that is refused is refused with places; one that
// is accepted prints as a text that is accepted, means the same and prints the same.
func FuzzConfig(f *testing.F) {
	scenarios, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(scenarios) == 0 {
		f.Fatalf("no scenarios: %v", err)
	}
	for _, name := range scenarios {
		content, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, m := range blocks.FindAllSubmatch(content, -1) {
			f.Add(string(m[2]) + base)
			f.Add(string(m[2]))
		}
	}
	m := newMachine()
	m.env["ACCESS"] = "AKIA123"
	host := m.host()
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse(home+"tierd.yaml", []byte(text), host)
		if err != nil {
			for _, p := range err.(Problems) {
				if p.Place.File == "" || p.Text == "" {
					t.Fatalf("a problem without place or text: %+v", p)
				}
			}
			return
		}
		first, err := c.Redacted()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(home+"tierd.yaml", first, host)
		if err != nil {
			t.Fatalf("refused what it printed:\n%s\n%v", first, err)
		}
		second, err := again.Redacted()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(first), string(second)); diff != "" {
			t.Fatalf("printed differently the second time:\n%s", diff)
		}
	})
}
