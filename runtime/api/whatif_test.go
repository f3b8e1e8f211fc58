package api_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/tier"
)

// Compare implements api.Backend.
func (f *fake) Compare(_ context.Context, q *api.WhatIf) (*api.Plan, error) {
	f.asked = append(f.asked, "compare "+jsonOf(q))
	return fullComparison(), f.err
}

func fullComparison() *api.Plan {
	p := fullPlan()
	hold := api.ReasonOf(tier.Reason{Code: "legal-hold", Text: "held for case 1",
		Rule: "hold.rego:10", Title: "Holds"}, false)
	p.Against = &api.Comparison{At: at(1), PolicyDigest: "ef56", Digest: "ab78",
		Totals: []api.PlannedTotal{
			{Table: "payroll", Action: tier.DeleteLocal, Segments: 1, Bytes: 512}},
		Differences: []api.PlannedDifference{
			{Table: "orders", Action: tier.DeleteLocal, MoreSegments: 1, MoreBytes: 1024,
				Rules: []api.PlannedRule{{Verdict: api.Delete, Code: tier.CodeLocalTTL,
					Rule: ptr("tierd/builtin.rego:23"), Segments: 1, Bytes: 1024}}},
			{Table: "payroll", Action: tier.DeleteLocal, LessSegments: 1, LessBytes: 512,
				Rules: []api.PlannedRule{{Verdict: api.Keep, Code: hold.Code, Rule: hold.Rule,
					Title: hold.Title, Segments: 1, Bytes: 512}}}},
		More: p.Deletions,
		Less: []api.PlannedDeletion{{Log: "payroll/0", Action: tier.DeleteLocal, Base: 0, Next: 5,
			Bytes: 512, Reasons: []api.Reason{hold}}},
	}
	return p
}

// TestCompare: the question arrives as it was asked, and the answer as it was given.
func TestCompare(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	if err := api.Encode(&got, fullComparison()); err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("testdata", "compare.json"), got.Bytes())
	f := &fake{}
	c := serve(t, f)
	q := &api.WhatIf{At: at(30), Policies: &api.Policies{
		Modules: []api.PolicyModule{{Path: "hold.rego", Source: "package tierd.hold\n<&>"}},
		Data:    map[string]any{"big": 9007199254740993}}}
	same(t, "compare", fullComparison())(c.Compare(t.Context(), q))
	same(t, "nothing else", fullComparison())(c.Compare(t.Context(), &api.WhatIf{}))
	want := "compare " + jsonOf(q) + "\ncompare " + jsonOf(&api.WhatIf{})
	if got := strings.Join(f.asked, "\n"); got != want {
		t.Errorf("the backend was asked\n%s\nwant\n%s", got, want)
	}
	for body, text := range map[string]string{
		"":                       "EOF",
		"{":                      "EOF",
		"[]":                     "cannot unmarshal",
		"{} {}":                  "more than one JSON value",
		`{"at": "soon"}`:         "instant",
		`{"polices": {}}`:        "unknown field",
		`{"policies": {"x": 1}}`: "unknown field",
	} {
		w := httptest.NewRecorder()
		api.Handler(&fake{}, http.NotFoundHandler()).ServeHTTP(w,
			httptest.NewRequest("POST", "/api/v1/plan/compare", strings.NewReader(body)))
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), text) {
			t.Errorf("%q: %d %s; want %s", body, w.Code, w.Body, text)
		}
	}
}
