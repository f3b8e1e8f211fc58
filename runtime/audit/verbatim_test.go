package audit

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierd/tierd/runtime/verbatim/verbatimtest"
)

// TestReadVerbatim: a line is read as encoding/json reads it, or left to that, whatever is wrong
// with it; and what tierd writes is not left to it.
func TestReadVerbatim(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/audit-000001.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	check := func(line []byte) bool {
		got, ok := readVerbatim(line)
		if !ok {
			return false
		}
		want, err := readAny(line)
		if err != nil {
			t.Errorf("%s\nwas read, and is no record: %v", line, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
		return true
	}
	for line := range bytes.Lines(text) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if check(line) {
			read++
		}
		for other := range verbatimtest.Near(line) {
			check(other)
		}
	}
	if want := 4; read != want { // one has a log's name beyond ASCII
		t.Errorf("%d lines were read as they are written, want %d", read, want)
	}
}
