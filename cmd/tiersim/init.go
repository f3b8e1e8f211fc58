package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

//go:embed project
var project embed.FS

// initCmd writes a project to begin with.
type initCmd struct {
	Dir string `arg:"" default:"." help:"Directory; it is made if it is not there." placeholder:"DIR"`
}

// Help says more.
func (c *initCmd) Help() string {
	return `Writes a tierd.yaml, a policy with its test and data, a file of properties, a directory for
regressions, and a workflow for GitHub. Nothing that is there is overwritten.

Examples:

	tiersim init ./retention && cd retention && tiersim check`
}

// workflow is where GitHub looks for the file of the CI.
const workflow = ".github/workflows/retention.yml"

// Run writes it.
func (c *initCmd) Run(a *app) error {
	files := map[string][]byte{}
	err := fs.WalkDir(project, "project", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := project.ReadFile(name)
		to, _ := filepath.Rel("project", name)
		if to == "ci.yml" {
			to = workflow
		}
		files[to] = text
		return err
	})
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names {
		at := filepath.Join(c.Dir, name)
		switch _, err := os.Lstat(at); {
		case err == nil:
			return fmt.Errorf("%s is there already: name another directory", at)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	for _, name := range names {
		at := filepath.Join(c.Dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(at, files[name], 0o644); err != nil {
			return err
		}
		a.printf("%s\n", at)
	}
	return nil
}
