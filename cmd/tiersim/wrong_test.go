package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// expectation is what tiersim must say of a wrong set: its exit code, the property or the word that
// names how it failed, and a part of the reason.
type expectation struct {
	Exit     int
	Property string
	Why      string
}

// TestWrong runs tiersim on every set of testdata/sim/wrong, each of which has one mistake.
func TestWrong(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("../../testdata/sim/wrong/*/expect.json")
	if err != nil || len(dirs) < 8 {
		t.Fatalf("%d sets, want at least 8: %v", len(dirs), err)
	}
	for _, file := range dirs {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var want expectation
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			// A rule that breaks its promise does so beside a broker, too.
			for _, layout := range []string{"plain", "kafka"}[:layouts(want.Exit)] {
				code, said := tiersim(t, "check", "--config", dir, "--seeds", seedsOf(want.Exit),
					"--out", t.TempDir(), "--shrinks", "0", "--layout", layout)
				if code != want.Exit {
					t.Errorf("%s: exit code %d, want %d", layout, code, want.Exit)
				}
				// Rules are named by their path from here, or from the set.
				said = strings.ReplaceAll(said, dir+"/", "")
				if !strings.Contains(said, want.Property) || !strings.Contains(said, want.Why) {
					t.Errorf("%s: want %q and %q in\n%s", layout, want.Property, want.Why, said)
				}
				if want.Exit == exitHang && strings.Contains(said, "VACUOUS") {
					t.Errorf("%s: it says more than it knows:\n%s", layout, said)
				}
			}
		})
	}
}

func layouts(exit int) int {
	if exit == exitViolation {
		return 2
	}
	return 1
}

// seedsOf is how many histories a set takes: those that break a promise end with the first.
func seedsOf(exit int) string {
	if exit == exitViolation {
		return "100"
	}
	return "4"
}

func tiersim(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	var out bytes.Buffer
	none := func(string) (string, bool) { return "", false }
	code = run(t.Context(), args, system{stdout: &out, stderr: &out, lookupEnv: none})
	return code, out.String()
}

// TestExamples checks that the example policies keep what their own intent says.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"business_hours", "consumer_guard", "disk_pressure", "legal_hold",
		"max_age", "plugin"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, said := tiersim(t, "check", "--config", "../../testdata/sim/examples/"+name,
				"--seeds", "24", "--out", t.TempDir(), "--allow-vacuous")
			if code != exitPassed {
				t.Errorf("exit code %d:\n%s", code, said)
			}
			for line := range strings.Lines(said) {
				// The situations are for longer runs; each rule must have been tried already.
				if strings.Contains(line, "never true") || strings.Contains(line, "never false") {
					t.Error(line)
				}
			}
		})
	}
}

// TestInit checks the project that init writes, as its CI would.
func TestInit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if code, said := tiersim(t, "init", dir); code != exitPassed {
		t.Fatalf("init: exit code %d: %s", code, said)
	}
	if code, _ := tiersim(t, "init", dir); code != exitBadInput {
		t.Errorf("a second init: exit code %d, want %d", code, exitBadInput)
	}
	code, said := tiersim(t, "check", "--config", dir, "--seeds", "24", "--out", dir,
		"--allow-vacuous")
	if code != exitPassed || strings.Contains(said, "never true") ||
		strings.Contains(said, "never false") {
		t.Errorf("check: exit code %d: %s", code, said)
	}
}
