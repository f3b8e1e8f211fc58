package vfs_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
	"github.com/tierd/tierd/runtime/vfs/vfstest"
)

func TestOS(t *testing.T) {
	t.Parallel()
	vfstest.Run(t, func(t *testing.T) (vfs.Dir, func(target, name string) error) {
		root := t.TempDir()
		d, err := vfs.OpenOS(root)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		return d, func(target, name string) error {
			return os.Symlink(target, filepath.Join(root, name))
		}
	})
}

func TestMem(t *testing.T) {
	t.Parallel()
	vfstest.Run(t, func(*testing.T) (vfs.Dir, func(target, name string) error) {
		m := newMem()
		return m, m.Symlink
	})
}

// newMem has a clock that goes on by one nanosecond each time it is read.
func newMem() *vfs.Mem {
	var now tier.Time = 1000
	return vfs.NewMem(func() tier.Time {
		now++
		return now
	})
}

func TestOSDoesNotHangOnAPipe(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	check(t, syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600))
	d, err := vfs.OpenOS(root)
	check(t, err)
	if _, err := d.Open("pipe"); !errors.Is(err, vfs.ErrNotRegular) {
		t.Errorf("open: error %v, want %v", err, vfs.ErrNotRegular)
	}
	check(t, d.Close())
	if _, err := d.Stat("pipe"); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("stat after close: error %v, want %v", err, fs.ErrClosed)
	}
}

func TestOSErrorsNameThePlace(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d, err := vfs.OpenOS(root)
	check(t, err)
	check(t, d.Mkdir("dir"))
	sub, err := d.Sub("dir")
	check(t, err)
	want := fmt.Sprintf("rename %s/dir/f to %[1]s/dir/g: no such file or directory", root)
	if err := sub.Rename("f", "g"); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// lose and keep are the extreme crashes.
func lose(string, int) int { return 0 }
func keep(string, int) int { return 1 }

func TestCrashOfBytes(t *testing.T) {
	t.Parallel()
	m := newMem()
	f, err := m.Create("f")
	check(t, err)
	check(t, m.Sync("."))
	write(t, f, "abcd")
	check(t, f.Sync())
	write(t, f, "efgh")
	for choice, want := range []string{"abcd", "abcdefgh", "abcdef", "abcd\x00\x00\x00\x00"} {
		disk := m.Clone().Crash(func(string, int) int { return choice })
		if got := read(t, disk, "f"); got != want {
			t.Errorf("choice %d: got %q, want %q", choice, got, want)
		}
	}

	// After a cut, what was synced must not be overwritten in memory.
	check(t, f.Truncate(1))
	write(t, f, "X")
	if got := read(t, m.Clone().Crash(nil), "f"); got != "abcd" {
		t.Errorf("after a cut: got %q, want the synced bytes", got)
	}
}

func TestCrashOfNames(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		do         func(t *testing.T, m *vfs.Mem)
		lost, kept string // what there is if all is lost, and if all is kept
	}{
		{"create", func(t *testing.T, m *vfs.Mem) { put(t, m, "new") },
			"dir dir/a a", "dir dir/a a new"},
		{"create, synced", func(t *testing.T, m *vfs.Mem) {
			put(t, m, "new")
			check(t, m.Sync("."))
		}, "dir dir/a a new", "dir dir/a a new"},
		{"create below, only the parent synced", func(t *testing.T, m *vfs.Mem) {
			put(t, m, "dir/new")
			check(t, m.Sync("."))
		}, "dir dir/a a", "dir dir/a dir/new a"},
		{"mkdir and create, only the new directory synced", func(t *testing.T, m *vfs.Mem) {
			check(t, m.Mkdir("new"))
			put(t, m, "new/f")
			check(t, m.Sync("new"))
		}, "dir dir/a a", "dir dir/a new new/f a"},
		{"remove", func(t *testing.T, m *vfs.Mem) { check(t, m.Remove("a")) },
			"dir dir/a a", "dir dir/a"},
		{"remove, synced", func(t *testing.T, m *vfs.Mem) {
			check(t, m.Remove("a"))
			check(t, m.Sync("."))
		}, "dir dir/a", "dir dir/a"},
		{"rename", func(t *testing.T, m *vfs.Mem) { check(t, m.Rename("a", "b")) },
			"dir dir/a a", "dir dir/a b"},
		{"rename across, target synced", func(t *testing.T, m *vfs.Mem) {
			check(t, m.Rename("a", "dir/b"))
			check(t, m.Sync("dir"))
		}, "dir dir/a dir/b a", "dir dir/a dir/b"},
		{"rename across, source synced", func(t *testing.T, m *vfs.Mem) {
			check(t, m.Rename("a", "dir/b"))
			check(t, m.Sync("."))
		}, "dir dir/a dir/b", "dir dir/a dir/b"},
		{"replace, then replace again", func(t *testing.T, m *vfs.Mem) {
			put(t, m, "b")
			check(t, m.Replace("b", "a"))
			put(t, m, "b")
			check(t, m.Replace("b", "a"))
		}, "dir dir/a a", "dir dir/a a"},
		{"link", func(t *testing.T, m *vfs.Mem) { check(t, m.Link("a", "b")) },
			"dir dir/a a", "dir dir/a a b"},
		{"link, synced, and replace", func(t *testing.T, m *vfs.Mem) {
			check(t, m.Link("a", "b"))
			check(t, m.Sync("."))
			check(t, m.Replace("dir/a", "a"))
			check(t, m.Sync("."))
		}, "dir dir/a a b", "dir a b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newMem()
			check(t, m.Mkdir("dir"))
			put(t, m, "a")
			put(t, m, "dir/a")
			check(t, m.Sync("."))
			check(t, m.Sync("dir"))
			tt.do(t, m)
			if got := tree(t, m.Clone().Crash(lose)); got != tt.lost {
				t.Errorf("all lost: got %q, want %q", got, tt.lost)
			}
			if got := tree(t, m.Clone().Crash(keep)); got != tt.kept {
				t.Errorf("all kept: got %q, want %q", got, tt.kept)
			}
		})
	}
}

