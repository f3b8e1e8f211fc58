package daemon

import (
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/tier"
)

const whatIfHold = `package tierd.hold

deny contains "held" if input.table.name == "orders"
`

const whatIfGreedy = `package tierd.greedy

expire contains "local" if true

expire_remote contains "remote" if input.segment.next <= 20
`

// compare asks a running daemon.
func compare(t *testing.T, b api.Backend, q *api.WhatIf) *api.Plan {
	t.Helper()
	p, err := b.Compare(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if p.Against == nil {
		t.Fatal("there is nothing beside it")
	}
	return p
}

func ask(modules ...string) *api.Policies {
	p := &api.Policies{}
	for i := 0; i+1 < len(modules); i += 2 {
		p.Modules = append(p.Modules, api.PolicyModule{Path: modules[i], Source: modules[i+1]})
	}
	return p
}

// TestCompare: a running daemon says what other policies and a later moment would delete, of what
// is there now, and deletes nothing for it.
func TestCompare(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.configure(strings.Replace(siteConfig, "local-ttl: 1h", "local-ttl: 6h", 1))
	s.segments("orders/0", 3)
	s.segments("clicks/0", 3)
	r := s.run(s.options())
	s.until("all is copied", func() bool {
		st, err := r.Status(t.Context())
		return err == nil && len(st.Logs) == 2 && st.Logs[0].Remote.Segments == 3 &&
			st.Logs[1].Remote.Segments == 3
	})
	now := tier.TimeOf(time.Now())

	same := compare(t, r, &api.WhatIf{Policies: ask("hold.rego", whatIfHold)})
	if len(same.Against.Differences)+len(same.Deletions) > 0 || same.Digest != same.Against.Digest ||
		same.PolicyDigest == same.Against.PolicyDigest {
		t.Errorf("a hold where nothing goes: %+v", same)
	}

	later := compare(t, r, &api.WhatIf{At: api.Time(now.Add(5 * time.Hour))})
	if d := later.Against.Differences; len(d) != 2 || d[0].Table != "clicks" ||
		d[0].MoreSegments != 3 || d[0].MoreBytes != 96 || d[0].LessSegments != 0 ||
		len(d[0].Rules) != 1 || text(d[0].Rules[0].Rule) != "tierd/builtin.rego:19" ||
		d[0].Rules[0].Verdict != api.Delete || d[0].Rules[0].Bytes != 96 {
		t.Errorf("in five hours: %+v", d)
	}

	both := compare(t, r, &api.WhatIf{At: api.Time(now.Add(5 * time.Hour)),
		Policies: ask("hold.rego", whatIfHold, "greedy.rego", whatIfGreedy)})
	if got := totals(both.Deletions); got != "clicks/0 delete_local 3, clicks/0 delete_remote 2" {
		t.Errorf("with a hold, in five hours: %s", got)
	}
	if got := totals(both.Against.More); got != totals(both.Deletions) {
		t.Errorf("more: %s", got)
	}
	if s.local("orders/0")+s.local("clicks/0") != 8 || s.stored(".log") != 6 {
		t.Error("something was deleted")
	}

	_, err := r.Compare(t.Context(), &api.WhatIf{Policies: ask("x.rego", "package x\n")})
	if err == nil || api.CodeOf(err) != api.CodeConfig ||
		!strings.HasPrefix(err.Error(), "x.rego:1:1: ") {
		t.Errorf("a policy that is none: %v", err)
	}
	if _, err := r.Compare(t.Context(), &api.WhatIf{At: 1}); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("a moment that is over: %v", err)
	}
}

// totals counts deletions by log and action, in their order.
func totals(list []api.PlannedDeletion) string {
	var lines []string
	for i, n := 0, 0; i < len(list); i++ {
		n++
		if i+1 == len(list) || list[i+1].Log != list[i].Log || list[i+1].Action != list[i].Action {
			lines = append(lines, list[i].Log+" "+string(list[i].Action)+" "+string(rune('0'+n)))
			n = 0
		}
	}
	return strings.Join(lines, ", ")
}

// TestCompareLess: what a policy would keep is told with its rule, and what lies behind it too.
func TestCompareLess(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.segments("orders/0", 3)
	opts := s.options()
	opts.NoDelete = true
	if _, err := s.once(opts); err != nil {
		t.Fatal(err)
	}
	b, done, err := Snapshot(t.Context(), s.options())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = done() }()
	p := compare(t, b, &api.WhatIf{Policies: ask("hold.rego",
		strings.Replace(whatIfHold, "input.table.name == \"orders\"", "input.segment.base == 10", 1))})
	less := p.Against.Less
	if totals(less) != "orders/0 delete_local 2" || len(p.Against.More) > 0 {
		t.Fatalf("%+v", p.Against)
	}
	for i, want := range []string{"held", "behind [10, 20), which stays: held"} {
		if r := less[i].Reasons; len(r) != 1 || r[0].Text != want || text(r[0].Rule) != "hold.rego:3" {
			t.Errorf("%d: %+v, want %s", i, r, want)
		}
	}
	if d := p.Against.Differences; len(d) != 1 || d[0].LessSegments != 2 || d[0].LessBytes != 64 ||
		len(d[0].Rules) != 1 || d[0].Rules[0].Segments != 2 || d[0].Rules[0].Verdict != api.Keep {
		t.Errorf("%+v", d)
	}
}
