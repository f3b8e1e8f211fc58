//go:build unix

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLinkRename covers the file systems that cannot refuse to replace.
func TestLinkRename(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, name := range []string{"f", "g"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := OpenOS(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.pair("rename", "f", "g", linkRename); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: error %v, want %v", err, fs.ErrExist)
	}
	if err := d.pair("rename", "f", "h", linkRename); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"f": "", "g": "g", "h": "f"} {
		if got, _ := os.ReadFile(filepath.Join(root, name)); string(got) != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
}

// TestDescend covers the way to a directory on kernels that go there by one system call, and on
// those that do not: both must find the same, and refuse the same.
func TestDescend(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, err := range []error{
		os.MkdirAll(filepath.Join(root, "a", "b", "c"), 0o700),
		os.WriteFile(filepath.Join(root, "a", "file"), nil, 0o600),
		os.Symlink("b", filepath.Join(root, "a", "link")),
		os.Symlink("..", filepath.Join(root, "a", "b", "up")),
		os.Symlink("/", filepath.Join(root, "a", "out")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	d, err := OpenOS(root)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		"a": nil, "a/b": nil, "a/b/c": nil,
		"a/link": errLink, "a/link/c": errLink, "a/b/up": errLink, "a/b/up/b": errLink,
		"a/out": errLink, "a/out/tmp": errLink,
		"a/file": syscall.ENOTDIR, "a/file/x": syscall.ENOTDIR,
		"no": fs.ErrNotExist, "a/no/c": fs.ErrNotExist,
	} {
		for name, descend := range map[string]func(int, []string) (int, error){
			"descend": descend, "walk": walk,
		} {
			err := withFD(d.dir, func(fd int) error {
				dir, err := descend(fd, strings.Split(path, "/"))
				if err != nil {
					return err
				}
				defer func() { _ = unix.Close(dir) }()
				var got, want unix.Stat_t
				if err := unix.Fstat(dir, &got); err != nil {
					return err
				}
				if err := unix.Stat(filepath.Join(root, path), &want); err != nil {
					return err
				}
				if got.Ino != want.Ino {
					t.Errorf("%s to %s leads to inode %d, want %d", name, path, got.Ino, want.Ino)
				}
				return nil
			})
			if !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("%s to %s: error %v, want %v", name, path, err, want)
			}
		}
	}
}
