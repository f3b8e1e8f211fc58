package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/tier"
)

const frozenConfig = siteConfig + `
policies: {paths: [frozen.rego]}
facts: [{name: frozen, path: frozen.json, max_age: 1h}]
`

const frozenPolicy = `package tierd.frozen

deny contains "frozen" if input.table.name in input.facts.frozen
`

// put replaces a file of the site as a whole.
func (s *site) put(name, content string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	err := os.WriteFile(path+".new", []byte(content), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestFacts: facts count without a reload, and while one is not known what depends on it stays,
// with an alarm.
func TestFacts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.configure(frozenConfig)
	s.put("frozen.rego", frozenPolicy)
	s.segments("orders/0", 3)
	r := s.run(s.options())
	waits := func(code tier.Code) func() bool {
		return func() bool {
			st, err := r.Status(t.Context())
			if err != nil || len(st.Logs) != 1 {
				return false
			}
			for _, why := range st.Logs[0].Reasons {
				if why.Code == code {
					return s.local("orders/0") == 4
				}
			}
			return false
		}
	}
	alarmed := func() bool {
		st, err := r.Status(t.Context())
		return err == nil && len(st.Reasons) == 1 && st.Reasons[0].Alarm &&
			st.Reasons[0].Code == tier.CodeFactUnknown &&
			strings.HasPrefix(st.Reasons[0].Text, "the fact frozen is not known: ")
	}
	s.until("the missing fact keeps", waits(tier.CodeFactUnknown))
	if !alarmed() {
		t.Error("status has no alarm about the missing fact")
	}
	s.put("frozen.json", `["orders"]`)
	s.until("the fact denies", waits(tier.CodeDenied))
	if alarmed() {
		t.Error("status still has the alarm")
	}
	s.put("frozen.json", `["ord`)
	s.until("the cut off fact keeps", waits(tier.CodeFactUnknown))
	s.until("the alarm", alarmed)
	s.put("frozen.json", `[]`)
	s.until("nothing is frozen any more", func() bool { return s.local("orders/0") == 1 })
	log := s.log.String()
	for _, want := range []string{"a fact is not known", "the fact is known again"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not tell that %s", want)
		}
	}
}

// TestUnknownFactOnce: a run with an end tells of the fact, and of the segment that it keeps.
func TestUnknownFactOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.configure(frozenConfig)
	s.put("frozen.rego", frozenPolicy)
	s.segments("orders/0", 1)
	for _, fact := range []string{"", "[null]", "null", "[\"payroll\""} {
		if fact != "" {
			s.put("frozen.json", fact)
		}
		r, err := s.once(s.options())
		if err != nil || r.DeletedSegments != 0 || len(r.Alarms) != 1 ||
			r.Alarms[0].Reason.Code != tier.CodeFactUnknown {
			t.Fatalf("with the fact %q: %+v, %v", fact, r, err)
		}
	}
	b, done, err := Snapshot(t.Context(), s.options())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = done() }()
	id := tier.LogID{Table: "orders", Name: "0"}
	in, err := b.PolicyInput(t.Context(), id, 0, "")
	if err != nil || len(in.UnknownFacts) != 1 || in.UnknownFacts[0].Name != "frozen" {
		t.Errorf("%+v, %v", in, err)
	}
	x, err := b.Explain(t.Context(), id, 0)
	if err != nil || len(x.Decisions) == 0 || x.Decisions[0].Verdict != api.Keep ||
		x.Decisions[0].Reasons[0].Code != tier.CodeFactUnknown {
		t.Errorf("%+v, %v", x, err)
	}
}

// TestFactNamesAreChecked: a policy that asks for a fact that nobody configured is not loaded.
func TestFactNamesAreChecked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.configure(siteConfig + "policies: {paths: [frozen.rego]}\n")
	s.put("frozen.rego", frozenPolicy)
	_, err := s.once(s.options())
	if err == nil || !strings.Contains(err.Error(),
		`frozen.rego:3:47: input.facts has no field "frozen"; the configuration has no facts`) {
		t.Errorf("%v", err)
	}
}

// TestExpireRemote: a policy may ask for remote segments to go before their TTL.
func TestExpireRemote(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.configure(siteConfig + "policies: {paths: [old.rego]}\n")
	s.put("old.rego", "package tierd.old\n\n"+
		"expire_remote contains \"old\" if input.segment.next <= 20\n")
	s.segments("orders/0", 3)
	for range 2 { // the first may ask before the oldest copy is finished, and then waits
		if _, err := s.once(s.options()); err != nil {
			t.Fatal(err)
		}
	}
	b, done, err := Snapshot(t.Context(), s.options())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = done() }()
	st, err := b.Status(t.Context())
	if err != nil || st.Logs[0].Remote.Start != 20 || *st.Logs[0].LogStart != 20 {
		t.Errorf("%+v, %v", st.Logs, err)
	}
}
