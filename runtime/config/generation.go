package config

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Text is one policy or data file as it was read.
type Text struct {
	Path    string
	Content []byte
}

// Generation is everything that takes effect together: the configuration, the user's policies and
// their data. It is read as a whole or not at all.
type Generation struct {
	Config   *Config
	Policies []Text // *.rego, ascending by path
	Data     []Text // .yaml, .yml and .json, ascending by path
}

// LoadGeneration reads the file at path and every policy and data file that it names. The error is
// of type Problems.
func LoadGeneration(path string, host Host) (*Generation, error) {
	c, err := Load(path, host)
	if err != nil {
		return nil, err
	}
	r := &reader{host: host}
	g := &Generation{Config: c}
	g.Policies = r.files("policies.paths", c.Policies.Paths, c.Policies.pathPlaces, ".rego")
	g.Data = r.files("policies.data", c.Policies.Data, c.Policies.dataPlaces,
		".yaml", ".yml", ".json")
	if len(r.problems) > 0 {
		return nil, r.problems.sorted()
	}
	return g, nil
}

// The bounds of a tree of policies.
const (
	policyFilesMax = 10_000
	policyDepthMax = 16
)

// reader reads trees of files and collects problems, each at the place of the entry that named the
// tree.
type reader struct {
	host     Host
	problems Problems
	place    Place
	what     string
}

func (r *reader) problem(hint, format string, args ...any) {
	text := r.what + ": " + fmt.Sprintf(format, args...)
	r.problems = append(r.problems, Problem{r.place, text, hint})
}

// files reads every file with one of the extensions that the entries name or contain. An entry
// that gives none is a problem: it is a policy that its author takes to be in force.
func (r *reader) files(what string, entries []string, places []Place, ext ...string) []Text {
	var out []Text
	seen := map[string]bool{}
	for i, name := range entries {
		r.place, r.what = places[i], what
		before := len(r.problems)
		found := r.expand(name, 0, ext)
		if len(found) == 0 && len(r.problems) == before {
			r.problem("add one, or remove the entry", "%s holds no %s file", name,
				strings.Join(ext, " or "))
		}
		for _, path := range found {
			if seen[path] {
				continue
			}
			seen[path] = true
			content, err := r.host.ReadFile(path)
			switch {
			case err != nil:
				r.problem("", "%v", err)
			case len(content) > fileBytesMax:
				r.problem("", "%s is larger than %s", path, FormatBytes(fileBytesMax))
			default:
				out = append(out, Text{path, content})
			}
		}
	}
	slices.SortFunc(out, func(a, b Text) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// expand gives the files of the entry: itself, or those below it. Names that start with a dot are
// passed over, since that is how editors and mounted volumes keep what is not meant.
func (r *reader) expand(name string, depth int, ext []string) []string {
	entries, err := r.host.ReadDir(name)
	switch {
	case err != nil && depth == 0 && slices.Contains(ext, filepath.Ext(name)):
		return []string{name}
	case err != nil:
		r.problem("", "%v", err)
		return nil
	case depth > policyDepthMax:
		r.problem("", "%s is nested deeper than %d directories", name, policyDepthMax)
		return nil
	case len(entries) > policyFilesMax:
		r.problem("", "%s holds more than %d files", name, policyFilesMax)
		return nil
	}
	var out []string
	for _, e := range entries {
		path := filepath.Join(name, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir():
			out = append(out, r.expand(path, depth+1, ext)...)
		case slices.Contains(ext, filepath.Ext(e.Name())) && readable(e.Type()):
			out = append(out, path)
		}
	}
	return out
}

// readable reports whether reading the entry may give a file: links may, pipes and devices not.
func readable(m fs.FileMode) bool { return m.IsRegular() || m&fs.ModeSymlink != 0 }
