package tidy

import (
	"go/ast"
	"go/importer"
	"go/types"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// source is one synthetic file: its path and its text.
type source struct{ path, text string }

func parse(t *testing.T, sources ...source) []*File {
	t.Helper()
	var files []*File
	for _, s := range sources {
		f, err := Parse(s.path, []byte(s.text))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// expect compares the violations, as "path:line: rule", with want.
func expect(t *testing.T, got []Violation, want ...string) {
	t.Helper()
	Sort(got)
	var short []string
	for _, v := range got {
		s, _, _ := strings.Cut(v.String(), ": "+v.Text)
		short = append(short, s)
	}
	if !slices.Equal(short, want) {
		t.Errorf("got  %q\nwant %q\nin full %v", short, want, got)
	}
}

func TestImports(t *testing.T) {
	t.Parallel()
	own := func(dir string) string { return "github.com/tierd/tierd/" + dir }
	for _, c := range []struct {
		path, imports string
		wrong         bool
	}{
		{"runtime/tier/a.go", "time", false},
		{"runtime/tier/a.go", "golang.org/x/sys/unix", true},
		{"runtime/tier/a.go", own("policies/gate"), true},
		{"runtime/vfs/a.go", own("runtime/tier"), false},
		{"runtime/vfs/a.go", own("policies/gate"), true},
		{"policies/gate/a.go", own("runtime/tier"), false},
		{"policies/gate/a.go", own("runtime/vfs"), true},
		{"policies/embed.go", "embed", false},
		{"policies/embed.go", own("runtime/tier"), true},
		{"policies/rego/a.go", own("policies"), false},
		{"policies/rego/a.go", own("offsets"), true},
		{"offsets/a.go", own("objstore"), true},
		{"offsets/a.go", own("runtime/vfs"), false},
		{"objstore/a.go", own("objstore/retry"), false},
		{"objstore/retry/a.go", own("objstore"), false},
		{"objstore/a.go", own("offsets"), true},
		{"objstore/a.go", own("objstore/providers"), true},
		{"objstore/providers/a.go", own("objstore"), false},
		{"runtime/logdir/a.go", own("runtime/logdir/kbatch"), false},
		{"runtime/logdir/kbatch/a.go", own("runtime/audit"), true},
		{"runtime/plugin/sdk/go/a.go", own("runtime/tier"), true},
		{"runtime/plugin/a.go", own("runtime/plugin/sdk/go"), true},
		{"runtime/audit/a.go", own("runtime/engine"), true},
		{"runtime/config/a.go", own("runtime/tier"), false},
		{"runtime/config/a.go", own("policies/gate"), true},
		{"runtime/api/a.go", own("policies/gate"), false},
		{"runtime/api/a.go", own("runtime/config"), true},
		{"runtime/engine/a.go", own("policies/gate"), false},
		{"runtime/engine/a.go", own("runtime/vfs"), true},
		{"runtime/engine/a.go", own("offsets"), true},
		{"runtime/engine/a.go", "golang.org/x/time/rate", true},
		{"runtime/exec/a.go", own("runtime/engine"), false},
		{"runtime/exec/a.go", own("objstore"), true},
		{"runtime/exec/a.go", own("runtime/daemon"), true},
		{"runtime/daemon/a.go", own("runtime/exec"), false},
		{"runtime/daemon/a.go", own("sim"), true},
		{"runtime/daemon/a.go", own("objstore/providers"), true},
		{"sim/world/a.go", own("runtime/exec"), false},
		{"sim/world/a.go", own("runtime/daemon"), true},
		{"cmd/tierd/a.go", own("objstore/providers"), false},
		{"runtime/a.go", "time", true},
		{"runtime/novel/a.go", "time", true},
		{"a.go", own("runtime/tier"), true},

		{"runtime/exec/a_test.go", own("objstore"), false},
		{"runtime/exec/a_test.go", own("runtime/daemon"), true},
		{"offsets/a_test.go", own("objstore/providers"), true},
		{"runtime/tier/a_test.go", "pgregory.net/rapid", false},

		{"runtime/plugin/a.go", "github.com/tetratelabs/wazero", false},
		{"runtime/plugin/meter/a.go", "github.com/tetratelabs/wazero/api", false},
		{"runtime/daemon/a.go", "github.com/tetratelabs/wazero", true},
		{"policies/rego/a.go", "github.com/open-policy-agent/opa/v1/rego", false},
		{"cmd/tierd/a.go", "github.com/open-policy-agent/opa/v1/rego", true},
		{"objstore/a.go", "github.com/thanos-io/objstore", false},
		{"objstore/a.go", "github.com/thanos-io/objstore/client", true},
		{"objstore/providers/a.go", "github.com/thanos-io/objstore/client", false},
		{"runtime/exec/a_test.go", "github.com/thanos-io/objstore", true},

		{"runtime/vfs/vfstest/a.go", "testing", false},
		{"runtime/vfs/a.go", "testing", true},
		{"runtime/vfs/a_test.go", own("runtime/vfs/vfstest"), false},
		{"runtime/vfs/a.go", own("runtime/vfs/vfstest"), true},
	} {
		text := "package p\n\nimport _ \"" + c.imports + "\"\n"
		got := Imports(parse(t, source{c.path, text}))
		if (len(got) > 0) != c.wrong {
			t.Errorf("%s imports %s: got %v, wrong should be %v", c.path, c.imports, got, c.wrong)
		}
	}
}

// TestLayersStand makes sure that the table itself breaks nothing: what a unit may import has a row
// above its own, so that there is no cycle.
func TestLayersStand(t *testing.T) {
	t.Parallel()
	above := map[string]bool{}
	for _, u := range layers {
		for _, m := range u.may {
			if m != "*" && m != "internal/tidy" && !above[m] {
				t.Errorf("%s may import %s, which does not stand above it", u.dir, m)
			}
		}
		above[u.dir] = true
	}
}

func TestBans(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, path, text string
		want             []string
	}{
		{"clock", "runtime/exec/a.go", "import \"time\"\nvar now = time.Now",
			[]string{":3: clock"}},
		{"clock by another name", "runtime/exec/a.go", "import t \"time\"\nvar now = t.Since",
			[]string{":3: clock"}},
		{"clock of the daemon", "runtime/daemon/a.go", "import \"time\"\nvar now = time.Now", nil},
		{"clock in a test", "runtime/exec/a_test.go", "import \"time\"\nvar now = time.Now", nil},
		{"no clock", "runtime/exec/a.go", "import \"time\"\nvar t = time.Unix(0, 0)", nil},
		{"timer", "objstore/a.go", "import \"time\"\nvar t = time.NewTimer", []string{":3: clock"}},
		{"timer of retry", "objstore/retry/a.go", "import \"time\"\nvar t = time.NewTimer", nil},
		{"clock of retry", "objstore/retry/a.go", "import \"time\"\nvar t = time.Now",
			[]string{":3: clock"}},
		{"random", "objstore/retry/a.go", "import \"math/rand/v2\"\nvar n = rand.IntN(3)",
			[]string{":3: random"}},
		{"seeded", "sim/a.go", "import \"math/rand/v2\"\nvar r = rand.New(rand.NewPCG(1, 2))", nil},
		{"go", "runtime/exec/a.go", "func f() { go f() }", []string{":2: goroutine"}},
		{"hidden go", "runtime/exec/a.go", "import \"sync\"\nfunc f(w *sync.WaitGroup) { w.Go(g) }",
			[]string{":3: goroutine"}},
		{"go of the daemon", "runtime/daemon/a.go", "func f() { go f() }", nil},
		{"go in a test", "runtime/exec/a_test.go", "func f() { go f() }", nil},
		{"init", "runtime/config/a.go", "func init() {}", []string{":2: init"}},
		{"init of a guest", "runtime/plugin/sdk/go/a.go", "func init() {}", nil},
		{"no init", "runtime/config/a.go", "func (x T) init() {}", nil},
		{"exit", "runtime/daemon/a.go", "import \"os\"\nfunc f() { os.Exit(1) }",
			[]string{":3: exit"}},
		{"print", "runtime/daemon/a.go", "import \"fmt\"\nfunc f() { fmt.Println() }",
			[]string{":3: print"}},
		{"log", "runtime/audit/a.go", "import \"log/slog\"\nvar l slog.Logger",
			[]string{":3: print"}},
		{"log of the daemon", "runtime/daemon/a.go", "import \"log/slog\"\nvar l slog.Logger", nil},

		{"os in tier", "runtime/tier/a.go", "import _ \"os\"", []string{":2: pure"}},
		{"os/exec in gate", "policies/gate/a.go", "import _ \"os/exec\"", []string{":2: pure"}},
		{"os in the ledger", "offsets/a.go", "import _ \"os\"", []string{":2: pure"}},
		{"os in its medium", "offsets/bolt.go", "import _ \"os\"", nil},
		{"os in its test", "offsets/a_test.go", "import _ \"os\"", nil},
		{"os in the suite", "offsets/offsetstest/a.go", "import _ \"os\"", nil},
		{"os elsewhere", "runtime/config/a.go", "import _ \"os\"", nil},
		{"context in the engine", "runtime/engine/a.go", "import _ \"context\"",
			[]string{":2: pure"}},
		{"context in the gate", "policies/gate/a.go", "import _ \"context\"", nil},
		{"deadline in the gate", "policies/gate/a.go",
			"import \"context\"\nvar f = context.WithTimeout", []string{":3: clock"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var want []string
			for _, w := range c.want {
				want = append(want, c.path+w)
			}
			expect(t, Bans(parse(t, source{c.path, "package p\n" + c.text + "\n"})), want...)
		})
	}
}

// TestMapOrder type-checks a synthetic file by itself; the real loading is the tree's own test.
func TestMapOrder(t *testing.T) {
	t.Parallel()
	const text = `package p

import (
	"maps"
	"slices"
)

type names map[string]int

func f(m names, s []int, ch chan int) (n int) {
	for k := range m {
		n += m[k]
	}
	for range m {
		n++
	}
	for _, x := range s {
		n += x
	}
	//tidy:ordered a sum
	for _, v := range m {
		n += v
	}
	for _, v := range m { //tidy:ordered a sum
		n += v
	}
	for k := range maps.Keys(m) {
		n += m[k]
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		n += m[k]
	}
	return n
}

func g[M ~map[string]int](m M) (n int) {
	for _, v := range m {
		n = v
	}
	return n
}
`
	f := parse(t, source{"runtime/engine/a.go", text})[0]
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{},
		Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(f.fset, "source", nil)}
	if _, err := conf.Check("p", f.fset, []*ast.File{f.Syntax}, info); err != nil {
		t.Fatal(err)
	}
	expect(t, unordered(f, f.fset, f.Syntax, info), "runtime/engine/a.go:11: ordered",
		"runtime/engine/a.go:27: ordered", "runtime/engine/a.go:37: ordered")
	expect(t, Markers([]*File{f}))
}

func TestShape(t *testing.T) {
	t.Parallel()
	long := func(lines int) string {
		return "package p\n\nfunc f() {\n" + strings.Repeat("\tf()\n", lines-2) + "}\n"
	}
	for _, c := range []struct {
		name, path, text string
		want             []string
	}{
		{"100 columns", "p/a.go", "package p\n\n// " + strings.Repeat("é", 97) + "\n", nil},
		{"101 columns", "p/a.go", "package p\n\n// " + strings.Repeat("é", 98) + "\n",
			[]string{"p/a.go:3: width"}},
		{"a tab", "p/a.go", "package p\n\nvar (\n\t// " + strings.Repeat("x", 97) + "\n)\n",
			[]string{"p/a.go:4: width"}},
		{"a tag", "p/a.go", "package p\n\ntype t struct {\n\tA int `help:\"" +
			strings.Repeat("x", 99) + "\"`\n}\n", nil},
		{"70 lines", "p/a.go", long(70), nil},
		{"71 lines", "p/a.go", long(71), []string{"p/a.go:3: length"}},
		{"130 lines of a test", "p/a_test.go", long(130), nil},
		{"131 lines of a test", "p/a_test.go", long(131), []string{"p/a_test.go:3: length"}},
		{"800 lines", "p/a.go", "package p\n" + strings.Repeat("\n", 799), nil},
		{"801 lines", "p/a.go", "package p\n" + strings.Repeat("\n", 800),
			[]string{"p/a.go:0: length"}},
		{"work left", "p/a_test.go", "package p\n\n// TO" + "DO: more\n",
			[]string{"p/a_test.go:3: words"}},
		{"no work left", "p/a.go", "package p\n\n// TODOS is a name.\n", nil},
		{"a torn line", "p/a.go", "package p\n\n// A sentence that goes\n// on here.\n",
			[]string{"p/a.go:3: torn"}},
		{"the end of a sentence", "p/a.go", "package p\n\n// One sentence.\n// Another one.\n", nil},
		{"a list", "p/a.go", "package p\n\n// Two things\n// - one\n", nil},
		{"a word too long", "p/a.go", "package p\n\n// Read\n// " + strings.Repeat("x", 80) + "\n", nil},
		{"apology", "p/a.go", "package p\n\nconst s = \"Failed to put\"\n",
			[]string{"p/a.go:3: words"}},
		{"generated", "p/a.go", "// Code generated by x. DO NOT EDIT.\npackage p\n\n// " +
			strings.Repeat("x", 200) + "\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			expect(t, Shape(parse(t, source{c.path, c.text})), c.want...)
		})
	}
}

