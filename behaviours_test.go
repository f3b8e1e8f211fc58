package tierd_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestBehaviours sees to it that each scenario and test that docs/behaviours.md names exists, that
// each row names one, and that each story with a report's number in its name has a row.
func TestBehaviours(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/behaviours.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := testNames(t)
	named := regexp.MustCompile("`([A-Za-z0-9-]+)`")
	rows := 0
	for i, line := range strings.Split(string(page), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") {
			continue
		}
		if strings.Contains(line, "| shown by |") {
			continue
		}
		rows++
		found := named.FindAllStringSubmatch(line, -1)
		if len(found) == 0 && !strings.Contains(line, "not covered, because") {
			t.Errorf("docs/behaviours.md:%d: it names no scenario or test, and gives no reason", i+1)
		}
		for _, m := range found {
			_, err := os.Stat("testdata/scenarios/" + m[1] + ".txt")
			if err != nil && !tests[m[1]] {
				t.Errorf("docs/behaviours.md:%d: %s is neither a scenario nor a test", i+1, m[1])
			}
		}
	}
	if rows < 60 {
		t.Errorf("only %d rows", rows)
	}
	stories, err := fs.Glob(os.DirFS("testdata/scenarios"), "*.txt")
	if err != nil {
		t.Fatal(err)
	}
	numbered := regexp.MustCompile(`^[a-z0-9-]+-[0-9]{3,}-`)
	for _, story := range stories {
		name := strings.TrimSuffix(story, ".txt")
		if numbered.MatchString(name) && !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/behaviours.md has no row for the scenario %s", name)
		}
	}
}

// testNames are the names of all test functions of the module.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	begins := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		source, err := os.ReadFile(name)
		for _, m := range begins.FindAllStringSubmatch(string(source), -1) {
			tests[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}
