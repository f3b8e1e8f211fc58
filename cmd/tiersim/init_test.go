package main

import (
	"fmt"
	"testing"

	"github.com/tierd/tierd/policies/rego"
)

// TestPropertiesOfANewProject: what is local and below the start of its log, as where a leader
// changed after its copies expired, is nobody's last copy; and a message gives whole seconds.
func TestPropertiesOfANewProject(t *testing.T) {
	t.Parallel()
	text, err := project.ReadFile("project/policies/intent.rego")
	if err != nil {
		t.Fatal(err)
	}
	p, err := rego.LoadPromises([]rego.Module{{Path: "intent.rego", Source: text}},
		map[string]any{"holds": map[string]any{}}, rego.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const second, day = 1_000_000_000, 24 * 60 * 60 * 1_000_000_000
	const goes = "the last copy of x/0 goes 86400 seconds after it was written"
	for _, c := range []struct {
		action string
		final  bool
		age    int64
		want   string
	}{
		{"delete_remote", true, day + second/2, goes},
		{"disable_delete", true, day, goes},
		{"delete_remote", true, 30 * day, ""},
		{"delete_remote", false, day, ""},
		{"delete_local", true, day, ""},
	} {
		got, err := p.Judge(t.Context(), 100*day, fmt.Appendf(nil, `{"action": %q, "final": %t,
			"table": {"name": "x"}, "log": {"id": "x/0"}, "segment": {"age_ns": %d}, "history": []}`,
			c.action, c.final, c.age))
		if err != nil || len(got) > 1 || len(got) == 1 != (c.want != "") ||
			len(got) == 1 && got[0].Text != c.want {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
}
