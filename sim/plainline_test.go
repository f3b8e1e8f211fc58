package sim

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/audit"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// TestPlainLines: what a plain line says is what encoding/json reads of it, and a line with any
// byte changed or left out says the same by both, or is not plain.
func TestPlainLines(t *testing.T) {
	t.Parallel()
	dir := vfs.NewMem(func() tier.Time { return scenarioStart })
	log, err := audit.Open(dir, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	facts := []byte(`{"facts":{"outcome":{"of":1,"result":"kept"},"sha256":"00"},"object":"none"}`)
	for i, d := range []tier.Deletion{
		{Action: tier.DeleteLocal, Log: orders, Range: tier.Range{Base: 10, Next: 20}, Input: facts},
		{Action: tier.DeleteRemote, Log: orders, Object: "x/logs/y", SHA256: tier.SHA256{1, 2}},
		{Action: tier.DeleteOrphan, Log: orders, Object: `a "quoted" one`},
		{Action: tier.DeleteLocal, Log: tier.LogID{Table: "ä", Name: "0"},
			Reasons: []tier.Reason{{Code: "x", Text: `,"outcome":{"of":1}`}}},
	} {
		seq, err := log.Intend(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		outcome := tier.Outcome{Result: tier.OutcomeDeleted, Text: strings.Repeat("\"", i)}
		if err := log.Conclude(t.Context(), seq, outcome); err != nil {
			t.Fatal(err)
		}
	}
	plain := 0
	dir.Look(".", func(_ vfs.Info, data []byte) {
		for line := range bytes.Lines(data) {
			for i := range len(line) {
				saysTheSame(t, line[:i])
				saysTheSame(t, append(bytes.Clone(line[:i]), line[i+1:]...))
				other := bytes.Clone(line)
				other[i] ^= 2
				saysTheSame(t, other)
			}
			if saysTheSame(t, line) {
				plain++
			}
		}
	})
	if plain != 6 { // what is escaped is not
		t.Errorf("%d lines were plain", plain)
	}
}

// saysTheSame reports whether the line is plain.
func saysTheSame(t *testing.T, line []byte) bool {
	t.Helper()
	of, in, plain := plainLine(line)
	if !plain {
		return false
	}
	wantOf, want := anyLine(line)
	if want != nil && (of != wantOf || *in != *want) {
		t.Fatalf("%s: %d, %+v; want %d, %+v", line, of, in, wantOf, want)
	}
	return true
}
