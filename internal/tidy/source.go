package tidy

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Violation is one place that breaks a rule.
type Violation struct {
	Path string // slash-separated, below the module's root
	Line int    // from 1; 0 where the whole file is meant
	Rule string // one word
	Text string // what is wrong and what would be right
}

// String gives "path:line: rule: text".
func (v Violation) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", v.Path, v.Line, v.Rule, v.Text)
}

// File is one parsed Go file.
type File struct {
	Path   string // slash-separated, below the module's root
	Source []byte
	Syntax *ast.File

	fset    *token.FileSet
	imports map[string]string // local name -> import path
	markers []marker
}

// marker is a comment //tidy:rule reason.
type marker struct {
	line         int
	rule, reason string
	used         bool
}

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// Parse parses one file.
func Parse(name string, source []byte) (*File, error) {
	f := &File{Path: name, Source: source, fset: token.NewFileSet(), imports: map[string]string{}}
	var err error
	f.Syntax, err = parser.ParseFile(f.fset, name, source,
		parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, spec := range f.Syntax.Imports {
		p := importPath(spec)
		f.imports[localName(spec, p)] = p
	}
	for _, group := range f.Syntax.Comments {
		for _, c := range group.List {
			if rest, ok := strings.CutPrefix(c.Text, "//tidy:"); ok {
				rule, reason, _ := strings.Cut(rest, " ")
				f.markers = append(f.markers, marker{line: f.line(c.Pos()), rule: rule,
					reason: strings.TrimSpace(reason)})
			}
		}
	}
	return f, nil
}

// Load parses every Go file of the tree, in order of their paths. It passes over testdata, and over
// directories that the go command passes over too.
func Load(tree fs.FS) ([]*File, error) {
	var files []*File
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		hidden := name != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_"))
		if d.IsDir() {
			if hidden || base == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if hidden || path.Ext(name) != ".go" {
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		f, err := Parse(name, source)
		if err != nil {
			return err
		}
		files = append(files, f)
		return nil
	})
	return files, err
}

// Dir is the file's directory: its package's path below the module.
func (f *File) Dir() string { return path.Dir(f.Path) }

// Test reports whether only tests see the file: one named _test.go, or one of a package of test
// helpers, whose name ends in "test".
func (f *File) Test() bool {
	return strings.HasSuffix(f.Path, "_test.go") || testHelpers(f.Dir())
}

func testHelpers(dir string) bool { return strings.HasSuffix(path.Base(dir), "test") }

func (f *File) generated() bool {
	head, _, _ := bytes.Cut(f.Source, []byte("\npackage "))
	return generated.Match(head)
}

func (f *File) line(p token.Pos) int { return f.fset.Position(p).Line }

func (f *File) at(n ast.Node, rule, format string, args ...any) Violation {
	return Violation{f.Path, f.line(n.Pos()), rule, fmt.Sprintf(format, args...)}
}

// answered reports whether a marker of the rule stands on the line or the one above it.
func (f *File) answered(line int, rule string) bool {
	for i := range f.markers {
		m := &f.markers[i]
		if m.rule == rule && m.reason != "" && (m.line == line || m.line == line-1) {
			m.used = true
			return true
		}
	}
	return false
}

// Markers returns the markers that have no reason or answered nothing. It must be called after all
// other rules.
func Markers(files []*File) []Violation {
	var out []Violation
	for _, f := range files {
		for _, m := range f.markers {
			switch {
			case m.reason == "":
				out = append(out, Violation{f.Path, m.line, "marker",
					fmt.Sprintf("tidy:%s has no reason", m.rule)})
			case !m.used:
				out = append(out, Violation{f.Path, m.line, "marker",
					fmt.Sprintf("tidy:%s answers nothing", m.rule)})
			}
		}
	}
	return out
}

// imported returns the import path and the name of a selector such as time.Now; ok is false where
// its left side is no imported package.
func (f *File) imported(n ast.Node) (pkg, name string, ok bool) {
	sel, isSelector := n.(*ast.SelectorExpr)
	if !isSelector {
		return "", "", false
	}
	id, isIdent := sel.X.(*ast.Ident)
	if !isIdent {
		return "", "", false
	}
	pkg, ok = f.imports[id.Name]
	return pkg, sel.Sel.Name, ok
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil { // the parser lets no such literal pass
		panic(err)
	}
	return p
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// localName is the name that the import has in the file. Where the import gives none it is guessed
// from the path, which is right for the standard library.
func localName(spec *ast.ImportSpec, p string) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	if majorVersion.MatchString(path.Base(p)) {
		p = path.Dir(p)
	}
	return path.Base(p)
}

// Sort orders violations by place.
func Sort(list []Violation) {
	slices.SortFunc(list, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Text, b.Text))
	})
}

// within reports whether the directory is top or lies below it.
func within(dir, top string) bool { return dir == top || strings.HasPrefix(dir, top+"/") }

// withinAny reports whether the directory lies within one of tops.
func withinAny(dir string, tops []string) bool {
	return slices.ContainsFunc(tops, func(top string) bool { return within(dir, top) })
}
