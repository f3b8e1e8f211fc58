package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/tier"
)

// Copies implements api.Backend.
func (f *fake) Copies(_ context.Context, log tier.LogID, from tier.Position) (*api.Copies, error) {
	f.asked = append(f.asked, fmt.Sprintf("copies %s from %d", log, from))
	return fullCopies(), f.err
}

func fullCopies() *api.Copies {
	add := &tier.Copy{Attempt: tier.AttemptID{1}, Position: 1, Epoch: 1, Verified: tier.VerifyFull,
		Content: tier.Content{Range: tier.Range{Base: 0, Next: 100}, LastNext: 100,
			Files:   []tier.SourceFile{{FileDigest: tier.FileDigest{Name: "0.log", Size: 10}}},
			Lineage: []tier.EpochStart{{Epoch: 3}}}}
	return &api.Copies{Log: "orders/0", LedgerID: "5f0c", Layout: tier.LayoutKafka, Source: "broker-1",
		CopiedOffset: 120, Positions: 3, Next: 3, Unpublished: []tier.Position{2},
		Holes:       []api.Hole{{Base: 100, Next: 120, Cause: tier.HoleSourceGone, At: at(0)}},
		Facts:       []tier.Fact{{Position: 1, Epoch: 1, Copied: 100, Add: add}},
		Counted:     []api.Counted{{Base: 0, Next: 100, Position: 1}},
		Attempts:    []tier.AttemptID{{2}},
		Checkpoints: []uint64{0}}
}

// shelf is a fake with content.
type shelf struct{ fake }

const shelved = "0123456789"

func (s *shelf) Readable(context.Context) (*api.ReadableLogs, error) {
	return &api.ReadableLogs{Logs: []api.ReadableLog{
		{Log: "orders/0", Layout: tier.LayoutKafka, Incarnation: ptr("t0pic"), Start: 100, End: 340},
		{Log: "wal/0", Layout: tier.LayoutPlain}}}, s.err
}

func (s *shelf) Read(_ context.Context, log tier.LogID, from api.Place, maxBytes int64) (
	*api.Piece, error) {
	s.asked = append(s.asked, fmt.Sprintf("read %s %s %d", log, jsonOf(from), maxBytes))
	return &api.Piece{Bytes: []byte(shelved), Base: 90, Next: 120, Start: 10, End: 340}, s.err
}

func (s *shelf) Records(context.Context, tier.LogID, api.Place, int64) (*api.Records, error) {
	return fullRecords(), s.err
}

func fullRecords() *api.Records {
	return &api.Records{Log: "orders/0", Next: 102, Start: 100, End: 340, Records: []api.Record{
		{Offset: 100, Timestamp: 1717200000000, Key: api.BytesOf(nil), Value: api.BytesOf([]byte("é<&")),
			Headers: []api.Field{{Key: "trace", Value: api.BytesOf([]byte{0xff})}}},
		{Offset: 101, Timestamp: -1, Key: api.BytesOf([]byte{}), Control: true}}}
}

func (s *shelf) File(_ context.Context, log tier.LogID, base tier.Offset, name string) (
	*api.File, error) {
	s.asked = append(s.asked, fmt.Sprintf("file %s %d %q", log, base, name))
	return &api.File{Name: "0.log", Size: int64(len(shelved)), SHA256: tier.SHA256{0xab},
		ReadSeeker: strings.NewReader(shelved), Closer: io.NopCloser(nil)}, s.err
}

