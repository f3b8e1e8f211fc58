package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/tierd/tierd/policies/rego"
)

// policyFmtCmd formats policies.
type policyFmtCmd struct {
	policyFiles
	Write bool `xor:"what" help:"Write the files that are not formatted."`
	Diff  bool `xor:"what" help:"Show what would change."`
}

// Help gives examples.
func (c *policyFmtCmd) Help() string {
	return `The form is that of opa fmt. Prints the names of the files that are not in it.

Exit code: 0 if all are or were written, 1 if one is not, 2 if one is no policy.

Examples:

	tierd policy fmt policies/ --diff
	tierd policy fmt --write`
}

// Run formats. Where one file is no policy, none is written.
func (c *policyFmtCmd) Run(a *app) error {
	s, err := c.load(a)
	if err != nil {
		return err
	}
	formatted, err := formatAll(s.modules)
	if err != nil {
		return err
	}
	var p page
	changed := 0
	for i, m := range s.modules {
		if bytes.Equal(formatted[i], m.Source) {
			continue
		}
		changed++
		if c.Write {
			if err := replaceFile(m.Path, formatted[i]); err != nil {
				return err
			}
		}
		if c.Diff {
			_, _ = p.Write(difference(m, formatted[i]))
		} else {
			p.line("%s", m.Path)
		}
	}
	_, err = p.WriteTo(a.stdout)
	if err == nil && changed > 0 && !c.Write {
		return errCheck
	}
	return err
}

// difference is a unified diff, without the line with a command that begins it.
func difference(m rego.Module, formatted []byte) []byte {
	_, out, _ := bytes.Cut(diff.Diff(m.Path, m.Source, m.Path, formatted), []byte("\n"))
	return out
}

// formatAll formats each module. The error is a rego.Errors with all that are no policies.
func formatAll(modules []rego.Module) ([][]byte, error) {
	out := make([][]byte, len(modules))
	var wrong rego.Errors
	for i, m := range modules {
		var err error
		var list rego.Errors
		if out[i], err = rego.Format(m); errors.As(err, &list) {
			wrong = append(wrong, list...)
		} else if err != nil {
			return nil, err
		}
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return out, nil
}

// replaceFile gives a file other content: a reader sees the old or the new. Links stay, and so does
// the mode.
func replaceFile(path string, content []byte) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(real), "."+filepath.Base(real)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), real)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // what went wrong is said
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
