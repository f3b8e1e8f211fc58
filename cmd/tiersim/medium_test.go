package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMedium: a scenario whose ledger lay in a file is replayed and told with one; of a
// medium that nobody knows both say what there is.
func TestMedium(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../testdata/scenarios/regressions/" +
		"an-upload-comes-again-after-its-copy-was-removed.json")
	if err != nil {
		t.Fatal(err)
	}
	of := func(medium string) string {
		name := filepath.Join(t.TempDir(), "s.json")
		text := strings.Replace(string(text), `"version":1,`, `"version":1,"medium":"`+medium+`",`, 1)
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, command := range []string{"replay", "explain"} {
		code, said := tiersim(t, command, of("bbolt"), "--builtin")
		if code != exitPassed || !strings.Contains(said, "every promise is kept") {
			t.Errorf("%s: exit code %d: %s", command, code, said)
		}
		code, said = tiersim(t, command, of("tape"), "--builtin")
		if code != exitBadInput || !strings.Contains(said, `medium is "tape": want "bbolt"`) {
			t.Errorf("%s: exit code %d: %s", command, code, said)
		}
	}
}
