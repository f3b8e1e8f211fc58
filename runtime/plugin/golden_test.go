package plugin

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// golden runs a module against a golden file, twice in each engine.
func golden(t *testing.T, wasm []byte, file string) {
	t.Helper()
	g, err := NewGolden(wasm, GoldenOptions{Name: "example",
		CacheDir: filepath.Join(work, "cache")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cases, rewritten, err := g.Run(file, string(text))
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		replace(t, file, rewritten)
		return
	}
	for _, c := range cases {
		if c.Got != c.Want {
			t.Errorf("%s:%d: got\n%swant\n%s", c.File, c.Line, c.Got, c.Want)
		}
		if c.Differs != "" {
			t.Errorf("%s:%d: %s", c.File, c.Line, c.Differs)
		}
	}
}

// replace puts a new text in a file's place at once: plugins in several languages share a file, and
// their tests run beside each other.
func replace(t *testing.T, file, text string) {
	t.Helper()
	next := filepath.Join(filepath.Dir(file), "."+strings.ReplaceAll(t.Name(), "/", "-"))
	if err := os.WriteFile(next, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, file); err != nil {
		t.Fatal(err)
	}
}

// TestExamples runs the examples of all SDKs. The same example in several languages has the same
// golden file.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"c-hottest", "c-drain", "rust-hottest", "rust-spread"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, example, _ := strings.Cut(name, "-")
			golden(t, readModule(t, filepath.Join(modules, name+".wasm")),
				filepath.Join(modules, example+".txt"))
		})
	}
	for _, name := range []string{"hottest", "keeplast"} {
		t.Run("go-"+name, func(t *testing.T) {
			t.Parallel()
			golden(t, goPlugin(t, name), filepath.Join(modules, name+".txt"))
		})
	}
}

// TestExamplesFromSource builds the C and Rust examples where their compilers are, so that what is
// committed and what is in the sources stay one thing.
func TestExamplesFromSource(t *testing.T) {
	t.Parallel()
	have := native()
	dir := t.TempDir()
	for name, examples := range map[string][]string{"c": {"hottest", "drain"},
		"rust": {"hottest", "spread"}} {
		if !slices.Contains(have, name) {
			t.Logf("there is no compiler for %s", name)
			continue
		}
		if err := runMake(modules, "-s", name, "OUT="+dir); err != nil {
			t.Fatal(err)
		}
		for _, e := range examples {
			golden(t, readModule(t, filepath.Join(dir, name+"-"+e+".wasm")),
				filepath.Join(modules, e+".txt"))
		}
	}
}

// TestExamplesTakeNoWrongSetting: a misspelt key, or a number that is none, would leave the default
// in force without a word.
func TestExamplesTakeNoWrongSetting(t *testing.T) {
	t.Parallel()
	for name, module := range map[string][]byte{
		"c":    readModule(t, filepath.Join(modules, "c-hottest.wasm")),
		"rust": readModule(t, filepath.Join(modules, "rust-hottest.wasm")),
		"go":   goPlugin(t, "hottest"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, err := NewGolden(module, GoldenOptions{CacheDir: filepath.Join(work, "cache")})
			if err != nil {
				t.Fatal(err)
			}
			for config, refused := range map[string]bool{
				`{}`: false, `{"window_seconds": 1}`: false, `{"window_second": 1}`: true,
				`{"window_seconds": 0}`: true, `{"window_seconds": -1}`: true,
				`{"window_seconds": "1h"}`: true, `{"window_seconds": 1, "x": {}}`: true,
			} {
				cases, _, err := g.Run(name, "config "+config+"\nlog a/0\nseg 0 10\n----\n")
				if err != nil {
					t.Fatal(err)
				}
				got := strings.Contains(cases[0].Got, "fault configure: ")
				if told := strings.Contains(cases[0].Got, "window_seconds"); got != refused ||
					told != refused {
					t.Errorf("config %s: %s", config, cases[0].Got)
				}
			}
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestGoRuntime tries what the programs of the Go runtime do. Every answer must be the same in
// each run and in both engines.
func TestGoRuntime(t *testing.T) {
	t.Parallel()
	g, err := NewGolden(goPlugin(t, "moody"), GoldenOptions{CacheDir: filepath.Join(work, "cache"),
		Limits: Limits{MemoryPages: 256, BatchFuel: 8e6}})
	if err != nil {
		t.Fatal(err)
	}
	for mood, want := range map[string]string{
		"print":      "output\nlog: hello from standard error\nlog: and a line without an end\na/0",
		"panic":      "fault trap: unreachable in runtime.abort < runtime.fatalpanic < ",
		"bounds":     "it logged: panic: runtime error: index out of range [1] with length 1",
		"exit":       "fault trap: it exited with code 3",
		"sleep":      "score 1\n", // an hour passed, and nobody waited
		"clock":      "score 1767225600\n",
		"random":     "score ",
		"maps":       "score ",
		"goroutines": "score 4950\n",
		"files":      "log: open /etc/passwd: ",
		"hoard":      "log: runtime: out of memory: ",
		"spin":       "fault fuel: it used up its fuel in main.",
		"refuse":     "fault configure: it answered 1; it logged: not today",
	} {
		text := fmt.Sprintf("config {\"mood\": %q}\nlog a/0\nseg 0 10\n----\n", mood)
		cases, _, err := g.Run(mood, text)
		if err != nil {
			t.Fatal(err)
		}
		if c := cases[0]; !strings.Contains(c.Got, want) || c.Differs != "" {
			t.Errorf("%s: got\n%s%s\nwant %q in it", mood, c.Got, c.Differs, want)
		}
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}