// TestCrashKeepsOrder tries every crash: a later change of a name never shows without an earlier
// one, and a file that is renamed is never lost.
func TestCrashKeepsOrder(t *testing.T) {
	t.Parallel()
	m := newMem()
	check(t, m.Mkdir("dir"))
	put(t, m, "a")
	check(t, m.Sync("."))
	check(t, m.Rename("a", "b"))
	check(t, m.Rename("b", "dir/c"))
	check(t, m.Rename("dir/c", "dir/d"))
	seen := map[string]bool{}
	for bits := range 1 << 4 {
		n := 0
		disk := m.Clone().Crash(func(string, int) int {
			n++
			return bits >> (n - 1) & 1
		})
		seen[tree(t, disk)] = true
	}
	for _, want := range []string{"dir a", "dir b", "dir dir/c b", "dir dir/c", "dir dir/d"} {
		if !seen[want] {
			t.Errorf("no crash leaves %q", want)
		}
		delete(seen, want)
	}
	// The old name's removal may lag behind both renames.
	delete(seen, "dir dir/d b")
	if len(seen) > 0 {
		t.Errorf("impossible crashes: %v", seen)
	}
}

func TestCrashEndsTheOldFileSystem(t *testing.T) {
	t.Parallel()
	m := newMem()
	check(t, m.Mkdir("dir"))
	sub, err := m.Sub("dir")
	check(t, err)
	f, err := m.Create("f")
	check(t, err)
	disk := m.Crash(keep)
	_, writeErr := f.Write([]byte("x"))
	for _, err := range []error{writeErr, f.Sync(), m.Mkdir("x"), sub.Mkdir("x")} {
		if !errors.Is(err, vfs.ErrCrashed) {
			t.Errorf("error %v, want %v", err, vfs.ErrCrashed)
		}
	}
	check(t, disk.Mkdir("x"))
}

func TestCloneIsIndependent(t *testing.T) {
	t.Parallel()
	m := newMem()
	f, err := m.Append("f")
	check(t, err)
	common := strings.Repeat("c", 100)
	write(t, f, common)
	write(t, f, " ") // and leaves room for more in memory, which must not be shared
	c := m.Clone()
	g, err := c.Append("f")
	check(t, err)
	write(t, f, "original")
	write(t, g, "clone")
	check(t, c.Mkdir("dir"))
	if got := read(t, m, "f") + "|" + read(t, c, "f"); got != common+" original|"+common+" clone" {
		t.Errorf("got %q", got)
	}
	if got := tree(t, m); got != "f" {
		t.Errorf("the clone's directory is in the original: %q", got)
	}
	check(t, g.Sync())
	check(t, c.Sync("."))
	if got := tree(t, c.Crash(nil)) + "|" + tree(t, m.Crash(nil)); got != "dir f|" {
		t.Errorf("after crashes: got %q", got)
	}
}

