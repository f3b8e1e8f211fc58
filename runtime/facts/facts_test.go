package facts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

const (
	now       = tier.Time(1_800_000_000_000_000_000)
	tolerance = tier.Time(5 * time.Minute)
)

// place puts a file there that is as old as told.
func place(t *testing.T, path, content string, age time.Duration) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	at := now.Add(-age).Std()
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// plain takes every document as it is, but for null, which policies cannot be given either.
func plain(document any) (any, error) {
	if document == nil {
		return nil, errors.New("not wanted")
	}
	return document, nil
}

// look loads a set of the one fact f and gives it, or why it is not known, without the directory.
func look(s *Set, dir string) string {
	known, unknown := s.At(now, tolerance, tier.LogID{})
	if len(unknown) > 0 {
		return strings.ReplaceAll(unknown[0].Why, dir+"/", "")
	}
	return fmt.Sprint(known["f"])
}

// TestLook: what is a fact, and of everything else why it is none.
func TestLook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, content string
		age           time.Duration
		want          string
	}{
		{"a.json", `{"g": {"orders/0": 7}, "big": 9007199254740993}`, 0,
			"map[big:9007199254740993 g:map[orders/0:7]]"},
		{"a.yaml", "g: {orders/0: 7}\n", time.Minute, "map[g:map[orders/0:7]]"},
		{"a.yml", "- a\n- b\n", time.Minute, "[a b]"},
		{"a.json", `"text"`, 10 * time.Minute, "text"},
		{"a.json", " null\n", 0, "a.json: not wanted"},
		{"a.yaml", "---\n", 0, "a.yaml: not wanted"},
		{"a.yaml", "~\n", 0, "a.yaml: not wanted"},
		{"a.json", `{}`, 10*time.Minute + 1, "a.json: it was written at " +
			"2027-01-15T07:49:59.999999999Z, longer ago than its max_age of 10m0s"},
		{"a.json", `{}`, -5 * time.Minute, "map[]"},
		{"a.json", `{}`, -5*time.Minute - 1, "a.json: its modification time " +
			"2027-01-15T08:05:00.000000001Z lies in the future"},
		{"a.json", "", 0, "a.json:1:1: the JSON ends too early"},
		{"a.json", "{\n\"g\": {\"orders/0\": 7", 0, "a.json:2:20: the JSON ends too early"},
		{"a.json", `{"g": 1} {"g": 2}`, 0, "a.json:1:10: more than one JSON value"},
		{"a.json", "{\"g\": 1,\n\"g\": 2}", 0, `a.json:2:1: no JSON: the key "g" stands twice`},
		{"a.json", "{\n\n\"g\": nil}", 0, "a.json:3:7: no JSON: invalid character 'i' in literal null " +
			"(expecting 'u')"},
		{"a.json", strings.Repeat("[", 300), 0, "a.json:1:201: no JSON: it nests deeper than 200"},
		{"a.yaml", "", 0, "a.yaml: the file is empty"},
		{"a.yaml", "# nothing\n", 0, "a.yaml: the file is empty"},
		{"a.yaml", "a: [1", 0, "a.yaml:1: no YAML: did not find expected ',' or ']'"},
		{"a.yaml", "a: 1\na: 2\n", 0,
			`a.yaml:2:1: the key "a" stands twice; keep one of them`},
		{"a.yaml", "a: 1\n---\nb: 1\n", 0, "a.yaml:2:1: a second document starts here"},
		{"a.json", `"` + strings.Repeat("x", fileBytesMax-1) + `"`, 0,
			"read a.json: it is too large: more than 16777216 bytes"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, c.name)
		place(t, path, c.content, c.age)
		s := New([]File{{"f", path, 10 * time.Minute}}, nil, plain)
		if before := look(s, dir); before != "it has not been read yet" {
			t.Errorf("before the first load: %s", before)
		}
		s.Load(now, tolerance)
		if got := look(s, dir); got != c.want {
			t.Errorf("%s with %.40q, %s old:\n got %s\nwant %s", c.name, c.content, c.age, got, c.want)
		}
	}
}