func TestDocs(t *testing.T) {
	t.Parallel()
	const text = `package p

type T int

// U has one.
type U int

func (T) M() {}

func (T) String() string { return "" }

// Base returns one.
func (T) Base() int { return 1 }
func (T) Next() int { return 2 }

func (T) Late() int { return 3 }

func (t) M() {}

func F() {}

func f() {}

var V int

// The constants.
const (
	A = 1
	B = 2
)

const (
	C = 1 // with one
	D = 2
)
`
	at := func(lines ...string) (out []string) {
		for _, l := range lines {
			out = append(out, "p/a.go:"+l+": docs")
		}
		return out
	}
	expect(t, Docs(parse(t, source{"p/a.go", text})),
		at("0", "3", "8", "16", "20", "24", "34")...)
	expect(t, Docs(parse(t, source{"p/a.go", "package p\n"},
		source{"p/doc.go", "// Package p has a comment.\npackage p\n"})))
	expect(t, Docs(parse(t, source{"p/a.go", "package p\n"},
		source{"p/a_test.go", "// Package p_test has a comment.\npackage p_test\n"})),
		"p/a.go:0: docs")
}

func TestTests(t *testing.T) {
	t.Parallel()
	const text = `package p

import (
	"testing"
	"time"
)

func TestA(t *testing.T) {
	t.Parallel()
	time.Sleep(1)
	t.Skip("no")
	t.Skipf("no") //tidy:skip needs a second machine
}

func TestB(t *testing.T) {
	t.Run("x", func(t *testing.T) { t.Parallel() })
}

//tidy:parallel the first of all
func TestC(t *testing.T) {}

func TestD(t *testing.T) { t.Setenv("a", "b") }

func TestE(t *testing.T) { println(testing.AllocsPerRun(1, func() {})) }

func Testify(t *testing.T) {}
func TestMain(m *testing.M) {}
func helper(t *testing.T) {}
`
	files := parse(t, source{"p/a_test.go", text})
	expect(t, Tests(files),
		"p/a_test.go:10: sleep", "p/a_test.go:11: skip", "p/a_test.go:15: parallel")
	expect(t, Markers(files))
	expect(t, Tests(parse(t, source{"p/a.go", strings.ReplaceAll(text, "//tidy:", "// ")})))
	expect(t, Tests(parse(t, source{"p/ptest/suite.go",
		"package ptest\n\nimport \"time\"\n\nfunc F() { time.Sleep(1) }\n"})),
		"p/ptest/suite.go:5: sleep")
}

