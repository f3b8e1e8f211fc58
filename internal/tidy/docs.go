package tidy

import (
	"go/ast"
	"regexp"
)

// Docs checks that every package and every exported name outside of tests has a comment. Methods
// of the best-known interfaces need none, and one comment serves a run of one-line functions
// without a blank line between them.
func Docs(files []*File) []Violation {
	var out []Violation
	described := map[string]bool{} // directories of packages with a comment
	for _, f := range files {
		if f.Syntax.Doc.Text() != "" && !f.Test() {
			described[f.Dir()] = true
		}
	}
	for _, f := range files {
		if f.Test() || f.generated() {
			continue
		}
		if !described[f.Dir()] {
			out = append(out, Violation{f.Path, 0, "docs", "no file of the package describes it"})
			described[f.Dir()] = true // once is enough
		}
		out = append(out, undocumented(f)...)
	}
	return out
}

// wellKnown are methods whose meaning their interface gives.
var wellKnown = regexp.MustCompile(
	`^(Error|Unwrap|Is|As|String|Len|Less|Swap|Push|Pop|MarshalText|UnmarshalText|MarshalJSON|` +
		`UnmarshalJSON|MarshalYAML|UnmarshalYAML|ServeHTTP)$`)

func undocumented(f *File) []Violation {
	var out []Violation
	covered := 0 // the line up to which a run of one-line functions has a comment
	for _, d := range f.Syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			start, end := f.line(d.Pos()), f.line(d.End())
			if d.Doc.Text() != "" || start == end && start == covered+1 {
				covered = end
			} else if wantsComment(d) {
				out = append(out, f.at(d, "docs", "%s has no comment", d.Name.Name))
			}
		case *ast.GenDecl:
			out = append(out, undocumentedSpecs(f, d)...)
		}
	}
	return out
}

// undocumentedSpecs checks types, constants and variables. A comment on a group of constants or
// variables serves all of them.
func undocumentedSpecs(f *File, d *ast.GenDecl) []Violation {
	var out []Violation
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			group := d.Doc.Text() != "" && !d.Lparen.IsValid()
			if spec.Name.IsExported() && !group && spec.Doc.Text() == "" {
				out = append(out, f.at(spec, "docs", "%s has no comment", spec.Name.Name))
			}
		case *ast.ValueSpec:
			if d.Doc.Text() != "" || spec.Doc.Text() != "" || spec.Comment.Text() != "" {
				continue
			}
			for _, name := range spec.Names {
				if name.IsExported() {
					out = append(out, f.at(name, "docs", "%s has no comment", name.Name))
				}
			}
		}
	}
	return out
}

// wantsComment reports whether users of the package can see the function, and its name alone does
// not tell them what it does.
func wantsComment(d *ast.FuncDecl) bool {
	if !d.Name.IsExported() || d.Recv == nil {
		return d.Name.IsExported()
	}
	if wellKnown.MatchString(d.Name.Name) {
		return false
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	switch generic := t.(type) {
	case *ast.IndexExpr:
		t = generic.X
	case *ast.IndexListExpr:
		t = generic.X
	}
	id, ok := t.(*ast.Ident)
	return ok && id.IsExported()
}
