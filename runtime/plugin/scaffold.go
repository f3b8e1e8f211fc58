package plugin

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// sdk holds what a new project is made of: its own files, and the SDK's, so that it builds
// without anything being fetched.
//
//go:embed sdk/new sdk/c/tierd.h sdk/rust/tierd.rs
//go:embed sdk/go/tierd/tierd.go sdk/go/tierd/export_wasip1.go sdk/go/tierd/export_other.go
var sdk embed.FS

// languages are those that New knows, each with the SDK's files by their place in the project.
var languages = map[string]map[string]string{
	"go": {
		"tierd/tierd.go":         "sdk/go/tierd/tierd.go",
		"tierd/export_wasip1.go": "sdk/go/tierd/export_wasip1.go",
		"tierd/export_other.go":  "sdk/go/tierd/export_other.go",
	},
	"c":    {"tierd.h": "sdk/c/tierd.h"},
	"rust": {"tierd.rs": "sdk/rust/tierd.rs"},
}

var projectName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// New writes a plugin project in the language (go, c or rust) into dir, which must be empty or
// not there. The base name of dir becomes the plugin's name. It returns the files it wrote, slash-
// separated and below dir. The project builds with make and passes its own test.
func New(language, dir string) (files []string, err error) {
	parts, ok := languages[language]
	if !ok {
		return nil, fmt.Errorf("language %q: want go, c or rust", language)
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(absolute)
	if !projectName.MatchString(name) {
		return nil, fmt.Errorf("%q is no name for a plugin: want lower-case letters, digits and "+
			"dashes, such as hot-first", name)
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	contents := map[string]string{}
	for _, from := range []string{"sdk/new/all", "sdk/new/" + language} {
		if err := collect(contents, from); err != nil {
			return nil, err
		}
	}
	for to, from := range parts {
		text, err := sdk.ReadFile(from)
		if err != nil {
			return nil, err
		}
		contents[to] = string(text)
	}
	return writeProject(dir, name, contents)
}

// collect adds the files below from, without the ending that keeps templates from being taken for
// what they will be.
func collect(contents map[string]string, from string) error {
	return fs.WalkDir(sdk, from, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := sdk.ReadFile(p)
		to := strings.TrimSuffix(strings.TrimPrefix(p, from+"/"), ".tmpl")
		contents[to] = string(text)
		return err
	})
}

func writeProject(dir, name string, contents map[string]string) ([]string, error) {
	files := slices.Sorted(maps.Keys(contents))
	for _, file := range files {
		to := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return nil, err
		}
		text := strings.ReplaceAll(contents[file], "@NAME@", name)
		if err := os.WriteFile(to, []byte(text), 0o666); err != nil {
			return nil, err
		}
	}
	return files, nil
}
