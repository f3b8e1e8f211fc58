package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/tier"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// at is a moment so many seconds into the golden files' day.
func at(seconds int) api.Time {
	return api.Time(tier.TimeOf(time.Date(2026, 3, 1, 12, 0, seconds, 0, time.UTC)))
}

func ptr[T any](v T) *T { return &v }

// fake is a Backend with fixed answers. It keeps what it was asked.
type fake struct {
	asked  []string
	err    error
	health api.Health
}

func (f *fake) Health(context.Context) (*api.Health, error) { return &f.health, f.err }

func (f *fake) Status(context.Context) (*api.Status, error) { return fullStatus(), f.err }

func (f *fake) Segments(_ context.Context, log tier.LogID) (*api.Listing, error) {
	f.asked = append(f.asked, "segments "+log.String())
	return fullListing(), f.err
}

func (f *fake) Explain(_ context.Context, log tier.LogID, o tier.Offset) (*api.Explanation, error) {
	f.asked = append(f.asked, "explain "+log.String()+"@"+jsonOf(o))
	return fullExplanation(), f.err
}

func (f *fake) PolicyInput(_ context.Context, log tier.LogID, o tier.Offset,
	action tier.Action) (*api.PolicyInput, error) {
	f.asked = append(f.asked, "policy-input "+log.String()+"@"+jsonOf(o)+" "+string(action))
	return fullPolicyInput(), f.err
}

func (f *fake) Resume(_ context.Context, table string) error {
	f.asked = append(f.asked, "resume "+table)
	return f.err
}

func (f *fake) AcceptLoss(_ context.Context, log tier.LogID, o tier.Offset,
) (*api.AcceptedLoss, error) {
	f.asked = append(f.asked, "accept-loss "+log.String()+"@"+jsonOf(o))
	return &api.AcceptedLoss{Log: log.String(), Base: 200, Next: 300}, f.err
}

func (f *fake) Plan(context.Context) (*api.Plan, error) { return fullPlan(), f.err }

func (f *fake) AcceptClock(context.Context) error {
	f.asked = append(f.asked, "clock accept")
	return f.err
}

func (f *fake) Reload(_ context.Context, accept string) (*api.Generation, error) {
	f.asked = append(f.asked, strings.TrimSpace("reload "+accept))
	return &fullStatus().Generation, f.err
}

func (f *fake) DropPlan(_ context.Context, table string) (*api.Removal, error) {
	f.asked = append(f.asked, "drop-plan "+table)
	return fullRemoval(), f.err
}

