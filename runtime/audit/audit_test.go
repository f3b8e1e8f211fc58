package audit

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

const now = tier.Time(1_800_000_000_000_000_000)

// deletion is one of the local segment [base, base+10).
func deletion(base tier.Offset) tier.Deletion {
	return tier.Deletion{
		Action: tier.DeleteLocal,
		Log:    tier.LogID{Table: "orders", Name: "0"},
		Range:  tier.Range{Base: base, Next: base + 10},
		Bytes:  1000, Epoch: 1, SHA256: tier.SHA256{1, 2, 3}, Object: "00000.log",
		Attempt: tier.AttemptID{4, 5, 6},
		Reasons: []tier.Reason{{Code: tier.CodeLocalTTL, Text: "age > 1d", Rule: "b.rego:19"}},
		Digest:  "c265f616", At: now, Input: []byte(`{"action":"delete_local"}`),
	}
}

func deleted() tier.Outcome { return tier.Outcome{Result: tier.OutcomeDeleted, At: now + 1} }

func newMem() *vfs.Mem { return vfs.NewMem(func() tier.Time { return now }) }

func mustOpen(t testing.TB, dir vfs.Dir, fileBytesMax int64) *Log {
	t.Helper()
	l, err := Open(dir, Options{FileBytesMax: fileBytesMax})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustIntend(t testing.TB, l *Log, base tier.Offset) uint64 {
	t.Helper()
	seq, err := l.Intend(context.Background(), deletion(base))
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

func mustConclude(t testing.TB, l *Log, seq uint64, o tier.Outcome) {
	t.Helper()
	if err := l.Conclude(context.Background(), seq, o); err != nil {
		t.Fatal(err)
	}
}

func mustVerify(t testing.TB, dir vfs.Dir) Report {
	t.Helper()
	r, err := Verify(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func content(t testing.TB, dir vfs.Dir, name string) string {
	t.Helper()
	f, err := dir.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, info.Size)
	if _, err := f.ReadAt(b, 0); err != nil && info.Size > 0 {
		t.Fatal(err)
	}
	return string(b)
}

// rewriteFile makes a file hold other bytes, durably.
func rewriteFile(t testing.TB, dir vfs.Dir, name, bytes string) {
	t.Helper()
	f, err := dir.Append(name)
	if err == nil {
		err = errors.Join(f.Truncate(0), write(f, bytes), f.Sync(), f.Close(), dir.Sync("."))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func write(f vfs.File, s string) error {
	_, err := f.Write([]byte(s))
	return err
}

// TestGolden: the format is what testdata holds, and testdata is read as what was written.
func TestGolden(t *testing.T) {
	t.Parallel()
	dir := newMem()
	l := mustOpen(t, dir, 0)
	first, second := mustIntend(t, l, 0), mustIntend(t, l, 10)
	mustConclude(t, l, second, tier.Outcome{Result: tier.OutcomeKept, Text: "changed", At: now + 2})
	bare := tier.Deletion{Action: tier.DeleteOrphan, Log: tier.LogID{Table: "a<b>/é", Name: "1"}}
	if _, err := l.Intend(context.Background(), bare); err != nil {
		t.Fatal(err)
	}
	mustConclude(t, l, first, deleted())
	got := content(t, dir, "audit-000001.jsonl")
	const path = "testdata/audit-000001.jsonl"
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Fatal(diff)
	}

	old := newMem()
	rewriteFile(t, old, "audit-000001.jsonl", string(want))
	r := mustVerify(t, old)
	if len(r.Open) != 1 || r.Open[0].Seq != 4 {
		t.Fatalf("%+v", r.Open)
	}
	bare.Reasons = []tier.Reason{}
	if diff := cmp.Diff(bare, r.Open[0].Deletion); diff != "" {
		t.Error(diff)
	}
	r.Open = nil
	if diff := cmp.Diff(Report{Files: 1, Records: 5, First: 1, Last: 5, Head: l.head, Intents: 3,
		Deleted: 1, Kept: 1}, r); diff != "" {
		t.Error(diff)
	}
}

// TestReopen: numbers, chain and open intents go on where they were.
func TestReopen(t *testing.T) {
	t.Parallel()
	dir := newMem()
	l := mustOpen(t, dir, 0)
	a, b, c := mustIntend(t, l, 0), mustIntend(t, l, 10), mustIntend(t, l, 20)
	mustConclude(t, l, b, deleted())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if _, err := l.Intend(context.Background(), deletion(30)); err == nil {
		t.Error("a closed log took a record")
	}

	l = mustOpen(t, dir, 0)
	want := []tier.Intent{{Seq: a, Deletion: deletion(0)}, {Seq: c, Deletion: deletion(20)}}
	if diff := cmp.Diff(want, l.OpenIntents()); diff != "" {
		t.Error(diff)
	}
	mustConclude(t, l, a, tier.Outcome{Result: tier.OutcomeUnknown})
	mustConclude(t, l, c, deleted())
	if seq := mustIntend(t, l, 30); seq != 7 {
		t.Errorf("record %d, want 7", seq)
	}
	if r := mustVerify(t, dir); r.Records != 7 || r.Unknown != 1 || len(r.Open) != 1 {
		t.Errorf("%+v", r)
	}
}

// TestInputsAreCompact: what the policies saw is written without blanks and changed in nothing
// else, whoever wrote it, so that a line stays a line.
func TestInputsAreCompact(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{"a":[1,"<b>"]}`:                 `{"a":[1,"<b>"]}`,
		"{\"a\" : [1,\n\"ä\\u003cb>\"] }": `{"a":[1,"ä\u003cb>"]}`,
		` null `:                          `null`,
	} {
		d := deletion(0)
		d.Input = []byte(input)
		body, err := bodyOfIntent(d)
		if err != nil || !bytes.HasSuffix(body, []byte(`,"input":`+want+`}`)) {
			t.Errorf("%s is written as %s (%v)", input, body, err)
		}
	}
}

// TestRefused: what cannot be recorded is refused, and does not break the log.
func TestRefused(t *testing.T) {
	t.Parallel()
	l := mustOpen(t, newMem(), 0)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	nameless, broken, large := deletion(0), deletion(0), deletion(0)
	nameless.Log.Table = ""
	broken.Input = []byte("{")
	large.Object = strings.Repeat("x", lineBytesMax)
	for name, intend := range map[string]func() error{
		"context": func() error { _, err := l.Intend(over, deletion(0)); return err },
		"no log":  func() error { _, err := l.Intend(context.Background(), nameless); return err },
		"input":   func() error { _, err := l.Intend(context.Background(), broken); return err },
		"size":    func() error { _, err := l.Intend(context.Background(), large); return err },
		"unknown": func() error { return l.Conclude(context.Background(), 1, deleted()) },
	} {
		if err := intend(); !errors.Is(err, tier.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	seq := mustIntend(t, l, 0)
	err := l.Conclude(context.Background(), seq, tier.Outcome{})
	if !errors.Is(err, tier.ErrRefused) {
		t.Errorf("no result: %v", err)
	}
	mustConclude(t, l, seq, deleted())
	err = l.Conclude(context.Background(), seq, deleted())
	if !errors.Is(err, tier.ErrRefused) {
		t.Errorf("second outcome: %v", err)
	}
	if seq != 1 || l.Err() != nil || len(l.OpenIntents()) != 0 {
		t.Errorf("record %d, %v, open %v", seq, l.Err(), l.OpenIntents())
	}
}

// TestLargestRecord: what is written can be read, up to the byte.
func TestLargestRecord(t *testing.T) {
	t.Parallel()
	dir := newMem()
	l := mustOpen(t, dir, 0)
	d := deletion(0)
	d.Object = ""
	small, err := bodyOfIntent(d)
	if err != nil {
		t.Fatal(err)
	}
	d.Object = strings.Repeat("x", lineBytesMax-frameBytesMax-len(small)-len(`"object":"",`))
	if _, err := l.Intend(context.Background(), d); err != nil {
		t.Fatal(err)
	}
	d.Object += "x"
	if _, err := l.Intend(context.Background(), d); !errors.Is(err, tier.ErrRefused) {
		t.Error(err)
	}
	if r := mustVerify(t, dir); r.Records != 1 || r.TornBytes != 0 {
		t.Errorf("%+v", r)
	}
}

// together makes the calls one batch: it holds the commit back until all are queued.
func together(l *Log, calls ...func()) {
	l.commit.Lock()
	var wg sync.WaitGroup
	for _, call := range calls {
		wg.Go(call)
	}
	for queued := 0; queued < len(calls); runtime.Gosched() {
		l.mu.Lock()
		queued = len(l.pending.entries)
		l.mu.Unlock()
	}
	l.commit.Unlock()
	wg.Wait()
}

// TestGroupCommit: what is queued while a batch is written becomes durable with one fsync.
func TestGroupCommit(t *testing.T) {
	t.Parallel()
	dir := newMem()
	l := mustOpen(t, dir, 0)
	mustIntend(t, l, 0)
	syncs := 0
	dir.SetFault(func(op vfs.Op) (vfs.Effect, error) {
		if op.Kind == vfs.OpSync {
			syncs++
		}
		return vfs.Proceed, nil
	})
	var calls []func()
	for i := range 20 {
		calls = append(calls, func() { mustIntend(t, l, tier.Offset(10*i)) })
	}
	together(l, calls...)
	if syncs != 1 {
		t.Errorf("%d fsyncs for one batch", syncs)
	}
	r := mustVerify(t, dir)
	if r.Records != 21 || len(r.Open) != 21 {
		t.Errorf("%+v", r)
	}
	if again := mustOpen(t, dir, 0).OpenIntents(); len(again) != 21 {
		t.Errorf("%d open intents", len(again))
	}
}

// TestConcurrent: many writers, whose intents and outcomes all stand in one chain.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	dir := newMem()
	l := mustOpen(t, dir, 4000)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 25 {
				mustConclude(t, l, mustIntend(t, l, tier.Offset(1000*w+10*i)), deleted())
			}
		})
	}
	wg.Wait()
	r := mustVerify(t, dir)
	if r.Records != 400 || r.Deleted != 200 || len(r.Open) != 0 || r.Files < 10 {
		t.Errorf("%+v", r)
	}
}
