package config

import (
	"fmt"
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
		"two.yaml": "a: 1\n---\nb: 2\n", "nothing.json": "",
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
		{"p", "list.yaml", "list.yaml:1: got a list; want one document of keys and values"},
		{"p", "bad.yaml", "bad.yaml:1: did not find expected node content; " +
			"want one document of keys and values"},
		{"p", "large.yaml", "large.yaml: policies: large.yaml is larger than 4MiB"},
		{"p", "two.yaml", "two.yaml:2: a second document starts here; " +
			"want one document of keys and values"},
		{"p", "nothing.json", "nothing.json: the file is empty; want one document of keys and values"},
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

func names(list []Text) (out []string) {
	for _, f := range list {
		out = append(out, f.Path)
	}
	return out
}