func (f *fake) Drop(_ context.Context, table, accept string) (*api.Removal, error) {
	f.asked = append(f.asked, "drop "+table+" "+accept)
	return fullRemoval(), f.err
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func fullStatus() *api.Status {
	ttl := api.ReasonOf(tier.Reason{Code: tier.CodeLocalTTL, Until: tier.Time(at(30)),
		Text: "segment [100, 220) is kept until 2026-03-01T12:00:30Z"}, false)
	return &api.Status{
		Version: "v1.2.3", LedgerID: "5f0c", Running: true, Ready: true, Now: at(1),
		StartedAt: at(0), Kafka: ptr("127.0.0.1:9192"),
		Generation: api.Generation{Number: 2, Config: "/etc/tierd/tierd.yaml", LoadedAt: at(0),
			PolicyDigest: "ab12", Plugins: []api.Plugin{{Name: "hot-first", SHA256: "ef78"}},
			Error: ptr("tierd.yaml:3:1: unknown key \"inteval\"")},
		Reasons: []api.Reason{
			api.ReasonOf(tier.Reason{Code: tier.CodePaused, Text: "a & b <c>"}, true)},
		Sources: []api.Source{
			{Name: "wal", Layout: tier.LayoutPlain, Path: "/srv/wal", Logs: 1, ScannedAt: at(1),
				LocalDelete: tier.LocalDeleteUnlink},
			{Name: "broker-1", Layout: tier.LayoutKafka, Path: "/srv/kafka", Logs: 1,
				ScannedAt: at(1), LocalDelete: tier.LocalDeleteNever},
		},
		Tables: []api.Table{
			{Table: "orders", Entry: ptr("tierd.yaml:9"), TierState: tier.Enabled, TierEpoch: 1,
				Dropped: at(0), Outstanding: api.Amount{Segments: 1, Bytes: 2},
				Paused: ptr(api.ReasonOf(tier.Reason{Code: tier.CodeBrake, Text: "paused"}, true)),
				Brake: api.Brake{Since: at(0), Segments: 3, Bytes: 300, MaxSegments: 1000,
					MaxBytes: 1 << 30, PerSeconds: 3600},
				Settings: []api.Setting{
					{Key: "table.log.ttl", Value: "30d", Origin: "tierd.yaml:9"}}},
			{Table: "db/wal", TierState: tier.Disabled},
		},
		Logs: []api.Log{
			{Log: "orders/0", Source: "broker-1", Layout: tier.LayoutKafka, TierState: tier.Enabled,
				TierEpoch: 1, LogStart: ptr(tier.Offset(0)), CopiedOffset: ptr(tier.Offset(220)),
				Local:   api.Extent{Start: 100, End: 340, Segments: 3, Bytes: 3072},
				Remote:  api.Extent{Start: 0, End: 220, Segments: 2, Bytes: 2048},
				Lag:     api.Lag{Segments: 1, Bytes: 1024, Oldest: at(0)},
				Holes:   []api.Hole{{Base: 50, Next: 60, Cause: tier.HoleSourceGone, At: at(0)}},
				Reasons: []api.Reason{ttl}},
			{Log: "db/wal/000", Source: "wal", Layout: tier.LayoutPlain, TierState: tier.Disabled},
		},
	}
}

func fullPolicyInput() *api.PolicyInput {
	return &api.PolicyInput{Log: "orders/0", Base: 100, Next: 220,
		Input:        json.RawMessage(`{"action":"delete_local","now_ns":1800000000000000001}`),
		UnknownFacts: []api.UnknownFact{{Name: "offsets", Text: "older than 10m: a & b <c>"}},
		Guard: []api.Reason{api.ReasonOf(tier.Reason{Code: tier.CodeActiveSegment,
			Text: "segment [100, 220): nothing follows it yet"}, false)}}
}

func fullRemoval() *api.Removal {
	return &api.Removal{Cause: tier.MoveDropped, Digest: "ef56-1", GraceSeconds: 600,
		Tables: []api.LeftTable{{Table: "orders", Logs: 1, Segments: 2, Bytes: 2048,
			OnlyRemote: api.Amount{Segments: 1, Bytes: 1024}}}}
}

func fullPlan() *api.Plan {
	return &api.Plan{At: at(1), PolicyDigest: "ab12", Digest: "cd34", Disablement: fullRemoval(),
		Totals: []api.PlannedTotal{
			{Table: "orders", Action: tier.DeleteLocal, Segments: 1, Bytes: 1024}},
		Deletions: []api.PlannedDeletion{{Log: "orders/0", Action: tier.DeleteLocal, Base: 100,
			Next: 220, Bytes: 1024, Reasons: []api.Reason{api.ReasonOf(tier.Reason{
				Code: tier.CodeLocalTTL, Text: "age 3h, over the local TTL of 1h",
				Rule: "tierd/builtin.rego:23"}, false)}}},
		Waiting: []api.PlannedWait{{Log: "orders/1", Action: tier.DeleteRemote, Base: 0, Next: 50,
			Reason: api.ReasonOf(tier.Reason{Code: tier.CodeTTL, Text: "age 3h of 7d",
				Until: tier.Time(at(30))}, false)}},
		CopiesTotal: api.CopiesTotal{Segments: 2, Bytes: 3072},
		Copies: []api.PlannedCopy{{Log: "orders/1", Base: 50, Next: 90, Bytes: 2048, Copying: true,
			Scores: []api.Score{{Plugin: "hot-first", Score: 7}, {Plugin: "spread", Score: -1}}},
			{Log: "clicks/0", Base: 0, Next: 5, Bytes: 1024}},
		Held: []api.HeldCopy{{Log: "clicks/1", Base: 5, Next: 9, Reason: api.ReasonOf(tier.Reason{
			Code: tier.CodeHeld, Text: "held back from copying by the plugin hot-first",
			Until: tier.Time(at(30))}, false)}},
		PluginFaults: []api.Reason{api.ReasonOf(tier.Reason{Code: tier.CodePluginFault,
			Text:  "plugin spread gave no answer (trap), the built-in order serves: unreachable",
			Until: tier.Time(at(30))}, true)},
	}
}

func fullListing() *api.Listing {
	return &api.Listing{Log: "orders/0", Segments: []api.Segment{copiedSegment(),
		{Base: 220, Next: 340, Bytes: 10, Tiers: []api.Tier{api.TierLocal},
			State: api.SegmentActive},
		{Base: 400, Next: 410, State: api.SegmentHole}}}
}

func copiedSegment() api.Segment {
	return api.Segment{Base: 100, Next: 220, Bytes: 1024, MaxTimestamp: at(0), ModTime: at(0),
		Tiers: []api.Tier{api.TierLocal, api.TierRemote}, State: api.SegmentCopied,
		SHA256: &tier.SHA256{0xab, 0xcd}, Object: ptr("5f0c/orders/0/00000000000000000100.log"),
		CopiedAt: at(1), Files: []api.SegmentFile{{Name: "00000000000000000100.log", Bytes: 1000,
			SHA256: tier.SHA256{0xab, 0xcd}}}}
}

func fullExplanation() *api.Explanation {
	return &api.Explanation{
		Log: "orders/0", Offset: 150, Segment: ptr(copiedSegment()),
		Tiers: []api.Tier{api.TierLocal, api.TierRemote}, CopiedOffset: ptr(tier.Offset(220)),
		AgeNS: ptr(int64(time.Hour)), AgeSource: ptr("record"),
		Decisions: []api.Decision{{Action: tier.DeleteLocal, Verdict: api.Keep, Due: at(30),
			Reasons: []api.Reason{api.ReasonOf(tier.Reason{Code: tier.CodeDenied,
				Text: "legal hold", Rule: "policies/hold.rego:7", Title: "Legal hold"}, false)}}},
	}
}

// TestGolden compares the JSON of every answer with testdata/*.json, and reads it back.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]any{
		"status":          fullStatus(),
		"status-table":    fullStatus().Of("orders"),
		"status-empty":    &api.Status{},
		"segments":        fullListing(),
		"segments-empty":  &api.Listing{Log: "orders/0"},
		"plan":            fullPlan(),
		"removal":         fullRemoval(),
		"explain":         fullExplanation(),
		"explain-unknown": &api.Explanation{Log: "orders/0", Offset: 7},
		"policy-input":    fullPolicyInput(),
		"accept-loss":     &api.AcceptedLoss{Log: "orders/0", Base: 200, Next: 300},
		"health":          &api.Health{Healthy: true},
		"error-on-the-wire": map[string]any{
			"error": api.Errorf(api.CodeNotFound, "no log %q", "x/0")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got bytes.Buffer
			if err := api.Encode(&got, v); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", name+".json"), got.Bytes())
			back := reflect.New(reflect.TypeOf(v).Elem())
			if reflect.TypeOf(v).Kind() == reflect.Map {
				return
			}
			if err := json.Unmarshal(got.Bytes(), back.Interface()); err != nil {
				t.Fatal(err)
			}
			var again bytes.Buffer
			if err := api.Encode(&again, back.Interface()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got.String(), again.String()); diff != "" {
				t.Errorf("read back differently:\n%s", diff)
			}
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (go test ./runtime/api -rewrite):\n%s", name, diff)
	}
}

