package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestNoRegularFile: a pipe, a device or a file without an end, wherever the configuration names a
// file, is a problem that names it, and holds up nobody.
func TestNoRegularFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(syscall.Mkfifo(at("pipe.rego"), 0o600),
		syscall.Mkfifo(at("pipe.yaml"), 0o600), os.Mkdir(at("linked"), 0o700),
		os.Symlink("../pipe.rego", at("linked/a.rego")), os.Mkdir(at("beside"), 0o700),
		os.WriteFile(at("beside/a.rego"), []byte("package tierd.a\n"), 0o600),
		syscall.Mkfifo(at("beside/b.rego"), 0o600),
		os.Symlink("/dev/zero", at("zero.rego")),
		os.WriteFile(at("huge.rego"), nil, 0o600), os.Truncate(at("huge.rego"), 1<<40)); err != nil {
		t.Fatal(err)
	}
	const head = "sources: [{name: w, layout: plain, path: /srv/wal}]\n" +
		"bucket: {type: FILESYSTEM, config: {directory: bucket}}\n"
	const none = "it is no regular file, and nothing else is read"
	for _, c := range []struct{ policies, want string }{
		{"paths: [pipe.rego]", "pipe.rego: " + none},
		{"paths: [linked]", "linked/a.rego: " + none},
		{"paths: [beside]", "beside/b.rego: " + none},
		{"paths: [zero.rego]", "zero.rego: " + none},
		{"paths: [huge.rego]", "huge.rego is larger than 4MiB"},
		{"data: [pipe.yaml]", "pipe.yaml: " + none},
		{"", "pipe.yaml: cannot be read: " + none},
	} {
		path := at("pipe.yaml")
		if c.policies != "" {
			path = filepath.Join(t.TempDir(), "tierd.yaml")
			text := strings.NewReplacer("[", "["+dir+"/").Replace(c.policies)
			content := head + "policies: {" + text + "}\n"
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan error, 1)
		go func() {
			_, err := LoadGeneration(path, OS())
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", c.policies, err, c.want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: it is still being read", c.policies)
		}
	}
}
