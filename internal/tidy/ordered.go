package tidy

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"

	"golang.org/x/tools/go/packages"
)

// MapOrder finds where pure files let the order of a map show: a range over a map, or an iterator
// over one that is not sorted or collected at once. It type-checks the pure units below root, which
// must be the directory of the go.mod.
func MapOrder(root string, files []*File) ([]Violation, error) {
	byPath := map[string]*File{}
	var dirs []string
	for _, f := range files {
		if pure(f) {
			byPath[f.Path] = f
			dirs = append(dirs, "./"+f.Dir())
		}
	}
	if len(dirs) == 0 {
		return nil, errors.New("no pure file to look at")
	}
	slices.Sort(dirs)
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.LoadTypes | packages.NeedSyntax | packages.NeedTypesInfo,
		Dir:  root,
	}, slices.Compact(dirs)...)
	if err != nil {
		return nil, fmt.Errorf("load %v: %w", dirs, err)
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	var out []Violation
	for _, pkg := range loaded {
		for _, e := range pkg.Errors {
			return nil, fmt.Errorf("load %s: %w", pkg.PkgPath, e)
		}
		for _, syntax := range pkg.Syntax {
			name, err := filepath.Rel(abs, pkg.Fset.Position(syntax.Package).Filename)
			if err != nil {
				return nil, err
			}
			if f := byPath[filepath.ToSlash(name)]; f != nil { // else a medium
				out = append(out, unordered(f, pkg.Fset, syntax, pkg.TypesInfo)...)
			}
		}
	}
	return out, nil
}

// unordered checks one type-checked file; f has its markers.
func unordered(f *File, fset *token.FileSet, syntax *ast.File, info *types.Info) []Violation {
	var out []Violation
	for _, n := range mapOrder(syntax, info) {
		if line := fset.Position(n.Pos()).Line; !f.answered(line, "ordered") {
			out = append(out, Violation{f.Path, line, "ordered",
				"the order of a map shows here: sort, or say with //tidy:ordered why it does not"})
		}
	}
	return out
}

// mapOrder returns the nodes of the file at which the order of a map shows.
func mapOrder(file *ast.File, info *types.Info) []ast.Node {
	var out []ast.Node
	harmless := map[ast.Node]bool{} // calls whose order is lost again at once
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			if t := info.TypeOf(n.X); t != nil && coreIsMap(t) && !blank(n.Key, n.Value) {
				out = append(out, n)
			}
		case *ast.CallExpr:
			switch fullName(n, info) {
			case "maps.Keys", "maps.Values", "maps.All":
				if !harmless[n] {
					out = append(out, n)
				}
			case "slices.Sorted", "slices.SortedFunc", "maps.Collect":
				harmless[n.Args[0]] = true
			}
		}
		return true
	})
	return out
}

// blank reports whether the range names neither key nor value: it only counts.
func blank(key, value ast.Expr) bool {
	for _, e := range []ast.Expr{key, value} {
		if id, ok := e.(*ast.Ident); e != nil && (!ok || id.Name != "_") {
			return false
		}
	}
	return true
}

func coreIsMap(t types.Type) bool {
	if p, ok := t.(*types.TypeParam); ok {
		t = p.Constraint()
	}
	switch u := t.Underlying().(type) {
	case *types.Map:
		return true
	case *types.Interface: // a constraint: one map among its types is enough
		for i := range u.NumEmbeddeds() {
			if union, ok := u.EmbeddedType(i).(*types.Union); ok {
				for j := range union.Len() {
					if coreIsMap(union.Term(j).Type()) {
						return true
					}
				}
			}
		}
	}
	return false
}

// fullName is the name of the called function with its package, such as "maps.Keys"; "" if it is no
// function of a package.
func fullName(call *ast.CallExpr, info *types.Info) string {
	fun := call.Fun
	if index, ok := fun.(*ast.IndexExpr); ok {
		fun = index.X
	}
	sel, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	f, ok := info.Uses[sel.Sel].(*types.Func)
	if !ok || f.Pkg() == nil || f.Signature().Recv() != nil {
		return ""
	}
	return f.Pkg().Path() + "." + f.Name()
}
