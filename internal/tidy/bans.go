package tidy

import (
	"go/ast"
	"path"
	"slices"
	"strings"
)

// pureUnits are state machines and pure functions: what they do depends on their arguments alone,
// so that a simulator can run them again and get the same.
var pureUnits = []string{tierUnit, gateUnit, "runtime/engine", "offsets", "sim"}

// mediums are the beginnings of paths where a pure unit meets the machine after all: the ledger's
// bbolt file and its lock.
var mediums = []string{"offsets/bolt", "offsets/lock"}

// pure reports whether the file is one of a pure unit.
func pure(f *File) bool {
	medium := slices.ContainsFunc(mediums, func(m string) bool {
		return strings.HasPrefix(f.Path, m)
	})
	return withinAny(f.Dir(), pureUnits) && !medium && !f.Test()
}

// impureImports are what a pure file does not import: each is a way to the machine outside.
var impureImports = []string{
	"os", "net", "syscall", "plugin", "log", "crypto/rand", "golang.org/x/sys", "unsafe",
}

// machineImports are what the engine does not import besides: it has no calls to cancel, no state
// to share and nothing to read.
var machineImports = []string{"context", "io", "sync"}

// ban is a set of names of one package that only some units may use.
type ban struct {
	rule  string
	pkg   string
	names []string // nil is every name but those of but
	but   []string
	units []string // that may use it, and everything below them
	hint  string
}

// hosts are where the program meets the machine: the clock is read, goroutines are started and
// lines are printed there, and handed on as arguments.
var hosts = []string{"runtime/daemon", "cmd", "internal/bench"}

var bans = []ban{
	{rule: "clock", pkg: "time", names: []string{"Now", "Since", "Until"}, units: hosts,
		hint: "take the time as an argument"},
	{rule: "clock", pkg: "time",
		names: []string{"Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
		// retry offers a real Sleep for its own Options.Sleep.
		units: append([]string{"objstore/retry"}, hosts...),
		hint:  "waiting is for the daemon: take it as an argument"},
	{rule: "random", pkg: "math/rand", but: []string{"New", "NewSource", "NewZipf", "Rand",
		"Source", "Source64", "Zipf"}, units: hosts,
		hint: "take a *rand.Rand or a func as an argument"},
	{rule: "random", pkg: "math/rand/v2", but: []string{"New", "NewPCG", "NewChaCha8", "NewZipf",
		"Rand", "Source", "PCG", "ChaCha8", "Zipf"}, units: hosts,
		hint: "take a *rand.Rand or a func as an argument"},
	{rule: "exit", pkg: "os", names: []string{"Exit"}, units: []string{"cmd", "internal/bench"},
		hint: "return an error"},
	{rule: "print", pkg: "fmt", names: []string{"Print", "Printf", "Println"},
		units: []string{"cmd"}, hint: "write to a writer that is an argument"},
	{rule: "print", pkg: "log", units: hosts, hint: "return an error; the daemon logs it"},
	// providers hands the daemon's logger on to the clients, which take one.
	{rule: "print", pkg: "log/slog", units: append([]string{"objstore/providers"}, hosts...),
		hint: "return an error; the daemon logs it"},
}

// deadlines are what only pure files must not do with a context.
var deadlines = ban{rule: "clock", pkg: "context", names: []string{"WithTimeout", "WithDeadline",
	"WithTimeoutCause", "WithDeadlineCause"}, hint: "deadlines are set outside"}

// Bans checks what non-test files must not do: read the clock, wait, draw global random numbers,
// start goroutines, print, run before main, or, in pure files, reach the machine at all.
func Bans(files []*File) []Violation {
	var out []Violation
	for _, f := range files {
		if f.Test() {
			continue
		}
		if pure(f) {
			out = append(out, pureBans(f)...)
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			out = append(out, nodeBans(f, n)...)
			return true
		})
	}
	return out
}

func pureBans(f *File) []Violation {
	var out []Violation
	banned := impureImports
	if within(f.Dir(), "runtime/engine") {
		banned = slices.Concat(impureImports, machineImports)
	}
	for _, spec := range f.Syntax.Imports {
		if p := importPath(spec); withinAny(p, banned) {
			out = append(out, f.at(spec, "pure", "%s is pure: it does not import %s", f.Dir(), p))
		}
	}
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		if deadlines.hits(f, n) {
			out = append(out, f.at(n, deadlines.rule, "%s", deadlines.hint))
		}
		return true
	})
	return out
}

func nodeBans(f *File, n ast.Node) []Violation {
	var out []Violation
	if !withinAny(f.Dir(), hosts) && startsGoroutine(n) {
		out = append(out, f.at(n, "goroutine", "goroutines live in %s", strings.Join(hosts, ", ")))
	}
	d, ok := n.(*ast.FuncDecl)
	if ok && d.Recv == nil && d.Name.Name == "init" && !within(f.Dir(), guestUnit) {
		out = append(out, f.at(n, "init", "nothing runs before main: make a constructor"))
	}
	for i := range bans {
		if b := &bans[i]; b.hits(f, n) && !withinAny(f.Dir(), b.units) {
			_, name, _ := f.imported(n)
			out = append(out, f.at(n, b.rule, "%s.%s: %s", path.Base(b.pkg), name, b.hint))
		}
	}
	return out
}

// startsGoroutine recognizes a go statement, and WaitGroup.Go and its kind, which hide one.
func startsGoroutine(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		return true
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "Go" && len(n.Args) == 1
	}
	return false
}

func (b *ban) hits(f *File, n ast.Node) bool {
	pkg, name, ok := f.imported(n)
	if !ok || pkg != b.pkg {
		return false
	}
	if b.names == nil {
		return !slices.Contains(b.but, name)
	}
	return slices.Contains(b.names, name)
}
