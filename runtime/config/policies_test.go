package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// TestLoadPolicies: a directory gives its policies and its data; what gives nothing is a problem.
func TestLoadPolicies(t *testing.T) {
	t.Parallel()
	m := newMachine()
	for name, content := range map[string]string{
		"p/hold.rego": "package tierd.hold", "p/hold_test.rego": "package tierd.hold_test",
		"p/sub/disk.rego": "package tierd.disk", "p/sub/holds.yaml": "holds: [a]",
		"p/.git/x.rego": "no", "p/README.md": "no", "more.json": `{"limits": {"x": 1}}`,
		"again.yml": "holds: [b]", "list.yaml": "- a", "bad.yaml": "a: [", "empty/README.md": "no",
		"data/a.yaml": "a: 1", "large.yaml": "a: " + strings.Repeat("x", fileBytesMax),
		"many.yaml": "a:\n  - .nan\n",
		"two.yaml":  "a: 1\n---\nb: 2\n", "nothing.json": "", "ours.yaml": "a: 1\ntierd: {}\n",
	} {
		m.files[name] = &fstest.MapFile{Data: []byte(content)}
	}
	for _, c := range []struct{ paths, data, want string }{
		{"p", "more.json", "[p/hold.rego p/hold_test.rego p/sub/disk.rego] " +
			"[more.json p/sub/holds.yaml] map[holds:[a] limits:map[x:1]]"},
		{"p/hold.rego p/hold.rego", "", "[p/hold.rego] [] map[]"},
		{"more.json", "data", "[] [data/a.yaml more.json] map[a:1 limits:map[x:1]]"},
		{"", "", "[] [] map[]"},
		{"nowhere", "", "nowhere: policies: open nowhere: file does not exist"},
		{"empty", "", "empty: policies: no policy is here; " +
			"name *.rego files, or directories of them"},
		{"", "empty", "empty: data: no data is here; " +
			"name .yaml, .yml or .json files, or directories of them"},
		{"p again.yml", "", `p/sub/holds.yaml:1:1: the key "holds" stands in again.yml already; ` +
			"keep one of them"},
		{"p", "list.yaml", "list.yaml:1: the document is no mapping; want one document of keys and " +
			"values"},
		{"p", "bad.yaml", "bad.yaml:1: no YAML: did not find expected node content; " +
			"want one document of keys and values"},
		{"p", "large.yaml", "large.yaml: policies: large.yaml is larger than 4MiB"},
		{"p", "two.yaml", "two.yaml:2:1: a second document starts here; " +
			"want one document of keys and values"},
		{"p", "ours.yaml", `ours.yaml:2:1: the key "tierd" belongs to the policies: data.tierd is ` +
			"theirs; give it another name"},
		{"p", "nothing.json", "nothing.json:1:1: the JSON ends too early; want one document of keys " +
			"and values"},
		{"p", "many.yaml", "many.yaml:2:5: .nan is no number in JSON; write it in quotes"},
	} {
		g, err := LoadPolicies(strings.Fields(c.paths), strings.Fields(c.data), m.host())
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprint(names(g.Policies), names(g.Data), g.Document)
		}
		if got != c.want {
			t.Errorf("%q with data %q:\n got %s\nwant %s", c.paths, c.data, got, c.want)
		}
	}
}

// TestPoliciesInForce: an entry of policies.paths that gives only tests is refused; a link to a
// directory is followed, and one in a circle is refused, as is what looks like a policy in force.
func TestPoliciesInForce(t *testing.T) {
	t.Parallel()
	const hold = "package tierd.hold\n"
	for _, c := range []struct{ name, file, link, to, entry, want string }{
		{"tests", "policies/a_test.rego", "", "", "policies",
			"policies holds only tests (*_test.rego), which decide nothing"},
		{"a test", "policies/a_test.rego", "", "", "policies/a_test.rego",
			"a_test.rego holds only tests (*_test.rego), which decide nothing"},
		{"link", "real/a.rego", "policies/teams", "../real", "policies", ""},
		{"upper case", "policies/a.rego", "policies/b.Rego", "a.rego", "policies",
			"b.Rego is passed over: only names that end in .rego count; rename it, or remove it"},
		{"circle", "policies/a.rego", "policies/b", ".", "policies", "is nested deeper than 16"},
	} {
		dir := t.TempDir()
		for _, sub := range []string{"policies", "real", "wal"} {
			mustDo(t, os.Mkdir(filepath.Join(dir, sub), 0o755))
		}
		mustDo(t, os.WriteFile(filepath.Join(dir, c.file), []byte(hold), 0o644))
		if c.link != "" {
			mustDo(t, os.Symlink(c.to, filepath.Join(dir, c.link)))
		}
		path := filepath.Join(dir, "tierd.yaml")
		mustDo(t, os.WriteFile(path, []byte("sources: [{name: w, layout: plain, path: wal}]\n"+
			"bucket: {type: FILESYSTEM, config: {directory: bucket}}\n"+
			"policies: {paths: ["+c.entry+"]}\n"), 0o644))
		g, err := LoadGeneration(path, OS())
		switch {
		case c.want == "" && (err != nil || len(g.Policies) != 1):
			t.Errorf("%s: %v, %v", c.name, g, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func names(list []Text) (out []string) {
	for _, f := range list {
		out = append(out, f.Path)
	}
	return out
}
