package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/tierd/tierd/runtime/document"
)

// Text is one policy or data file as it was read.
type Text struct {
	Path    string
	Content []byte
}

// Generation is everything that takes effect together: the configuration, the user's policies and
// their data, and the plugins. It is read as a whole or not at all.
type Generation struct {
	Config   *Config
	Policies []Text // *.rego, ascending by path
	Data     []Text // .yaml, .yml and .json, ascending by path
	// Document is what the data files say together: data.* in policies.
	Document map[string]any
	// Modules are the files of Config.Plugins, in their order, each as its SHA-256 pins it.
	Modules [][]byte
}

// LoadGeneration reads the file at path and every policy, data file and plugin that it names. The
// error is of type Problems.
func LoadGeneration(path string, host Host) (*Generation, error) {
	g, problems := Examine(path, host)
	if len(problems) > 0 {
		return nil, problems
	}
	return g, nil
}

// Examine reads like LoadGeneration, and goes on where something is wrong, so that all of it is
// said at once. The generation is then what could be read; its Config is nil where the file is no
// YAML, and its Document where policies or data may be missing from it.
func Examine(path string, host Host) (*Generation, Problems) {
	c, problems := look(path, host)
	if c == nil {
		return &Generation{}, problems
	}
	r := &reader{host: host}
	g := &Generation{Config: c}
	g.Policies = r.files("policies.paths", c.Policies.Paths, c.Policies.pathPlaces, ".rego")
	g.Data = r.files("policies.data", c.Policies.Data, c.Policies.dataPlaces, dataExt...)
	document := r.merge(g.Data)
	if len(r.problems) == 0 && !c.Policies.unknown {
		g.Document = document
	}
	g.Modules = r.modules(c.Plugins)
	return g, append(problems, r.problems...).sorted()
}

// dataExt are the extensions of data files.
var dataExt = []string{".yaml", ".yml", ".json"}

// LoadPolicies reads policies and data without a configuration, as OPA's own tools do: each path is
// a file of either, or a directory of both. data names more of the latter. The Config of what it
// returns is nil, and paths are as they were given. The error is of type Problems.
func LoadPolicies(paths, data []string, host Host) (*Generation, error) {
	r := &reader{host: host}
	var policies, documents []string
	for _, name := range paths {
		r.place, r.what = Place{File: name}, "policies"
		before := len(r.problems)
		found := r.expand(name, 0, append([]string{".rego"}, dataExt...))
		if len(found) == 0 && before == len(r.problems) {
			r.problem("name *.rego files, or directories of them", "no policy is here")
		}
		for _, path := range found {
			if filepath.Ext(path) == ".rego" {
				policies = append(policies, path)
			} else {
				documents = append(documents, path)
			}
		}
	}
	for _, name := range data {
		r.place, r.what = Place{File: name}, "data"
		before := len(r.problems)
		found := r.expand(name, 0, dataExt)
		if len(found) == 0 && before == len(r.problems) {
			r.problem("name .yaml, .yml or .json files, or directories of them", "no data is here")
		}
		documents = append(documents, found...)
	}
	g := &Generation{Policies: r.readAll(policies), Data: r.readAll(documents)}
	g.Document = r.merge(g.Data)
	if len(r.problems) > 0 {
		return nil, r.problems.sorted()
	}
	return g, nil
}

// policiesKey is where policies have what they say themselves.
const policiesKey = "tierd"

