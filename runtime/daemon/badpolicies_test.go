package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/tier"
)

const heldConfig = siteConfig + `
policies: {paths: [policies], data: [holds.yaml]}
`

const heldPolicy = `package tierd.hold

deny contains "held" if held

held if input.table.name in data.holds
`

// TestBadPoliciesAreNotLoaded: whatever is wrong with policies and data is told with its place, the
// generation that runs stays in force, and nothing is deleted on its account.
func TestBadPoliciesAreNotLoaded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := os.Mkdir(filepath.Join(s.dir, "policies"), 0o700); err != nil {
		t.Fatal(err)
	}
	good := func() {
		s.configure(heldConfig)
		s.put("policies/hold.rego", heldPolicy)
		s.put("holds.yaml", "holds: [orders]\n")
	}
	good()
	s.segments("orders/0", 3)
	r := s.run(s.options())
	s.until("the segments are copied and held", func() bool {
		st, err := r.Status(t.Context())
		if err != nil || len(st.Logs) != 1 {
			return false
		}
		for _, why := range st.Logs[0].Reasons {
			if why.Code == tier.CodeDenied {
				return true
			}
		}
		return false
	})
	for name, c := range map[string]struct{ file, content, want string }{
		"does not parse": {"policies/x.rego", "package tierd.x\n\ndeny contains \"x\" if {\n",
			"policies/x.rego:4:1: unexpected eof token (deny contains \"x\" if {)"},
		"types": {"policies/x.rego", "package tierd.x\n\n" +
			"deny contains \"x\" if startswith(input.segment.base, \"x\")\n",
			"policies/x.rego:3:22: startswith: invalid argument(s) (have: (number, string); " +
				"want: (search: string, base: string, result: boolean))"},
		"unknown field": {"policies/x.rego", "package tierd.x\n\n" +
			"deny contains \"x\" if input.segment.agee_ns > 5\n",
			"policies/x.rego:3:22: input.segment has no field \"agee_ns\"; did you mean \"age_ns\"?"},
		"recursion": {"policies/x.rego", "package tierd.x\n\ndeny contains x if some x in deny\n",
			"policies/x.rego:3:1: rule data.tierd.x.deny is recursive: " +
				"data.tierd.x.deny -> data.tierd.x.deny"},
		"a number for a reason": {"policies/x.rego", "package tierd.x\n\ndeny contains 7 if true\n",
			"policies/x.rego:3:15: deny: a reason is a string or {\"msg\": ..., \"code\": ...}, not 7"},
		"a near miss": {"policies/x.rego", "package tierd.x\n\ndenny contains \"x\" if true\n",
			"policies/x.rego:3:1: nothing asks for denny, and it decides nothing; did you mean " +
				"`deny contains reason if { ... }`?"},
		"a package twice": {"policies/x.rego", "package tierd.hold\n\n" +
			"held if input.table.name == \"clicks\"\n",
			"policies/x.rego:3:1: held stands in policies/hold.rego:5 too, in the same package, " +
				"and both would count: give one package another name, or the rule one place"},
		"missing": {"tierd.yaml", strings.Replace(heldConfig, "policies]", "nowhere]", 1),
			"tierd.yaml:9:20: policies.paths: open nowhere: no such file or directory"},
		"an empty directory": {"tierd.yaml", strings.Replace(heldConfig, "paths: [policies]",
			"paths: [bucket]", 1), "tierd.yaml:9:20: policies.paths: bucket holds no .rego file; " +
			"add one, or remove the entry"},
		"data that are no document": {"holds.yaml", "- orders\n",
			"holds.yaml:1: the document is no mapping; want one document of keys and values"},
		"data that were cut off": {"holds.yaml", "",
			"holds.yaml: the file is empty; want one document of keys and values"},
		"a text for a list": {"holds.yaml", "holds: orders\n",
			"policies/hold.rego:5:29: data.holds is a string in the data that was loaded, where " +
				"nothing is found by key, so the rule would silently be undefined; make it a list " +
				"or an object"},
		"data without the key": {"holds.yaml", "held: [orders]\n",
			"policies/hold.rego:5:29: data.holds is not in the data that was loaded, so the rule " +
				"would silently be undefined; where that is meant, use object.get with a default"},
	} {
		s.put(c.file, c.content)
		err := r.reload("")
		got := ""
		if err != nil {
			got = strings.ReplaceAll(err.Error(), s.dir+"/", "")
		}
		st, serr := r.Status(t.Context())
		if serr != nil {
			t.Fatal(serr)
		}
		if got != c.want || api.CodeOf(err) != api.CodeConfig {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
		if st.Generation.Number != 1 || st.Generation.Error == nil {
			t.Errorf("%s: generation %+v", name, st.Generation)
		}
		if c.file == "policies/x.rego" {
			if err := os.Remove(filepath.Join(s.dir, c.file)); err != nil {
				t.Fatal(err)
			}
		}
		good()
	}
	if n := s.local("orders/0"); n != 4 {
		t.Errorf("%d segments are local, want all 4", n)
	}
}
