package tierd_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// stories are where they lie: those of the world, and those of the real command.
var stories = []string{"testdata/scenarios", "cmd/tierd/testdata/script"}

// TestBehaviours sees to it that each story and test that docs/behaviours.md names exists, that
// each row names one, and each report and each thing that Fluss tests a story, and that each story
// with a report's number in its name has a row.
func TestBehaviours(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/behaviours.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := testNames(t)
	named := regexp.MustCompile("`([A-Za-z0-9-]+)`")
	rows, told := 0, false
	for i, line := range strings.Split(string(page), "\n") {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			told = title == "Reports" || title == "What Fluss tests"
		}
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") {
			continue
		}
		if strings.Contains(line, "| shown by |") {
			continue
		}
		rows++
		tells := 0
		found := named.FindAllStringSubmatch(line, -1)
		for _, m := range found {
			if isStory(m[1]) {
				tells++
			} else if !tests[m[1]] {
				t.Errorf("docs/behaviours.md:%d: %s is neither a story nor a test", i+1, m[1])
			}
		}
		if len(found) == 0 || told && tells == 0 {
			t.Errorf("docs/behaviours.md:%d: it names no story, or nothing at all", i+1)
		}
	}
	if rows < 60 {
		t.Errorf("only %d rows", rows)
	}
	numbered := regexp.MustCompile(`^[a-z0-9-]+-[0-9]{3,}(-|$)`)
	for _, dir := range stories {
		files, err := fs.Glob(os.DirFS(dir), "*.txt")
		if err != nil || len(files) == 0 {
			t.Fatalf("no story in %s: %v", dir, err)
		}
		for _, file := range files {
			name := strings.TrimSuffix(file, ".txt")
			if numbered.MatchString(name) && !strings.Contains(string(page), "`"+name+"`") {
				t.Errorf("docs/behaviours.md has no row for the story %s", name)
			}
		}
	}
}

func isStory(name string) bool {
	for _, dir := range stories {
		if _, err := os.Stat(dir + "/" + name + ".txt"); err == nil {
			return true
		}
	}
	return false
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
