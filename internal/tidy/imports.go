package tidy

import (
	"fmt"
	"slices"
	"strings"
)

// module is the import path of the tree's root.
const module = "github.com/tierd/tierd"

// unit is a subtree with a place in the layering. A package belongs to the unit with the longest
// dir above it, and may always import its own unit.
type unit struct {
	dir string
	may []string // units that it may import; "*" is all
	// std is set where the unit has no dependency outside the standard library and this module.
	std bool
}

// The units that others are made from. Adapters never import each other: what they share is a noun
// of tier, a question to the gate, or a file system.
const (
	tierUnit = "runtime/tier"
	gateUnit = "policies/gate"
	vfsUnit  = "runtime/vfs"
	// kbatchUnit reads the headers of record batches, for whoever has their bytes.
	kbatchUnit = "runtime/logdir/kbatch"
)

// documentUnit reads the JSON and YAML that policies see, whoever read the file.
const documentUnit = "runtime/document"

// guestUnit is what plugins are written with. It runs inside them, where nothing calls main.
const guestUnit = "runtime/plugin/sdk"

// verbatimUnit reads JSON that is just as tierd writes it.
const verbatimUnit = "runtime/verbatim"

// plantedUnit names the faults that a build with a tag has, for tests of the simulator.
const plantedUnit = "runtime/planted"

func adapter(dir string, more ...string) unit {
	return unit{dir: dir, may: append([]string{tierUnit, gateUnit, vfsUnit, plantedUnit}, more...)}
}

// layers is the whole layering, from the nouns up. A package without a row is a violation, so that
// nobody enters the tree unseen.
var layers = []unit{
	{dir: tierUnit, std: true},
	{dir: plantedUnit, std: true},
	{dir: verbatimUnit, std: true},
	{dir: gateUnit, may: []string{tierUnit, plantedUnit}, std: true},
	{dir: vfsUnit, may: []string{tierUnit}},

	{dir: "policies", std: true},
	adapter("policies/rego", "policies"),
	adapter("offsets"),
	adapter("objstore", verbatimUnit),
	{dir: kbatchUnit, may: []string{tierUnit}},
	adapter("runtime/logdir", kbatchUnit),
	adapter("runtime/broker"),
	{dir: guestUnit, std: true},
	adapter("runtime/plugin"),
	adapter("runtime/audit", verbatimUnit),
	adapter("runtime/read", kbatchUnit),
	adapter("runtime/kafka", kbatchUnit),
	adapter("runtime/verify", kbatchUnit),
	// It restores what a ledger's log is to verify.
	adapter("runtime/restore", kbatchUnit, "runtime/verify"),
	{dir: documentUnit},
	{dir: "runtime/facts", may: []string{tierUnit, vfsUnit, documentUnit}},
	{dir: "runtime/config", may: []string{tierUnit, vfsUnit, documentUnit}},
	adapter("runtime/api"),

	{dir: "runtime/engine", may: []string{tierUnit, gateUnit, plantedUnit}, std: true},
	{dir: "runtime/exec", may: []string{tierUnit, gateUnit, "runtime/engine", plantedUnit}, std: true},
	{dir: "runtime/advice", may: []string{tierUnit, "runtime/engine", "runtime/plugin"}},

	adapter("runtime/rebuild", "offsets", "objstore"),
	adapter("runtime/daemon", "runtime/rebuild", "runtime/engine", "runtime/exec",
		"runtime/config", "runtime/api", "policies", "policies/rego", "offsets", "objstore",
		"runtime/logdir", "runtime/plugin", "runtime/advice", "runtime/audit", "runtime/facts",
		"runtime/broker", "runtime/read", "runtime/kafka", "runtime/verify"),
	{dir: "internal/rewind", std: true},
	adapter("sim", "runtime/rebuild", "runtime/engine", "runtime/exec", "runtime/config",
		"policies", "policies/rego", "offsets", "objstore", "runtime/logdir", kbatchUnit,
		"runtime/plugin", "runtime/advice", "runtime/audit", "runtime/read", "runtime/verify",
		"internal/rewind", verbatimUnit, documentUnit),

	// The providers' SDKs are most of the binary and of the build: only the commands link them.
	adapter("objstore/providers/filesystem", "objstore"),
	adapter("objstore/providers", "objstore", "objstore/providers/filesystem"),
	{dir: "cmd", may: []string{"*"}},

	{dir: "internal/tidy"},
	// It runs the command as a user would, on ledgers and buckets that would take years to grow.
	{dir: "internal/bench", may: []string{tierUnit, vfsUnit, "offsets", "objstore",
		"objstore/providers/filesystem"}},
	{dir: "interop"}, // and so does this, a module of its own
	{dir: ".", may: []string{"internal/tidy"}}, // the test that runs the rules
}