// TestEveryPathIsDocumented looks for each request of the OpenAPI document in docs/json.md.
func TestEveryPathIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	subjects := strings.NewReplacer("{log}", "LOG", "{table}", "TABLE")
	paths := api.OpenAPI()["paths"].(map[string]any)
	if len(paths) < 10 {
		t.Fatalf("%d paths: too few to be all", len(paths))
	}
	for path, methods := range paths {
		for method := range methods.(map[string]any) {
			request := "`" + strings.ToUpper(method) + " " + subjects.Replace(path)
			if !bytes.Contains(text, []byte(request+"`")) && !bytes.Contains(text, []byte(request+"?")) {
				t.Errorf("docs/json.md says nothing of %s`", request)
			}
		}
	}
}

// TestEveryFieldIsDocumented looks for each field of the contract in docs/json.md.
func TestEveryFieldIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(x reflect.Type) {
		switch x.Kind() {
		case reflect.Pointer, reflect.Slice:
			walk(x.Elem())
		case reflect.Struct:
			if seen[x] {
				return
			}
			seen[x] = true
			for i := range x.NumField() {
				name := x.Field(i).Tag.Get("json")
				if !bytes.Contains(text, []byte("`"+name+"`")) {
					t.Errorf("docs/json.md says nothing of %s.%s", x.Name(), name)
				}
				walk(x.Field(i).Type)
			}
		}
	}
	for _, v := range []any{api.Status{}, api.Listing{}, api.Explanation{}, api.PolicyInput{},
		api.Plan{}, api.Removal{}, api.Rebuilt{}, api.AcceptedLoss{}, api.Health{}, api.ReadableLogs{},
		api.Records{}} {
		walk(reflect.TypeOf(v))
	}
	for _, c := range []api.ErrorCode{api.CodeInvalid, api.CodeNotFound, api.CodeRefused,
		api.CodeConfig, api.CodeUnavailable, api.CodeOutOfRange, api.CodeGone, api.CodeDamaged,
		api.CodeInternal} {
		if !bytes.Contains(text, []byte("`"+c+"`")) {
			t.Errorf("docs/json.md says nothing of the error code %s", c)
		}
	}
}

