package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestReadRegular: what is no regular file, or too large, is an error that names it, and holds up
// nobody.
func TestReadRegular(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(syscall.Mkfifo(at("pipe"), 0o600), os.Symlink("pipe", at("piped")),
		os.Mkdir(at("dir"), 0o700),
		os.Symlink("/dev/zero", at("zero")), os.Symlink("full", at("link")),
		os.WriteFile(at("full"), []byte("0123456789"), 0o600),
		os.WriteFile(at("more"), []byte("0123456789a"), 0o600),
		os.WriteFile(at("huge"), nil, 0o600), os.Truncate(at("huge"), 1<<40)); err != nil {
		t.Fatal(err)
	}
	const large = "it is too large: more than 10 bytes"
	for name, want := range map[string]string{
		"full": "", "link": "", "more": large, "huge": large,
		"pipe": errNoFile.Error(), "piped": errNoFile.Error(), "zero": errNoFile.Error(),
		"none": "no such file or directory", "dir": "is a directory",
	} {
		type answer struct {
			content []byte
			err     error
		}
		done := make(chan answer, 1)
		go func() {
			content, err := ReadRegular(at(name), 10)
			done <- answer{content, err}
		}()
		select {
		case got := <-done:
			var path *fs.PathError
			switch {
			case want == "" && (got.err != nil || string(got.content) != "0123456789"):
				t.Errorf("%s: %q, %v", name, got.content, got.err)
			case want != "" && (!errors.As(got.err, &path) || len(got.content) > 10 ||
				errors.Is(got.err, ErrTooLarge) != (want == large) ||
				!strings.HasSuffix(got.err.Error(), name+": "+want)):
				t.Errorf("%s: %q, %v; want %s", name, got.content, got.err, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: it is still being read", name)
		}
	}
}
