package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Testdata finds entries of testdata directories that no Go file beside or below them names, and
// fuzz corpora whose target is gone. The Makefile counts for the root's.
func Testdata(tree fs.FS, files []*File) ([]Violation, error) {
	var out []Violation
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		base := path.Base(name)
		if name != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
			return fs.SkipDir
		}
		if base != "testdata" {
			return nil
		}
		owner := path.Dir(name)
		said := literals(files, owner)
		if make, err := fs.ReadFile(tree, path.Join(owner, "Makefile")); err == nil {
			said = append(said, string(make))
		}
		entries, err := fs.ReadDir(tree, name)
		if err != nil {
			return err
		}
		for _, e := range entries {
			entry := path.Join(name, e.Name())
			if e.Name() == "fuzz" {
				dead, err := deadCorpora(tree, entry, files)
				if err != nil {
					return err
				}
				out = append(out, dead...)
			} else if e.Name() != "README.md" && !named(e.Name(), said) {
				out = append(out, Violation{entry, 0, "testdata", "nothing names it"})
			}
		}
		return fs.SkipDir
	})
	return out, err
}

// literals returns the string literals of all files in or below the directory.
func literals(files []*File, dir string) []string {
	var out []string
	for _, f := range files {
		if dir != "." && !within(f.Dir(), dir) {
			continue
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, err := strconv.Unquote(lit.Value); err == nil {
					out = append(out, s)
				}
			}
			return true
		})
	}
	return out
}

// named reports whether one of the texts contains the entry's name, is the name without its
// extension, as a test case's name is, or is a path pattern for it.
func named(entry string, texts []string) bool {
	stem := strings.TrimSuffix(entry, path.Ext(entry))
	for _, s := range texts {
		if strings.Contains(s, entry) || strings.ReplaceAll(s, " ", "-") == stem {
			return true
		}
		if dir, pattern := path.Split(s); strings.HasSuffix(dir, "testdata/") {
			if ok, err := path.Match(pattern, entry); ok && err == nil {
				return true
			}
		}
	}
	return false
}

func deadCorpora(tree fs.FS, fuzz string, files []*File) ([]Violation, error) {
	corpora, err := fs.ReadDir(tree, fuzz)
	if err != nil {
		return nil, err
	}
	owner := path.Dir(path.Dir(fuzz))
	targets := map[string]bool{}
	for _, f := range files {
		if f.Dir() != owner {
			continue
		}
		for _, d := range f.Syntax.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				targets[d.Name.Name] = true
			}
		}
	}
	var out []Violation
	for _, c := range corpora {
		if !targets[c.Name()] {
			out = append(out, Violation{path.Join(fuzz, c.Name()), 0, "testdata",
				fmt.Sprintf("%s has no fuzz target of that name", owner)})
		}
	}
	return out, nil
}
