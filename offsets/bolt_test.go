package offsets_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/offsets/offsetstest"
	"github.com/tierd/tierd/runtime/tier"
)

func newID() [16]byte { return [16]byte{0xB0, 0x17} }

// TestBolt runs the suite with a journal that is never full, with one that is full after a few
// records, and with one that is full at once.
func TestBolt(t *testing.T) {
	t.Parallel()
	for _, journal := range []int{0, 1000, 1} {
		t.Run(fmt.Sprintf("journal=%d", journal), func(t *testing.T) {
			t.Parallel()
			offsetstest.Run(t, func(t *testing.T) offsetstest.Disk {
				path := filepath.Join(t.TempDir(), "ledger.db")
				return func() (offsets.Medium, error) {
					return offsets.OpenBolt(path, offsets.BoltOptions{NewID: newID,
						JournalBytesMax: journal})
				}
			})
		})
	}
}

var (
	writing = offsets.BoltOptions{NewID: newID}
	reading = offsets.BoltOptions{ReadOnly: true}
)

func mustOpen(t *testing.T, path string, o offsets.BoltOptions) *offsets.Bolt {
	t.Helper()
	b, err := offsets.OpenBolt(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// opens checks what opening a path gives: no error, or one that wraps want and has all the words.
func opens(t *testing.T, path string, o offsets.BoltOptions, want error, words ...string) {
	t.Helper()
	b, err := offsets.OpenBolt(path, o)
	if !errors.Is(err, want) || want == nil && err != nil {
		t.Fatalf("got error %v, want %v", err, want)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not say %q", err, word)
		}
	}
	if b != nil {
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLock shows who may have the file open at the same time.
func TestLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	owner := mustOpen(t, path, writing)
	words := []string{path}
	if runtime.GOOS == "linux" {
		words = append(words, fmt.Sprintf("pid %d", os.Getpid()))
	}
	opens(t, path, writing, offsets.ErrInUse, words...)
	opens(t, path, reading, offsets.ErrInUse, words...)
	owner.Close()

	reader := mustOpen(t, path, reading)
	opens(t, path, reading, nil)
	opens(t, path, writing, offsets.ErrInUse, path)
	reader.Close()
	opens(t, path, writing, nil)
}

// TestReadOnly shows that a reading command reads everything and changes nothing.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	opens(t, path, reading, tier.ErrVanished, path)
	opens(t, path, reading, fs.ErrNotExist)
	b := mustOpen(t, path, writing)
	if err := seen(t, b, 3); err != nil {
		t.Fatal(err)
	}
	b.Close()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := snapshot(t, mustOpen(t, path, reading)).Clock; got != 3 {
		t.Errorf("clock: got %d, want 3", got)
	}
	if err := seen(t, mustOpen(t, path, reading), 1); err == nil {
		t.Error("a record was taken by a ledger that is open for reading")
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, after) {
		t.Error("reading has changed the file")
	}
}

// TestBirth shows that an id is made once, also where the first attempt to make the ledger stopped
// half way.
func TestBirth(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(path string) error{
		"no file":      func(string) error { return nil },
		"an empty one": func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"one without an id": func(path string) error {
			if b, err := offsets.OpenBolt(path, offsets.BoltOptions{}); err == nil {
				return errors.Join(errors.New("a ledger was made without an id"), b.Close())
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "ledger.db")
			if err := begin(path); err != nil {
				t.Fatal(err)
			}
			opens(t, path, writing, nil)
			other := offsets.BoltOptions{NewID: func() [16]byte { return [16]byte{0xFF} }}
			if got := snapshot(t, mustOpen(t, path, other)).ID; got != fmt.Sprintf("%x", newID()) {
				t.Errorf("the id became %s", got)
			}
		})
	}
}

// TestUnborn shows that a file to which nothing was written is no ledger for a reader.
func TestUnborn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	if _, err := offsets.OpenBolt(path, offsets.BoltOptions{}); err == nil {
		t.Fatal("a ledger was made without an id")
	}
	opens(t, path, reading, tier.ErrVanished, path)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	opens(t, path, reading, tier.ErrVanished, path, "empty")
}

// TestCutShort shows that a ledger whose end is missing is damaged, and that nobody has to read
// what bbolt stumbled over.
func TestCutShort(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	opens(t, path, writing, nil)
	for _, size := range []int64{10000, 5000, 4000, 1} {
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		for _, o := range []offsets.BoltOptions{writing, reading} {
			_, err := offsets.OpenBolt(path, o)
			if !errors.Is(err, tier.ErrDamaged) || strings.Contains(err.Error(), "runtime") ||
				strings.Count(err.Error(), "damaged") > 1 || !strings.Contains(err.Error(), path) {
				t.Errorf("%d bytes: %v", size, err)
			}
		}
	}
}

func TestNoDirectory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none", "ledger.db")
	opens(t, path, writing, fs.ErrNotExist, path)
	var isDir *fs.PathError
	if _, err := offsets.OpenBolt(t.TempDir(), writing); !errors.As(err, &isDir) {
		t.Errorf("a directory was opened: %v", err)
	}
}

// TestNoLedger shows that a file of something else is damaged, and stays as it is.
func TestNoLedger(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	content := bytes.Repeat([]byte("no ledger "), 5000)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	opens(t, path, writing, tier.ErrDamaged, path, "tierd rebuild")
	if after, _ := os.ReadFile(path); !bytes.Equal(content, after) {
		t.Error("the file was changed")
	}
}
