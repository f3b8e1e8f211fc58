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

// TestReadStill: a file that lies still is read with its time, and one that is written to meanwhile
// is not read, however it is written to.
func TestReadStill(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_000_000_000, 0)
	for name, c := range map[string]struct {
		write func(path string) error
		want  error
	}{
		"still": {func(string) error { return nil }, nil},
		"grown": {func(path string) error { return os.WriteFile(path, []byte("0123"), 0o600) },
			ErrChanged},
		"cut off": {func(path string) error { return os.Truncate(path, 1) }, ErrChanged},
		"touched": {func(path string) error { return os.Chtimes(path, at, at.Add(1)) }, ErrChanged},
		"replaced": {func(path string) error { // the one that is open is whole
			return errors.Join(os.Remove(path), os.WriteFile(path, []byte("other"), 0o600))
		}, nil},
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := errors.Join(os.WriteFile(path, []byte("012"), 0o600),
			os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
		content, modTime, err := readStillWhile(path, func() error { return c.write(path) })
		if !errors.Is(err, c.want) || err == nil && (string(content) != "012" || !modTime.Equal(at)) {
			t.Errorf("%s: %q of %s, %v", name, content, modTime, err)
		}
	}
	if content, modTime, err := ReadStill("regular_test.go", 10); !errors.Is(err, ErrTooLarge) ||
		content != nil || !modTime.IsZero() {
		t.Errorf("a large file: %q, %s, %v", content, modTime, err)
	}
}

// readStillWhile is ReadStill while somebody else writes.
func readStillWhile(path string, write func() error) (content []byte, at time.Time, err error) {
	err = open(path, func(f *os.File) (err error) {
		content, at, err = still(f, func() ([]byte, error) {
			content, err := readRegular(f, 10)
			return content, errors.Join(err, write())
		})
		return err
	})
	return content, at, err
}