// TestNoFile: what is no file at all is no fact, and holds up nobody.
func TestNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "dir.json"), 0o700),
		syscall.Mkfifo(filepath.Join(dir, "pipe.json"), 0o600),
		os.Symlink("loop.json", filepath.Join(dir, "loop.json")),
		os.Symlink("real.json", filepath.Join(dir, "link.json"))); err != nil {
		t.Fatal(err)
	}
	place(t, filepath.Join(dir, "real.json"), `"linked"`, 0)
	for name, want := range map[string]string{
		"none.json": "open none.json: no such file or directory",
		"dir.json":  "read dir.json: is a directory",
		"pipe.json": "read pipe.json: it is no regular file, and nothing else is read",
		"loop.json": "open loop.json: too many levels of symbolic links",
		"link.json": "linked",
	} {
		s := New([]File{{"f", filepath.Join(dir, name), time.Hour}}, nil, plain)
		s.Load(now, tolerance)
		if got := look(s, dir); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestChanged: Load tells when an answer may be another, and nothing of an earlier content is used.
func TestChanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	converted := 0
	s := New([]File{{"f", path, time.Hour}}, nil, func(document any) (any, error) {
		converted++
		if document == nil || document == "bad" {
			return nil, errors.New("not wanted")
		}
		return document, nil
	})
	for _, step := range []struct {
		what    string
		do      func()
		changed bool
		want    string
	}{
		{"missing", func() {}, false, "open a.json: no such file or directory"},
		{"there", func() { place(t, path, `"one"`, 0) }, true, "one"},
		{"the same", func() {}, false, "one"},
		{"touched", func() { place(t, path, `"one"`, time.Minute) }, false, "one"},
		{"another", func() { place(t, path, `"two"`, time.Minute) }, true, "two"},
		{"cut off", func() { place(t, path, `"tw`, time.Minute) }, true,
			"a.json:1:4: the JSON ends too early"},
		{"still cut off", func() {}, false, "a.json:1:4: the JSON ends too early"},
		{"whole again", func() { place(t, path, `"two"`, time.Minute) }, true, "two"},
		{"null", func() { place(t, path, "null", 0) }, true, "a.json: not wanted"},
		{"no longer null", func() { place(t, path, `"two"`, 0) }, true, "two"},
		{"not wanted", func() { place(t, path, `"bad"`, 0) }, true, "a.json: not wanted"},
		{"wanted", func() { place(t, path, `"two"`, 0) }, true, "two"},
		{"old", func() { place(t, path, `"two"`, 2*time.Hour) }, true, "a.json: it was written at " +
			"2027-01-15T06:00:00Z, longer ago than its max_age of 1h0m0s"},
		{"fresh", func() { place(t, path, `"two"`, 0) }, true, "two"},
		{"gone", func() {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, true, "open a.json: no such file or directory"},
	} {
		step.do()
		changed := s.Load(now, tolerance)
		if got := look(s, dir); changed != step.changed || got != step.want {
			t.Errorf("%s: changed %t, %s; want %t, %s", step.what, changed, got, step.changed, step.want)
		}
	}
	if converted != 7 {
		t.Errorf("a document was converted %d times, want 7: once for each new content", converted)
	}
}

// TestGrowsOldAlone: a fact that nobody writes any more is not known after its time, without a
// Load.
func TestGrowsOldAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	place(t, path, `7`, 0)
	s := New([]File{{"f", path, time.Hour}, {"a", filepath.Join(dir, "none.json"), time.Hour}},
		nil, plain)
	s.Load(now, tolerance)
	known, unknown := s.At(now+tier.Time(time.Hour), tolerance, tier.LogID{})
	if len(known) != 1 || len(unknown) != 1 || unknown[0].Name != "a" {
		t.Errorf("at its age: %v, %v", known, unknown)
	}
	known, unknown = s.At(now+tier.Time(time.Hour)+1, tolerance, tier.LogID{})
	if len(known) != 0 || len(unknown) != 2 || unknown[1].Name != "f" {
		t.Errorf("after it: %v, %v", known, unknown)
	}
	known, unknown = New(nil, nil, plain).At(now, tolerance, tier.LogID{})
	if known != nil || unknown != nil {
		t.Errorf("no facts: %v, %v", known, unknown)
	}
}
