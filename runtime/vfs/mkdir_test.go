//go:build unix

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/tierd/tierd/runtime/tier"
)

// TestMkdirAllIsDurable: the machine stops before and after each operation. Once the call has
// returned, the directory is there, and what is synced in it stays.
func TestMkdirAllIsDurable(t *testing.T) {
	t.Parallel()
	for _, effect := range []Effect{CrashBefore, CrashAfter, Fail} {
		for n := range 100 {
			m := NewMem(func() tier.Time { return 0 })
			fired := false
			m.SetFault(func(op Op) (Effect, error) {
				if op.Count != n {
					return Proceed, nil
				}
				fired = true
				return effect, nil
			})
			err := mkdirAll(m, "a/b/c")
			if !fired && err != nil {
				t.Fatal(err)
			}
			if fired && err == nil && effect == Fail {
				t.Errorf("operation %d failed, and nobody was told", n)
			}
			disk := m.Crash(nil)
			if _, lost := disk.Stat("a/b/c"); err == nil && lost != nil {
				t.Errorf("after operation %d: %v", n, lost)
			}
			if err := mkdirAll(disk, "a/b/c"); err != nil {
				t.Errorf("operation %d, the next try: %v", n, err)
			}
			if _, lost := disk.Crash(nil).Stat("a/b/c"); lost != nil {
				t.Errorf("operation %d, after the next try: %v", n, lost)
			}
			if !fired {
				break
			}
		}
	}
}

// TestMkdirAll: only what is missing is made, with these permission bits, also behind a link; and
// an error names the place.
func TestMkdirAll(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(root, "real"), 0o755),
		os.Symlink("real", filepath.Join(root, "way")),
		os.WriteFile(filepath.Join(root, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := MkdirAll(filepath.Join(root, "way", "a", "b"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]fs.FileMode{"real": 0o755, "real/a": 0o700, "real/a/b": 0o700} {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil || !info.IsDir() || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v, want a directory with %v", name, info, err, want)
		}
	}
	for _, name := range []string{"file", "file/below"} {
		err := MkdirAll(filepath.Join(root, name), 0o700)
		if path := (*fs.PathError)(nil); !errors.As(err, &path) || path.Path == "" {
			t.Errorf("%s: %v, want an error that names it", name, err)
		}
	}
}