func TestArchivePaths(t *testing.T) {
	t.Parallel()
	etag := `"` + tier.SHA256{0xab}.String() + `"`
	outOfRange := api.Errorf(api.CodeOutOfRange, "out of range")
	outOfRange.Start, outOfRange.End = ptr(tier.Offset(5)), ptr(tier.Offset(7))
	for _, tc := range []struct {
		path   string
		header string // name: value
		err    error
		status int
		text   string
	}{
		{path: "/api/v1/logs", status: 200, text: `"end": 340`},
		{path: "/api/v1/openapi.json", status: 200, text: `"openapi": "3.1.0"`},
		{path: "/api/v1/logs/orders/0/records", status: 200, text: shelved},
		{path: "/api/v1/logs/orders/0/records?offset=7&max_bytes=9", status: 200, text: shelved},
		{path: "/api/v1/logs/orders/0/records?format=json", status: 200, text: `"base64": "/w=="`},
		{path: "/api/v1/logs/orders/0/records?format=xml", status: 400, text: "want raw or json"},
		{path: "/api/v1/logs/orders/0/records?offset=-1", status: 400, text: "offset="},
		{path: "/api/v1/logs/orders/0/records?offset=", status: 400, text: "offset="},
		{path: "/api/v1/logs/orders/0/records?offset=9223372036854775808", status: 400, text: "offset="},
		{path: "/api/v1/logs/orders/0/records?max_bytes=0", status: 400, text: "max_bytes="},
		{path: "/api/v1/logs/orders/0/records?max_bytes=67108865", status: 400, text: "max_bytes="},
		{path: "/api/v1/logs/orders/0/records?offset=1&timestamp=1", status: 400, text: "keep one"},
		{path: "/api/v1/logs/orders/0/records?ofset=1", status: 400, text: `\"ofset\": want one of`},
		{path: "/api/v1/logs/orders/0/records?offset=1&offset=2", status: 400, text: "given 2 times"},
		{path: "/api/v1/logs/orders/0/records?offset=1;max_bytes=2", status: 400, text: "semicolon"},
		{path: "/api/v1/logs/orders/0/records?offset=%zz", status: 400, text: "invalid URL escape"},
		{path: "/api/v1/logs/orders/0/segment?base=0&name=0.log", status: 400, text: "base, file"},
		{path: "/api/v1/logs/orders/0/records", err: outOfRange, status: 416, text: `"end": 7`},
		{path: "/api/v1/logs/orders/0/records", err: api.Errorf(api.CodeGone, "gone"), status: 410},
		{path: "/api/v1/logs/orders/0/records", err: api.Errorf(api.CodeDamaged, "lost"), status: 502},
		{path: "/api/v1/logs/orders/records", status: 400, text: "want table/name"},
		{path: "/api/v1/logs/orders/0/copies", status: 200, text: `"ledger_id"`},
		{path: "/api/v1/logs/orders/0/copies?from=x", status: 400, text: "from="},
		{path: "/api/v1/logs/orders/0/segment?base=0", status: 200, text: shelved},
		{path: "/api/v1/logs/orders/0/segment?base=0&file=0.log", status: 200, text: shelved},
		{path: "/api/v1/logs/orders/0/segment", status: 400, text: "base="},
		{path: "/api/v1/logs/orders/0/segment?base=-1", status: 400, text: "base="},
		{path: "/api/v1/logs/orders/0/segment?base=0", header: "Range: bytes=2-4", status: 206,
			text: "234"},
		{path: "/api/v1/logs/orders/0/segment?base=0", header: "Range: bytes=-3", status: 206,
			text: "789"},
		{path: "/api/v1/logs/orders/0/segment?base=0", header: "Range: bytes=10-", status: 416},
		{path: "/api/v1/logs/orders/0/segment?base=0", header: "If-None-Match: " + etag, status: 304},
	} {
		t.Run(tc.path+tc.header, func(t *testing.T) {
			t.Parallel()
			s := &shelf{fake{err: tc.err}}
			r := httptest.NewRequest("GET", tc.path, nil)
			if name, value, ok := strings.Cut(tc.header, ": "); ok {
				r.Header.Set(name, value)
			}
			w := httptest.NewRecorder()
			api.Handler(s, http.NotFoundHandler()).ServeHTTP(w, r)
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.text) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if strings.Contains(tc.path, "/segment?") && tc.status < 400 && w.Header().Get("ETag") != etag {
				t.Errorf("ETag %s", w.Header().Get("ETag"))
			}
		})
	}
}

func TestRecordsAreTold(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/api/v1/logs/db/a%2F/0/records?timestamp=-5", nil)
	api.Handler(s, http.NotFoundHandler()).ServeHTTP(w, r)
	for name, want := range map[string]string{"Tierd-Base-Offset": "90", "Tierd-Next-Offset": "120",
		"Tierd-Log-Start": "10", "Tierd-Log-End": "340", "Content-Length": "10"} {
		if got := w.Header().Get(name); got != want && w.Code == 200 {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	w = httptest.NewRecorder()
	api.Handler(&fake{}, http.NotFoundHandler()).ServeHTTP(w,
		httptest.NewRequest("GET", "/api/v1/logs/orders/0/records", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("without an archive: %d", w.Code)
	}
}

// TestOpenAPI compares the document with docs/openapi.json, and sees that each of its paths is
// served, and none but those that the handler knows.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	if err := api.Encode(&got, api.OpenAPI()); err != nil {
		t.Fatal(err)
	}
	golden(t, "../../docs/openapi.json", got.Bytes())
	for path, methods := range api.OpenAPI()["paths"].(map[string]any) {
		for method := range methods.(map[string]any) {
			at := strings.NewReplacer("{log}", "orders/0", "{table}", "orders").Replace(path)
			w := httptest.NewRecorder()
			at += "?offset=1"
			if strings.HasSuffix(path, "/segment") {
				at = strings.ReplaceAll(at, "offset=1", "base=0")
			}
			r := httptest.NewRequest(strings.ToUpper(method), at, strings.NewReader("{}"))
			h := api.Handler(&shelf{fake{health: api.Health{Healthy: true, Ready: true}}},
				http.NotFoundHandler())
			if h.ServeHTTP(w, r); w.Code != http.StatusOK {
				t.Errorf("%s %s: %d %s", method, at, w.Code, w.Body)
			}
		}
	}
}

// TestArchiveGolden is TestGolden for what is read.
func TestArchiveGolden(t *testing.T) {
	t.Parallel()
	logs, _ := (&shelf{}).Readable(t.Context())
	for name, v := range map[string]any{"logs": logs, "records": fullRecords(),
		"copies": fullCopies()} {
		var got bytes.Buffer
		if err := api.Encode(&got, v); err != nil {
			t.Fatal(err)
		}
		golden(t, "testdata/"+name+".json", got.Bytes())
	}
	c := serve(t, &fake{})
	same(t, "copies", fullCopies())(c.Copies(t.Context(), tier.LogID{Table: "a/b", Name: "0"}, 7))
	if reflect.DeepEqual(api.BytesOf(nil), api.BytesOf([]byte{})) {
		t.Error("null and empty are one in JSON")
	}
}

// slow is an archive whose readers wait.
type slow struct {
	shelf
	began, end chan struct{}
}

func (s *slow) Read(context.Context, tier.LogID, api.Place, int64) (*api.Piece, error) {
	s.began <- struct{}{}
	<-s.end
	return &api.Piece{}, nil
}

// TestReadersShareAMemory: who would hold too much is told to come again, and not kept waiting.
func TestReadersShareAMemory(t *testing.T) {
	t.Parallel()
	s := &slow{began: make(chan struct{}), end: make(chan struct{})}
	h := api.Handler(s, http.NotFoundHandler())
	ask := func(maxBytes int) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET",
			fmt.Sprintf("/api/v1/logs/orders/0/records?max_bytes=%d", maxBytes), nil))
		return w.Code
	}
	codes := make(chan int)
	for range 8 {
		go func() { codes <- ask(64 << 20) }()
		<-s.began
	}
	if code := ask(1); code != http.StatusServiceUnavailable {
		t.Errorf("beyond the budget: %d", code)
	}
	close(s.end)
	for range 8 {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("%d", code)
		}
	}
	go func() { codes <- ask(64 << 20) }()
	<-s.began
	if code := <-codes; code != http.StatusOK {
		t.Errorf("afterwards: %d", code)
	}
}

