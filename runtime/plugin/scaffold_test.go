package plugin

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNewProjects: what New writes builds and passes its own test, in each language that this
// machine has a compiler for, and is complete in the others.
func TestNewProjects(t *testing.T) {
	t.Parallel()
	have := append(native(), "go")
	for language, want := range map[string][]string{
		"go": {"Makefile", "README.md", "cases/example.txt", "go.mod", "main.go",
			"tierd/export_other.go", "tierd/export_wasip1.go", "tierd/tierd.go"},
		"c":    {"Makefile", "README.md", "cases/example.txt", "plugin.c", "tierd.h"},
		"rust": {"Makefile", "README.md", "cases/example.txt", "plugin.rs", "tierd.rs"},
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "my-first-plugin")
			files, err := New(language, dir)
			if err != nil || !slices.Equal(files, want) {
				t.Fatalf("files %q, %v; want %q", files, err, want)
			}
			for _, f := range files {
				text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(f)))
				if err != nil || strings.Contains(string(text), "@NAME@") || len(text) == 0 {
					t.Errorf("%s: %v\n%.80s", f, err, text)
				}
			}
			if !slices.Contains(have, language) {
				t.Logf("there is no compiler for %s", language)
				return
			}
			wasm := filepath.Join(dir, "plugin.wasm")
			if language == "go" {
				err = buildGo(dir, ".", wasm)
			} else {
				err = runMake(dir, "-s")
			}
			if err != nil {
				t.Fatal(err)
			}
			golden(t, readModule(t, wasm), filepath.Join(dir, "cases", "example.txt"))
		})
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"full/notes", "file"} {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ language, name, want string }{
		{"cobol", "p", `language "cobol": want go, c or rust`},
		{"go", "My Plugin", `"My Plugin" is no name for a plugin`},
		{"go", "-v", `"-v" is no name for a plugin`},
		{"go", "full", "is not empty"},
		{"go", "file", "not a directory"},
	} {
		_, err := New(c.language, filepath.Join(dir, c.name))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v; want %q", c.language, c.name, err, c.want)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("something was written: %v, %v", left, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := New("c", filepath.Join(dir, "empty")); err != nil {
		t.Errorf("an empty folder: %v", err)
	}
}