// merge joins the documents of the data files: each is a mapping, and a key stands in one of them.
func (r *reader) merge(files []Text) map[string]any {
	out := map[string]any{}
	from := map[string]string{}
	for _, f := range files {
		doc, err := document.Decode(f.Path, f.Content)
		if err != nil {
			r.problems = append(r.problems, dataProblem(f.Path, err))
			continue
		}
		object, isObject := doc.Value.(map[string]any)
		if !isObject {
			r.problems = append(r.problems, Problem{Place{f.Path, 1, 0},
				"the document is no mapping", wantDocument})
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(object)) {
			place := Place{f.Path, doc.Keys[key].Line, doc.Keys[key].Column}
			if key == policiesKey {
				r.problems = append(r.problems, Problem{place,
					fmt.Sprintf("the key %q belongs to the policies: data.%s is theirs", key, key),
					"give it another name"})
			}
			if first, taken := from[key]; taken {
				r.problems = append(r.problems, Problem{place,
					fmt.Sprintf("the key %q stands in %s already", key, first), "keep one of them"})
			}
			out[key], from[key] = object[key], f.Path
		}
	}
	return out
}

// wantDocument is what would be right where a data file is none.
const wantDocument = "want one document of keys and values"

// dataProblem is a data file that cannot be read.
func dataProblem(path string, err error) Problem {
	p := Problem{Place{File: path}, err.Error(), wantDocument}
	if wrong := (*document.Error)(nil); errors.As(err, &wrong) {
		p.Place.Line, p.Place.Column, p.Text = wrong.Place.Line, wrong.Place.Column, wrong.Text
		if wrong.Hint != "" {
			p.Hint = wrong.Hint
		}
	}
	return p
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
		if name == "" {
			continue // what is wrong with it was said
		}
		r.place, r.what = places[i], what
		before := len(r.problems)
		found := r.expand(name, 0, ext)
		switch {
		case len(r.problems) > before:
		case len(found) == 0:
			r.problem("add one, or remove the entry", "%s holds no %s file", name,
				strings.Join(ext, " or "))
		case !slices.ContainsFunc(found, decides):
			r.problem("add a policy, or remove the entry",
				"%s holds only tests (*%s), which decide nothing", name, testSuffix)
		}
		for _, path := range found {
			if !seen[path] {
				seen[path] = true
				out = append(out, r.read(path)...)
			}
		}
	}
	slices.SortFunc(out, byPath)
	return out
}

// readAll reads the files, each once.
func (r *reader) readAll(paths []string) []Text {
	slices.Sort(paths)
	var out []Text
	for _, path := range slices.Compact(paths) {
		r.place, r.what = Place{File: path}, "policies"
		out = append(out, r.read(path)...)
	}
	slices.SortFunc(out, byPath)
	return out
}

func byPath(a, b Text) int { return strings.Compare(a.Path, b.Path) }

// testSuffix ends the names of the files that hold tests of policies. They never decide.
const testSuffix = "_test.rego"

func decides(path string) bool { return !strings.HasSuffix(path, testSuffix) }

// read gives the file, or nothing and a problem.
func (r *reader) read(path string) []Text {
	content, err := r.host.ReadFile(path)
	switch {
	case err != nil:
		r.problem("", "%v", err)
	case len(content) > fileBytesMax:
		r.problem("", "%s is larger than %s", path, FormatBytes(fileBytesMax))
	default:
		return []Text{{path, content}}
	}
	return nil
}

// expand gives the files of the entry: itself, or those below it, also behind links. Names that
// start with a dot are passed over, since that is how editors and mounted volumes keep what is not
// meant. It stops at the first problem, so that links in a circle end at the greatest depth.
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
	before := len(r.problems)
	for _, e := range entries {
		path := filepath.Join(name, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir() || r.linksDir(path, e):
			out = append(out, r.expand(path, depth+1, ext)...)
			if len(r.problems) > before {
				return nil
			}
		case slices.Contains(ext, filepath.Ext(e.Name())):
			out = append(out, path) // of what is no file, reading says so
		case slices.Contains(ext, strings.ToLower(filepath.Ext(e.Name()))):
			r.problem("rename it, or remove it", "%s is passed over: only names that end in %s count",
				path, strings.Join(ext, " or "))
			return nil
		}
	}
	return out
}

// linksDir reports whether the entry is a link to a directory, or to one that cannot be read.
func (r *reader) linksDir(path string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return false
	}
	_, err := r.host.ReadDir(path)
	return !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, fs.ErrNotExist)
}
