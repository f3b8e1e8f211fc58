//go:build unix

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
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
	if err := d.rename("rename", "f", "g", linkRename); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: error %v, want %v", err, fs.ErrExist)
	}
	if err := d.rename("rename", "f", "h", linkRename); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"f": "", "g": "g", "h": "f"} {
		if got, _ := os.ReadFile(filepath.Join(root, name)); string(got) != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
}