func TestMarkers(t *testing.T) {
	t.Parallel()
	files := parse(t, source{"p/a_test.go", `package p

import "testing"

func TestA(t *testing.T) {
	t.Parallel()
	t.Skip() //tidy:skip
	//tidy:ordered nothing is ranged over here
}
`})
	expect(t, Tests(files), "p/a_test.go:7: skip")
	expect(t, Markers(files), "p/a_test.go:7: marker", "p/a_test.go:8: marker")
}

func TestTestdata(t *testing.T) {
	t.Parallel()
	file := &fstest.MapFile{Data: []byte("x")}
	tree := fstest.MapFS{
		"Makefile":                   {Data: []byte("demo:\n\tcat testdata/demo.txt\n")},
		"testdata/demo.txt":          file,
		"testdata/README.md":         file,
		"testdata/kafka/log":         file,
		"testdata/obsolete/log":      file,
		"p/testdata/named.txt":       file,
		"p/testdata/dead.txt":        file,
		"p/testdata/all.json":        file,
		"p/testdata/a-case.txt":      file,
		"p/testdata/fuzz/FuzzA/one":  file,
		"p/testdata/fuzz/FuzzB/one":  file,
		".git/testdata/dead":         file,
		"q/testdata/elsewhere.txt":   file,
		"q/testdata/deep/testdata/x": file,
	}
	files := parse(t,
		source{"p/a_test.go", `package p
			const a, b, c = "testdata/named.txt", "testdata/*.json", "../testdata/kafka"
			const dead, name = "a dead.tx", "a case"
			func FuzzA() {}`},
		source{"p/q/b_test.go", `package q
			const deep = "../../q/testdata/elsewhere.txt"`},
		source{"q/c_test.go", `package q
			var c = open("deep")
			// dead.txt elsewhere.txt`})
	got, err := Testdata(tree, files)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, got, "p/testdata/dead.txt:0: testdata", "p/testdata/fuzz/FuzzB:0: testdata",
		"q/testdata/elsewhere.txt:0: testdata", "testdata/obsolete:0: testdata")
}

func TestLoad(t *testing.T) {
	t.Parallel()
	ok := &fstest.MapFile{Data: []byte("package p\n")}
	bad := &fstest.MapFile{Data: []byte("package\n")}
	files, err := Load(fstest.MapFS{"b/b.go": ok, "a.go": ok, "a.txt": bad, "b/testdata/x.go": bad,
		".git/x.go": bad, "_x/x.go": bad, "b/.x.go": bad})
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	if want := []string{"a.go", "b/b.go"}; !slices.Equal(paths, want) {
		t.Errorf("got %v, want %v", paths, want)
	}
	if _, err := Load(fstest.MapFS{"b/b.go": bad}); err == nil {
		t.Error("a file that is no Go was loaded")
	}
}