// closedToTests are the units that no other unit's tests may import either: a test that needs one
// of them belongs there.
var closedToTests = []string{"runtime/daemon", "sim", "objstore/providers", "cmd"}

// owners says which units alone may import a module, for modules that stand behind one seam. Of
// several that match, the longest path counts.
var owners = []struct {
	path  string
	units []string
}{
	{"github.com/tetratelabs/wazero", []string{"runtime/plugin"}},
	{"github.com/open-policy-agent/opa", []string{"policies/rego"}},
	{"go.etcd.io/bbolt", []string{"offsets"}},
	{"github.com/google/btree", []string{"offsets"}},
	{"github.com/fsnotify/fsnotify", []string{"runtime/logdir", "runtime/daemon"}},
	{"github.com/thanos-io/objstore", []string{"objstore", "objstore/providers",
		"objstore/providers/filesystem", "runtime/daemon", "sim", "cmd", "interop"}},
	{"github.com/thanos-io/objstore/client", []string{"objstore/providers", "interop"}},
	{"github.com/thanos-io/objstore/providers", []string{"objstore/providers"}},
	{"github.com/prometheus", []string{"runtime/daemon", "objstore/providers", "cmd"}},
	{"github.com/alecthomas/kong", []string{"cmd"}},
	{"github.com/vbauerster/mpb/v8", []string{"cmd"}},
}

// unitOf finds the unit of a directory.
func unitOf(dir string) (unit, bool) {
	var found unit
	ok := false
	for _, u := range layers {
		if within(dir, u.dir) && len(u.dir) > len(found.dir) {
			found, ok = u, true
		}
	}
	return found, ok
}

// Imports checks who imports whom.
func Imports(files []*File) []Violation {
	var out []Violation
	for _, f := range files {
		from, ok := unitOf(f.Dir())
		if !ok {
			text := "has no place in the layering: add a row to layers in internal/tidy"
			if f.Dir() == "runtime" {
				text = "no Go file lies directly in runtime/: give it a package below"
			}
			out = append(out, Violation{f.Path, 0, "import", text})
			continue
		}
		for _, spec := range f.Syntax.Imports {
			if text := judge(f, from, importPath(spec)); text != "" {
				out = append(out, f.at(spec, "import", "%s", text))
			}
		}
	}
	return out
}

// judge says what is wrong with an import of a file in the unit; "" if nothing is.
func judge(f *File, from unit, path string) string {
	if path == "testing" && !f.Test() {
		return "testing is for tests and for packages whose name ends in test"
	}
	if path == module || strings.HasPrefix(path, module+"/") {
		return judgeOwn(f, from, strings.TrimPrefix(strings.TrimPrefix(path, module), "/"))
	}
	if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
		return "" // the standard library
	}
	if from.std && !f.Test() {
		return fmt.Sprintf("%s imports the standard library alone", from.dir)
	}
	length, text := 0, ""
	for _, o := range owners {
		if within(path, o.path) && len(o.path) > length {
			length, text = len(o.path), ""
			if !slices.Contains(o.units, from.dir) {
				text = fmt.Sprintf("%s is imported by %s alone", o.path,
					strings.Join(o.units, ", "))
			}
		}
	}
	return text
}

func judgeOwn(f *File, from unit, dir string) string {
	to, ok := unitOf(dir)
	switch {
	case !ok:
		return fmt.Sprintf("%s has no place in the layering", dir)
	case testHelpers(dir) && !f.Test() && from.dir != "sim": // its brokers write what tests write
		return fmt.Sprintf("%s is for tests", dir)
	case to.dir == from.dir, slices.Contains(from.may, to.dir), slices.Contains(from.may, "*"):
		return ""
	case f.Test() && !slices.Contains(closedToTests, to.dir):
		return ""
	}
	return fmt.Sprintf("%s must not import %s", from.dir, to.dir)
}
