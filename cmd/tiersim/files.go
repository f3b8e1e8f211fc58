package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tierd/tierd/cmd/internal/screen"
	"github.com/tierd/tierd/sim/report"
)

// room makes the directory of what a failure leaves, and those of the files that will be written,
// before anything is tried: a run of minutes does not end at a directory that is not there, or
// where nobody may write. Files may be "", for none.
func room(dir string, files ...string) error {
	for _, file := range files {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			return fmt.Errorf("%s is a directory: want a file to write", file)
		}
	}
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("--out %s: nothing can be written there: %w", dir, err)
	}
	return nil
}

// write writes a file as a whole or not at all, whoever else writes it at the same time: its old
// content stays where there is no room for the new one. What is no regular file, such as a pipe, is
// written to.
func write(file string, text []byte) error {
	if at, err := filepath.EvalSymlinks(file); err == nil {
		file = at
	}
	info, err := os.Lstat(file)
	if err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(file, text, 0o644)
	}
	mode := os.FileMode(0o644)
	if err == nil {
		mode = info.Mode().Perm()
	}
	temp, err := os.CreateTemp(filepath.Dir(file), ".tiersim-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", file, cause(err))
	}
	_, err = temp.Write(text)
	err = cmp.Or(err, temp.Chmod(mode), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), file)
	}
	if err != nil {
		_ = os.Remove(temp.Name())
		return fmt.Errorf("write %s: %w", file, cause(err))
	}
	return nil
}

// cause is what is wrong, without the name of the file in whose place another one stands.
func cause(err error) error {
	var path *os.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// writePage writes the page of a history. What policies and names say shows as it is there, too:
// a letter that turns the direction of what follows is one to see.
func writePage(file string, row *report.Failure, subject, digest string) error {
	return write(file, []byte(screen.Visible(string(report.HTML(row, subject, digest)))))
}

// keep writes the page of a failure into the directory, under the name of its scenario, and the
// scenario: nil where that has its file. page is "" where it was not written; kept is set where
// the scenario was.
func (a *app) keep(row *report.Failure, scenario []byte, dir, subject, digest string) (page string,
	kept bool) {
	if scenario != nil {
		err := write(row.Scenario, scenario)
		a.lose(err)
		kept = err == nil
	}
	base := strings.TrimPrefix(filepath.Base(row.Scenario), "tiersim-")
	page = filepath.Join(dir, "tiersim-"+strings.TrimSuffix(base, ".json")+".html")
	if err := writePage(page, row, subject, digest); err != nil {
		a.lose(err)
		return "", kept
	}
	return page, kept
}

// lose says that something could not be written. The command goes on, so that one report hides no
// other, and does not pass.
func (a *app) lose(err error) {
	if err != nil {
		_, _ = fmt.Fprintln(a.stderr, screen.Text("tiersim: "+err.Error()))
		a.lost = true
	}
}