// TestClientAndHandler asks a handler everything through a real socket.
func TestClientAndHandler(t *testing.T) {
	t.Parallel()
	f := &fake{health: api.Health{Healthy: true}}
	c := serve(t, f)
	ctx := context.Background()
	odd := tier.LogID{Table: "db/a %2F?#é", Name: "0"}

	same(t, "status", fullStatus())(c.Status(ctx))
	same(t, "segments", fullListing())(c.Segments(ctx, odd))
	same(t, "explain", fullExplanation())(c.Explain(ctx, odd, 150))
	same(t, "plan", fullPlan())(c.Plan(ctx))
	same(t, "policy-input", fullPolicyInput())(c.PolicyInput(ctx, odd, 150, tier.DeleteRemote))
	same(t, "accept-loss", &api.AcceptedLoss{Log: odd.String(), Base: 200, Next: 300})(
		c.AcceptLoss(ctx, odd, 200))
	same(t, "health", &f.health)(c.Health(ctx))
	same(t, "drop-plan", fullRemoval())(c.DropPlan(ctx, odd.Table))
	same(t, "drop", fullRemoval())(c.Drop(ctx, odd.Table, "ef56-1"))
	for _, err := range []error{c.Resume(ctx, odd.Table), c.AcceptClock(ctx)} {
		if err != nil {
			t.Error(err)
		}
	}
	same(t, "reload", &fullStatus().Generation)(c.Reload(ctx, ""))
	same(t, "reload", &fullStatus().Generation)(c.Reload(ctx, "ef56-1"))
	want := []string{"segments " + odd.String(), "explain " + odd.String() + "@150",
		"policy-input " + odd.String() + "@150 delete_remote", "accept-loss " + odd.String() + "@200",
		"drop-plan " + odd.Table, "drop " + odd.Table + " ef56-1", "resume " + odd.Table,
		"clock accept", "reload", "reload ef56-1"}
	if diff := cmp.Diff(want, f.asked); diff != "" {
		t.Errorf("what the backend was asked:\n%s", diff)
	}

	f.err = api.Errorf(api.CodeConfig, "tierd.yaml:1:1: wrong")
	if _, err := c.Reload(ctx, ""); api.CodeOf(err) != api.CodeConfig || err.Error() != f.err.Error() {
		t.Errorf("reload: %v", err)
	}
	f.err = context.DeadlineExceeded
	if _, err := c.Status(ctx); api.CodeOf(err) != api.CodeInternal {
		t.Errorf("status: %v", err)
	}
}

// same returns a check that an answer encodes like want.
func same(t *testing.T, what string, want any) func(got any, err error) {
	return func(got any, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		if diff := cmp.Diff(jsonOf(want), jsonOf(got)); diff != "" {
			t.Errorf("%s:\n%s", what, diff)
		}
	}
}

func serve(t *testing.T, f *fake) *api.Client {
	t.Helper()
	socket := api.SocketPath(t.TempDir(), t.TempDir())
	l, err := api.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: l,
		Config: &http.Server{Handler: api.Handler(f, http.NotFoundHandler())}}
	server.Start()
	t.Cleanup(server.Close)
	c := api.NewClient(socket)
	t.Cleanup(c.Close)
	return c
}