// heavy is an archive whose answers have more than was asked for: a single batch, a single record.
type heavy struct {
	shelf
	bytes int
}

func (s *heavy) Read(context.Context, tier.LogID, api.Place, int64) (*api.Piece, error) {
	return &api.Piece{Bytes: make([]byte, s.bytes)}, s.err
}

func (s *heavy) Records(context.Context, tier.LogID, api.Place, int64) (*api.Records, error) {
	text := strings.Repeat("a", s.bytes)
	return &api.Records{Records: []api.Record{{Value: api.Bytes{Text: &text}}}}, s.err
}

// stuck is a client that takes nothing until end.
type stuck struct {
	*httptest.ResponseRecorder
	began, end chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	s.began <- struct{}{}
	<-s.end
	return len(p), nil
}

// TestWhatIsHeldIsCounted: not what was asked for counts while a client takes it, but what it is.
func TestWhatIsHeldIsCounted(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		query  string
		bytes  int
		client int // that fit
	}{
		{"max_bytes=1", 200 << 20, 2},
		{"max_bytes=1&format=json", 25 << 20, 2},
		{"max_bytes=67108864", 1 << 20, 20},
		{"max_bytes=67108864&format=json", 1 << 10, 20},
	} {
		h := api.Handler(&heavy{bytes: tc.bytes}, http.NotFoundHandler())
		path := "/api/v1/logs/orders/0/records?" + tc.query
		w := &stuck{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
		var clients sync.WaitGroup
		for range tc.client {
			clients.Go(func() { h.ServeHTTP(w, httptest.NewRequest("GET", path, nil)) })
			<-w.began
		}
		last := httptest.NewRecorder()
		h.ServeHTTP(last, httptest.NewRequest("GET", path, nil))
		if full := last.Code == http.StatusServiceUnavailable; full != (tc.client == 2) ||
			full && last.Header().Get("Retry-After") == "" {
			t.Errorf("%s of %d bytes behind %d: %d", tc.query, tc.bytes, tc.client, last.Code)
		}
		close(w.end)
		clients.Wait()
	}
}

// rotten is a file whose bytes turn out to be others than were copied.
type rotten struct{ *strings.Reader }

func (r rotten) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.Len() == 0 {
		return 0, tier.ErrDamaged
	}
	return n, err
}

func (rotten) Close() error { return nil }

// badShelf has one.
type badShelf struct{ shelf }

func (*badShelf) File(context.Context, tier.LogID, tier.Offset, string) (*api.File, error) {
	f := rotten{strings.NewReader(strings.Repeat(shelved, 10_000))}
	return &api.File{Name: "0.log", Size: f.Size(), ReadSeeker: f, Closer: f}, nil
}

// TestADamagedFileDoesNotEndWell: whoever gets all of a file has the right one.
func TestADamagedFileDoesNotEndWell(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(api.Handler(&badShelf{}, http.NotFoundHandler()))
	defer s.Close()
	resp, err := http.Get(s.URL + "/api/v1/logs/orders/0/segment?base=0")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(resp.Body)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%d bytes, %v: want an answer that is cut", len(got), err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
}
