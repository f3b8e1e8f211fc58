package sim

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tierd/tierd/sim/choose"
)

// TestRegressions replays every history that ever broke a promise of the built-in project.
func TestRegressions(t *testing.T) {
	t.Parallel()
	replayAll(t, Builtin, "*.json")
}

// TestLeaderRegressions replays those on a broker's directory.
func TestLeaderRegressions(t *testing.T) {
	t.Parallel()
	replayAll(t, BuiltinKafka, "kafka/*.json")
}

func replayAll(t *testing.T, project func() (*Project, error), pattern string) {
	t.Helper()
	p, err := project()
	if err != nil {
		t.Fatal(err)
	}
	p.Scratch = scratch(t)
	files, err := filepath.Glob("../testdata/scenarios/regressions/" + pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenario: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := choose.Decode(text)
			if err != nil {
				t.Fatal(err)
			}
			out, err := p.Replay(s)
			if err != nil {
				t.Fatal(err)
			}
			if out.Violation != nil {
				t.Error(out.Violation)
			}
		})
	}
}