// TestPaths asks what the client never would.
func TestPaths(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		method, path string
		status       int
		text         string
	}{
		{"GET", "/-/healthy", 200, `"healthy": true`},
		{"HEAD", "/-/healthy", 200, ""},
		{"GET", "/-/ready", 503, `"ready": false`},
		{"GET", "/-/reload", 405, "use POST"},
		{"POST", "/-/reload", 200, `"policy_digest": "ab12"`},
		{"POST", "/api/v1/status", 405, "use GET"},
		{"GET", "/api/v1/status?table=orders", 200, `"orders/0"`},
		{"GET", "/api/v1/status?table=none", 404, "not known"},
		{"GET", "/api/v1/logs/orders/0/segments", 200, `"copied"`},
		{"GET", "/api/v1/logs/orders%2F0/segments", 200, `"copied"`},
		{"GET", "/api/v1/logs/orders/0", 404, "no such path"},
		{"GET", "/api/v1/logs/orders/segments", 400, "want table/name"},
		{"GET", "/api/v1/logs/orders/0/explain", 400, "offset"},
		{"GET", "/api/v1/logs/orders/0/explain?offset=-1", 400, "offset"},
		{"POST", "/api/v1/logs/orders/0/policy-input?offset=1", 405, "GET"},
		{"GET", "/api/v1/logs/orders/0/explain?offset=9223372036854775808", 400, "offset"},
		{"GET", "/api/v1/logs/orders/0/accept-loss?offset=1", 405, "use POST"},
		{"GET", "/api/v1/tables/orders/resume", 405, "use POST"},
		{"GET", "/api/v1/tables/orders/drop", 200, `"digest"`},
		{"POST", "/api/v1/tables/orders/drop?accept=x", 200, `"digest"`},
		{"DELETE", "/api/v1/tables/orders/drop", 405, "use GET or POST"},
		{"POST", "/api/v1/tables/orders/delete", 404, "no such path"},
		{"POST", "/api/v1/tables/resume", 404, "no such path"},
		{"GET", "/", 404, "no such path"},
	} {
		t.Run(tc.method+tc.path, func(t *testing.T) {
			t.Parallel()
			h := api.Handler(&fake{health: api.Health{Healthy: true}}, http.NotFoundHandler())
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(tc.method, tc.path, nil))
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.text) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if w.Code >= 400 && w.Code != 503 && !strings.Contains(w.Body.String(), `"error"`) {
				t.Errorf("not the contract's error: %s", w.Body)
			}
		})
	}
}

// TestNoOtherOrigin: a page of another site cannot make a browser accept a loss.
func TestNoOtherOrigin(t *testing.T) {
	t.Parallel()
	f := &fake{}
	r := httptest.NewRequest("POST", "/api/v1/logs/orders/0/accept-loss?offset=1", nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	w := httptest.NewRecorder()
	api.Handler(f, http.NotFoundHandler()).ServeHTTP(w, r)
	if w.Code != http.StatusForbidden || len(f.asked) > 0 {
		t.Errorf("%d, asked %v", w.Code, f.asked)
	}
}

// TestSocketPathTooLong: the error says how long a path may be, and how it gets shorter.
func TestSocketPathTooLong(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("d", 120)
	deep := api.SocketPath("/"+long, filepath.Join(t.TempDir(), long))
	_, err := api.Listen(deep)
	_, dialled := api.Dial(t.Context(), deep)
	for _, err := range []error{err, dialled} {
		if err == nil || !strings.Contains(err.Error(), "may have 100 bytes") ||
			!strings.Contains(err.Error(), fmt.Sprintf("has %d: set XDG_RUNTIME_DIR", len(deep))) {
			t.Errorf("a path of %d bytes: %v", len(deep), err)
		}
	}
}

// TestSocket: the socket is its owner's, replaces only a socket, and moves where its path would be
// too long.
func TestSocket(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := api.SocketPath(dir, "/run/user/1")
	if path != filepath.Join(dir, "tierd.sock") {
		t.Errorf("path %s", path)
	}
	for range 2 { // the second time over what the first left
		l, err := api.Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		defer func() { _ = l.Close() }()
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Listen(file); err == nil {
		t.Error("a file was replaced by a socket")
	}
	long := "/" + strings.Repeat("d", 120)
	moved := api.SocketPath(long, "/run/user/1")
	if filepath.Dir(moved) != "/run/user/1" || moved != api.SocketPath(long+"/", "/run/user/1") ||
		moved == api.SocketPath(long+"x", "/run/user/1") {
		t.Errorf("moved to %s", moved)
	}
	if _, err := api.Dial(context.Background(), path); err != nil {
		t.Errorf("a listening daemon: %v", err)
	}
	for _, none := range []string{filepath.Join(dir, "none.sock"), file} {
		if _, err := api.Dial(context.Background(), none); !errors.Is(err, api.ErrNoDaemon) {
			t.Errorf("dial %s: %v", none, err)
		}
	}
	_, err := api.NewClient(filepath.Join(dir, "none.sock")).Status(context.Background())
	if api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("no daemon: %v", err)
	}
}
