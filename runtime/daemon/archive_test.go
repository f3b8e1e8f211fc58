package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/logdir/kbatch/kbatchtest"
	"github.com/tierd/tierd/runtime/tier"
)

const kafkaConfig = `
data_dir: data
interval: 10ms
sources: [{name: broker, layout: kafka, path: kafka}]
bucket: {type: FILESYSTEM, config: {directory: bucket}}
defaults: {table.log.ttl: 0, table.log.local-ttl: 0}
tables: [{name: "epochs"}, {name: "transactions"}, {name: "codec-*"}]
`

// kafkaSite has a copy of a real broker's directory as its source.
func kafkaSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.configure(kafkaConfig)
	err := os.CopyFS(filepath.Join(s.dir, "kafka"), os.DirFS("../../testdata/kafka/v4"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// forget removes the local files of all segments of the log but the last.
func (s *site) forget(dir string) {
	s.t.Helper()
	logs, err := filepath.Glob(filepath.Join(s.dir, "kafka", dir, "*.log"))
	if err != nil || len(logs) < 2 {
		s.t.Fatalf("%v %v", logs, err)
	}
	slices.Sort(logs)
	for _, log := range logs[:len(logs)-1] {
		files, err := filepath.Glob(strings.TrimSuffix(log, "log") + "*")
		if err != nil {
			s.t.Fatal(err)
		}
		for _, f := range files {
			if err := os.Remove(f); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// get asks the handler of a backend.
func get(t *testing.T, b api.Backend, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	api.Handler(b, http.NotFoundHandler()).ServeHTTP(w, r)
	return w
}

// TestTheArchiveIsRead copies a real log, lets the source forget most of it, and reads all of it
// over HTTP, from a daemon that runs and without one.
func TestTheArchiveIsRead(t *testing.T) {
	t.Parallel()
	s := kafkaSite(t)
	if _, err := s.once(s.options()); err != nil {
		t.Fatalf("%v\n%s", err, s.log.String())
	}
	s.forget("epochs-0")
	opts := s.options()
	snapshot, done, err := Snapshot(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	readEpochs(t, snapshot)
	readFile(t, snapshot)
	if err := done(); err != nil {
		t.Fatal(err)
	}
	d := s.run(s.options())
	s.until("it is ready", func() bool {
		h, err := d.Health(t.Context())
		return err == nil && h.Ready
	})
	readEpochs(t, d.Backend)
	readFile(t, d.Backend)
	if _, err := os.Stat(filepath.Join(s.dir, "data", readCacheDir)); err != nil {
		t.Error(err)
	}
}

// TestTheEndOfALogWithoutItsSource: while a source cannot be read nobody knows where its logs end,
// nor while another one cannot that may have them now. They end where the store does once the
// source is configured no more, and no other has them.
func TestTheEndOfALogWithoutItsSource(t *testing.T) {
	t.Parallel()
	s := kafkaSite(t)
	if _, err := s.once(s.options()); err != nil {
		t.Fatalf("%v\n%s", err, s.log.String())
	}
	code := func() int {
		b, done, err := Snapshot(t.Context(), s.options())
		if err != nil {
			t.Fatal(err)
		}
		w := get(t, b, "/api/v1/logs/epochs/0/records?offset=999999")
		if err := done(); err != nil {
			t.Error(err)
		}
		return w.Code
	}
	if err := os.Rename(filepath.Join(s.dir, "kafka"), filepath.Join(s.dir, "away")); err != nil {
		t.Fatal(err)
	}
	if c := code(); c != http.StatusServiceUnavailable {
		t.Errorf("%d while the source is away", c)
	}
	s.configure(strings.Replace(kafkaConfig, "name: broker", "name: another", 1))
	if c := code(); c != http.StatusServiceUnavailable {
		t.Errorf("%d where another source may have the log", c)
	}
	err := os.CopyFS(filepath.Join(s.dir, "kafka/idle-0"),
		os.DirFS("../../testdata/kafka/v4/idle-0"))
	if err != nil {
		t.Fatal(err)
	}
	if c := code(); c != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("%d after the source was taken out", c)
	}
}

// TestDecodedRecordsHaveABound: what a small batch decompresses to is not all given at once.
func TestDecodedRecordsHaveABound(t *testing.T) {
	t.Parallel()
	s := kafkaSite(t)
	if _, err := s.once(s.options()); err != nil {
		t.Fatalf("%v\n%s", err, s.log.String())
	}
	b, done, err := Snapshot(t.Context(), s.options())
	if err != nil {
		t.Fatal(err)
	}
	for maxBytes, want := range map[int]int{1: 1, 1 << 20: 480} {
		w := get(t, b, fmt.Sprintf("/api/v1/logs/codec-gzip/0/records?format=json&max_bytes=%d",
			maxBytes))
		var got api.Records
		err := json.Unmarshal(w.Body.Bytes(), &got)
		if err != nil || len(got.Records) > want || len(got.Records) == 0 ||
			got.Next != got.Records[len(got.Records)-1].Offset+1 {
			t.Errorf("max_bytes=%d: %d records, next %d: %v", maxBytes, len(got.Records), got.Next, err)
		}
	}
	if err := done(); err != nil {
		t.Error(err)
	}
}

// TestRecordsBeforeWrongOnesAreGiven: a batch that is what its producer sent, and no records, is an
// error when it is reached, and none for those before it.
func TestRecordsBeforeWrongOnesAreGiven(t *testing.T) {
	t.Parallel()
	s := kafkaSite(t)
	data, err := os.ReadFile("../../testdata/kafka/v4/codec-none-0/00000000000000000000.log")
	if err != nil {
		t.Fatal(err)
	}
	b, err := kbatch.Parse(data, 0, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(s.dir, "kafka", "epochs-7"), 0o700); err != nil {
		t.Fatal(err)
	}
	next := b.Next()
	data = kbatchtest.V2(data[:b.Size:b.Size], kbatchtest.Spec{Base: next, Last: next + 4, Body: 30})
	s.put("kafka/epochs-7/00000000000000000000.log", string(data))
	s.put("kafka/epochs-7/partition.metadata", "version: 0\ntopic_id: dNjYsphnTfWBvl59UKZMyg")
	s.put("kafka/replication-offset-checkpoint", fmt.Sprintf("0\n1\nepochs 7 %d\n", next+5))
	d := s.run(s.options())
	s.until("it is ready", func() bool {
		h, err := d.Health(t.Context())
		return err == nil && h.Ready
	})
	var got api.Records
	w := get(t, d.Backend, "/api/v1/logs/epochs/7/records?format=json")
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Next != next ||
		len(got.Records) != int(next) {
		t.Errorf("%d: %d records, next %d, want all before %d", w.Code, len(got.Records), got.Next, next)
	}
	w = get(t, d.Backend, fmt.Sprintf("/api/v1/logs/epochs/7/records?format=json&offset=%d", next))
	if w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), "damaged") {
		t.Errorf("at the wrong ones: %d %s", w.Code, w.Body)
	}
}

// readEpochs reads the 320 records of epochs/0.
func readEpochs(t *testing.T, b api.Backend) {
	t.Helper()
	if text := get(t, b, "/api/v1/logs").Body.String(); !strings.Contains(text, `"epochs/0"`) {
		t.Errorf("%s", text)
	}
	var offsets []tier.Offset
	for next := tier.Offset(0); next < 320; {
		w := get(t, b, fmt.Sprintf("/api/v1/logs/epochs/0/records?format=json&offset=%d&max_bytes=100",
			next))
		var got api.Records
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Next <= next {
			t.Fatalf("%d %s %v", w.Code, w.Body, err)
		}
		for _, r := range got.Records {
			offsets = append(offsets, r.Offset)
		}
		next = got.Next
	}
	for i, o := range offsets {
		if len(offsets) != 320 || o != tier.Offset(i) {
			t.Fatalf("%d offsets, number %d is %d", len(offsets), i, o)
		}
	}
	for path, want := range map[string]string{
		"?offset=321": `"end": 320`, "?timestamp=1717209600000&format=json": `"offset": 160`,
		"?timestamp=9000000000000&format=json": `"next": 320`, "?offset=320": ""} {
		w := get(t, b, "/api/v1/logs/epochs/0/records"+path)
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want %s", path, w.Code, w.Body, want)
		}
	}
	if w := get(t, b, "/api/v1/logs/none/0/records"); w.Code != http.StatusNotFound {
		t.Errorf("an unknown log: %d %s", w.Code, w.Body)
	}
}

// readFile reads an archived file in two ranges.
func readFile(t *testing.T, b api.Backend) {
	t.Helper()
	const at = "/api/v1/logs/epochs/0/segment?base=0"
	first, second := get(t, b, at, "Range: bytes=0-99"), get(t, b, at, "Range: bytes=100-")
	data, err := os.ReadFile("../../testdata/kafka/v4/epochs-0/00000000000000000000.log")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	if got := first.Body.String() + second.Body.String(); got != string(data) ||
		first.Code != http.StatusPartialContent ||
		first.Header().Get("ETag") != `"`+hex.EncodeToString(sum[:])+`"` {
		t.Errorf("%d, %d bytes of %d, %v", first.Code, len(got), len(data), first.Header())
	}
	for path, want := range map[string]int{"?base=1": 404, "?base=0&file=none": 404} {
		if w := get(t, b, "/api/v1/logs/epochs/0/segment"+path); w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
}

// TestCopiesAreTold: what a check or a restore goes by.
func TestCopiesAreTold(t *testing.T) {
	t.Parallel()
	s := kafkaSite(t)
	if _, err := s.once(s.options()); err != nil {
		t.Fatal(err)
	}
	b, done, err := Snapshot(t.Context(), s.options())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = done() }()
	c, err := b.Copies(t.Context(), tier.LogID{Table: "epochs", Name: "0"}, 0)
	if err != nil || len(c.Facts) != 4 || len(c.Counted) != 4 || c.Next != c.Positions ||
		c.CopiedOffset != c.Counted[3].Next || c.Incarnation == "" {
		t.Errorf("%+v %v", c, err)
	}
	if c, err = b.Copies(t.Context(), tier.LogID{Table: "epochs", Name: "0"}, 1<<40); err != nil ||
		len(c.Facts) != 0 || c.Next < c.Positions {
		t.Errorf("beyond the end: %+v %v", c, err)
	}
	if _, err = b.Copies(t.Context(), tier.LogID{Table: "none", Name: "0"}, 0); api.CodeOf(err) !=
		api.CodeNotFound {
		t.Errorf("an unknown log: %v", err)
	}
}
