package tidy

import (
	"go/ast"
	"strings"
	"unicode/utf8"
)

// Tests checks the tests themselves: none waits on the real clock, none skips, and all run beside
// each other.
func Tests(files []*File) []Violation {
	var out []Violation
	for _, f := range files {
		if !f.Test() {
			continue
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			if pkg, name, ok := f.imported(n); ok && pkg == "time" && name == "Sleep" {
				out = append(out, f.at(n, "sleep", "tests inject time, or wait for an event"))
			}
			if skips(n) && !f.answered(f.line(n.Pos()), "skip") {
				out = append(out, f.at(n, "skip", "a skipped test shows nothing"))
			}
			return true
		})
		if strings.HasSuffix(f.Path, "_test.go") {
			out = append(out, serial(f)...)
		}
	}
	return out
}

func skips(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && (id.Name == "t" || id.Name == "b" || id.Name == "tb" || id.Name == "f") &&
		(sel.Sel.Name == "Skip" || sel.Sel.Name == "Skipf" || sel.Sel.Name == "SkipNow")
}

// serial finds tests that do not run beside others, and could.
func serial(f *File) []Violation {
	var out []Violation
	for _, d := range f.Syntax.Decls {
		d, ok := d.(*ast.FuncDecl)
		if !ok || d.Recv != nil || !isTest(d) {
			continue
		}
		if !callsParallel(d) && !f.answered(f.line(d.Pos()), "parallel") && !alone(f, d) {
			out = append(out, f.at(d, "parallel", "%s does not call t.Parallel", d.Name.Name))
		}
	}
	return out
}

// alone reports whether the test does what no test can do beside others: count allocations or
// goroutines, or change what the whole process shares.
func alone(f *File, d *ast.FuncDecl) bool {
	found := false
	ast.Inspect(d, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if ok && (sel.Sel.Name == "Setenv" || sel.Sel.Name == "Chdir") {
			found = true
		}
		pkg, name, _ := f.imported(n)
		if pkg == "testing" && name == "AllocsPerRun" || pkg == "go.uber.org/goleak" {
			found = true
		}
		return !found
	})
	return found
}

func isTest(d *ast.FuncDecl) bool {
	rest, ok := strings.CutPrefix(d.Name.Name, "Test")
	if !ok || len(d.Type.Params.List) != 1 || rest == "Main" {
		return false
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return rest == "" || !('a' <= r && r <= 'z')
}

func callsParallel(d *ast.FuncDecl) bool {
	for _, s := range d.Body.List {
		if e, ok := s.(*ast.ExprStmt); ok {
			if call, ok := e.X.(*ast.CallExpr); ok {
				if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Parallel" {
					return true
				}
			}
		}
	}
	return false
}
