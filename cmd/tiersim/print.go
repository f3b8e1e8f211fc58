package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tierd/tierd/cmd/internal/screen"
	"github.com/tierd/tierd/sim/report"
)

// printf prints on stdout; that it could not is told in the end. What policies, properties and
// names say is told, and does nothing to a terminal.
func (a *app) printf(format string, args ...any) {
	a.print(screen.Text(fmt.Sprintf(format, args...)))
}

// print prints a text as it is.
func (a *app) print(text string) {
	_, err := fmt.Fprint(a.stdout, text)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mute = cmp.Or(a.mute, err)
}

// failure prints a failure on one screen. Colours are tierd's own alone.
func (a *app) failure(f *report.Failure) {
	one := *f
	for _, s := range []*string{&one.Property, &one.Segment, &one.Text, &one.Rates, &one.Decided,
		&one.Reason, &one.Scenario, &one.Replay} {
		*s = screen.Line(*s)
	}
	one.Steps = lines(f.Steps)
	a.print(one.Screen(screen.Colours(a.stdout, a.lookupEnv)))
}

// fromWorkspace is the working directory from the root of the repository, as GitHub names files;
// "" where it is the root, or none is known.
func (a *app) fromWorkspace() string {
	root, _ := a.lookupEnv("GITHUB_WORKSPACE")
	dir, err := os.Getwd()
	if root == "" || err != nil {
		return ""
	}
	from, err := filepath.Rel(root, dir)
	if err != nil || !filepath.IsLocal(from) {
		return ""
	}
	return from
}

// lines gives each text on one line.
func lines(texts []string) []string {
	out := make([]string, len(texts))
	for i, s := range texts {
		out[i] = screen.Line(s)
	}
	return out
}

// shell is the word as a shell takes it for one.
func shell(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("_./=:,@%+-", r)
	}
	if word != "" && strings.TrimFunc(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// asFile is the path of a file as a word of a command, which takes what begins with - for a flag.
func asFile(file string) string {
	if strings.HasPrefix(file, "-") {
		return "./" + file
	}
	return file
}