// TestPass: whoever has the file system from before it was passed on reaches nothing more, and who
// has it now finds all of it, and what of it is synced.
func TestPass(t *testing.T) {
	t.Parallel()
	m := newMem()
	f, err := m.Append("f")
	check(t, err)
	write(t, f, "synced")
	check(t, f.Sync())
	check(t, m.Mkdir("dir"))
	check(t, m.Sync("."))
	sub, err := m.Sub("dir")
	check(t, err)
	write(t, f, " and not")
	check(t, m.Mkdir("other"))
	next := m.Pass()
	_, err = f.Write([]byte("late"))
	for _, err := range []error{err, sub.Mkdir("late"), m.Mkdir("late"), m.Remove("f")} {
		if !errors.Is(err, vfs.ErrCrashed) {
			t.Errorf("after it was passed on: %v", err)
		}
	}
	if m.Look(".", func(i vfs.Info, _ []byte) { t.Errorf("%s is still there", i.Name) }); t.Failed() {
		return
	}
	if got := tree(t, next) + "|" + read(t, next, "f"); got != "dir other f|synced and not" {
		t.Errorf("passed on: %q", got)
	}
	after := next.Crash(nil)
	if got := tree(t, after) + "|" + read(t, after, "f"); got != "dir f|synced" {
		t.Errorf("after a crash: %q", got)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	onMkdir := func(effect vfs.Effect, err error) vfs.Fault {
		return func(op vfs.Op) (vfs.Effect, error) {
			if op.Kind == vfs.OpMkdir {
				return effect, err
			}
			return vfs.Proceed, nil
		}
	}
	tests := []struct {
		name   string
		effect vfs.Effect
		cause  error
		want   error
		tree   string // after a crash that keeps all
	}{
		{"proceed", vfs.Proceed, nil, nil, "dir"},
		{"fail", vfs.Fail, nil, syscall.EIO, ""},
		{"fail with a cause", vfs.Fail, syscall.ENOSPC, syscall.ENOSPC, ""},
		{"fail after", vfs.FailAfter, nil, syscall.EIO, "dir"},
		{"crash before", vfs.CrashBefore, nil, vfs.ErrCrashed, ""},
		{"crash after", vfs.CrashAfter, nil, vfs.ErrCrashed, "dir"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newMem()
			m.SetFault(onMkdir(tt.effect, tt.cause))
			if err := m.Mkdir("dir"); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			_, err := m.Stat(".")
			if crashed := errors.Is(err, vfs.ErrCrashed); crashed != (tt.want == vfs.ErrCrashed) {
				t.Errorf("afterwards: %v", err)
			}
			if got := tree(t, m.Crash(keep)); got != tt.tree {
				t.Errorf("got %q, want %q", got, tt.tree)
			}
		})
	}
}

// TestFaultSeesEveryOperation checks that operations are counted without gaps, so that a sweep
// over "the n-th fails" leaves none out.
func TestFaultSeesEveryOperation(t *testing.T) {
	t.Parallel()
	m := newMem()
	var seen []vfs.Op
	m.SetFault(func(op vfs.Op) (vfs.Effect, error) {
		seen = append(seen, op)
		return vfs.Proceed, nil
	})
	check(t, m.Mkdir("dir"))
	sub, err := m.Sub("dir")
	check(t, err)
	f, err := sub.Create("f")
	check(t, err)
	write(t, f, "x")
	check(t, f.Sync())
	check(t, sub.Rename("f", "g"))
	check(t, sub.Sync("."))
	want := []vfs.Op{
		{Kind: vfs.OpMkdir, Path: "dir", Count: 0}, {Kind: vfs.OpSub, Path: "dir", Count: 1},
		{Kind: vfs.OpCreate, Path: "dir/f", Count: 2}, {Kind: vfs.OpWrite, Path: "dir/f", Count: 3},
		{Kind: vfs.OpSync, Path: "dir/f", Count: 4},
		{Kind: vfs.OpRename, Path: "dir/f", To: "dir/g", Count: 5},
		{Kind: vfs.OpSyncDir, Path: "dir", Count: 6},
	}
	if !slices.Equal(seen, want) {
		t.Errorf("got  %v\nwant %v", seen, want)
	}
}

