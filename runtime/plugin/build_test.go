package plugin

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files from what the plugins answer")

const modules = "../../testdata/plugins" // committed modules and their golden files

// work is a folder of this test run: Go plugins are built and compiled once in it.
var work string

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	if work, err = os.MkdirTemp("", "tierd-plugins-"); err != nil {
		return 1, err
	}
	code = m.Run()
	return code, os.RemoveAll(work)
}

// goPlugins builds the Go plugins, all of them in one go.
var goPlugins = sync.OnceValue(func() error {
	for _, from := range []string{"./sdk/go/examples/hottest", "./sdk/go/examples/keeplast",
		"./testdata/moody"} {
		if err := buildGo(".", from, filepath.Join(work,
			"go-"+filepath.Base(from)+".wasm")); err != nil {
			return err
		}
	}
	return nil
})

func buildGo(dir, from, to string) error {
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", to, from)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", from, err, out)
	}
	return nil
}

// goPlugin returns a Go plugin's module.
func goPlugin(t testing.TB, name string) []byte {
	t.Helper()
	if err := goPlugins(); err != nil {
		t.Fatal(err)
	}
	return readModule(t, filepath.Join(work, "go-"+name+".wasm"))
}

func readModule(t testing.TB, path string) []byte {
	t.Helper()
	wasm, err := ReadModule(path)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// native tells which of the compilers for other guest languages this machine has.
func native() (languages []string) {
	const tools = "command -v make && command -v clang && command -v wasm-ld"
	if exec.Command("sh", "-c", tools).Run() == nil {
		languages = append(languages, "c")
	}
	if rustc() != "" {
		languages = append(languages, "rust")
	}
	return languages
}

// rustc is a Rust compiler that can build for WebAssembly, with its linker, which Debian has in a
// package of its own; empty if there is none.
func rustc() string {
	for _, path := range []string{"/usr/bin/rustc", "rustc"} {
		root, err := exec.Command(path, "--print", "sysroot").Output()
		if err != nil {
			continue
		}
		lib := filepath.Join(strings.TrimSpace(string(root)), "lib/rustlib")
		if _, err := os.Stat(filepath.Join(lib, "wasm32-unknown-unknown")); err != nil {
			continue
		}
		own, _ := filepath.Glob(filepath.Join(lib, "*", "bin", "rust-lld"))
		if _, err := exec.LookPath("rust-lld"); err == nil || len(own) > 0 {
			return path
		}
	}
	return ""
}

// runMake runs make in dir with the Rust compiler that native found.
func runMake(dir string, args ...string) error {
	cmd := exec.Command("make", append(args, "RUSTC="+rustc())...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