// TestSyncAfterAFailedSync checks that Mem does as Linux: the second fsync lies.
func TestSyncAfterAFailedSync(t *testing.T) {
	t.Parallel()
	m := newMem()
	f, err := m.Create("f")
	check(t, err)
	check(t, m.Sync("."))
	write(t, f, "x")
	m.SetFault(func(op vfs.Op) (vfs.Effect, error) { return vfs.Fail, nil })
	if f.Sync() == nil {
		t.Fatal("the fault did not fire")
	}
	m.SetFault(nil)
	check(t, f.Sync())
	disk := m.Crash(nil)
	if got := read(t, disk, "f"); got != "" {
		t.Errorf("got %q: the bytes of a failed fsync became durable", got)
	}
	f, err = disk.Append("f")
	check(t, err)
	write(t, f, "y")
	check(t, f.Sync())
	if got := read(t, disk.Crash(nil), "f"); got != "y" {
		t.Errorf("got %q: after a crash, fsync does not work", got)
	}
}

func TestChmod(t *testing.T) {
	t.Parallel()
	m := newMem()
	put(t, m, "f")
	check(t, m.Mkdir("dir"))
	put(t, m, "dir/f")
	check(t, m.Chmod("f", 0))
	_, openErr := m.Open("f")
	check(t, m.Chmod("dir", 0o500))
	_, createErr := m.Create("dir/g")
	removeErr := m.Remove("dir/f")
	check(t, m.Chmod("dir", 0o600))
	_, searchErr := m.Open("dir/f")
	check(t, m.Chmod("dir", 0o300))
	_, listErr := m.List("dir")
	for _, err := range []error{openErr, createErr, removeErr, searchErr, listErr} {
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("error %v, want %v", err, fs.ErrPermission)
		}
	}
}

// BenchmarkOSList lists directories of 100 segments of three files each.
func BenchmarkOSList(b *testing.B) {
	root := b.TempDir()
	for i := range 300 {
		name := filepath.Join(root, fmt.Sprintf("%020d.log", i))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	d, err := vfs.OpenOS(filepath.Dir(root))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if infos, err := d.List(filepath.Base(root)); err != nil || len(infos) != 300 {
			b.Fatal(len(infos), err)
		}
	}
}

func put(t *testing.T, d vfs.Dir, name string) {
	t.Helper()
	f, err := d.Create(name)
	check(t, err)
	check(t, f.Close())
}

func write(t *testing.T, f vfs.File, content string) {
	t.Helper()
	_, err := f.Write([]byte(content))
	check(t, err)
}

func read(t *testing.T, d vfs.Dir, name string) string {
	t.Helper()
	f, err := d.Open(name)
	check(t, err)
	b, err := io.ReadAll(f)
	check(t, err)
	check(t, f.Close())
	return string(b)
}

// tree gives the paths of all directories, each with what is in it, and files.
func tree(t *testing.T, d vfs.Dir) string {
	t.Helper()
	var dirs, files string
	infos, err := d.List(".")
	check(t, err)
	for _, info := range infos {
		if !info.Mode.IsDir() {
			files += info.Name + " "
			continue
		}
		dirs += info.Name + " "
		inner, err := d.List(info.Name)
		check(t, err)
		for _, in := range inner {
			dirs += info.Name + "/" + in.Name + " "
		}
	}
	all := dirs + files
	return all[:max(0, len(all)-1)]
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestCapacity: a disk that is full takes what fits, says so, and goes on when there is room.
func TestCapacity(t *testing.T) {
	t.Parallel()
	m := newMem()
	m.SetCapacity(10)
	f, err := m.Append("f")
	check(t, err)
	write(t, f, "abcdef")
	check(t, m.Link("f", "g")) // takes no room
	if n, err := f.Write([]byte("ghijkl")); n != 4 || !errors.Is(err, vfs.ErrFull) {
		t.Errorf("%d bytes, %v; want 4, %v", n, err, vfs.ErrFull)
	}
	put(t, m, "empty") // names are free
	if n, err := f.Write([]byte("x")); n != 0 || !errors.Is(err, vfs.ErrFull) {
		t.Errorf("%d bytes, %v; want none, %v", n, err, vfs.ErrFull)
	}
	check(t, f.Truncate(9))
	write(t, f, "J")
	if got := read(t, m, "g"); got != "abcdefghiJ" {
		t.Errorf("got %q", got)
	}
	m.SetCapacity(0)
	write(t, f, "K")
}
