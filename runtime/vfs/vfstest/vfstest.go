// Package vfstest is the conformance suite of vfs.Dir, which every implementation runs, and a walk
// over all that a crash of a vfs.Mem can leave.
package vfstest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"testing"

	"github.com/tierd/tierd/runtime/vfs"
)

// New returns an empty directory, and a function that makes links in it.
type New func(t *testing.T) (dir vfs.Dir, symlink func(target, name string) error)

// Run checks everything that the comments of vfs.Dir and vfs.File promise and that needs no crash.
func Run(t *testing.T, newDir New) {
	tests := []struct {
		name string
		test func(t *testing.T, d vfs.Dir)
	}{
		{"write and read", testWriteRead},
		{"append", testAppend},
		{"truncate", testTruncate},
		{"open wants a regular file", testOpen},
		{"create never opens what exists", testCreate},
		{"stat", testStat},
		{"list", testList},
		{"directories", testDirectories},
		{"rename never replaces", testRename},
		{"replace", testReplace},
		{"link", testLink},
		{"remove", testRemove},
		{"sync", testSync},
		{"names are confined", testNames},
		{"sub", testSub},
		{"concurrent use", testConcurrent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d, _ := newDir(t)
			tt.test(t, d)
		})
	}
	t.Run("links are refused", func(t *testing.T) {
		t.Parallel()
		d, symlink := newDir(t)
		testLinks(t, d, symlink)
	})
}

func testWriteRead(t *testing.T, d vfs.Dir) {
	f, err := d.Create("f")
	ok(t, err)
	write(t, f, "hello, ")
	write(t, f, "world")
	b := make([]byte, 5)
	n, err := f.ReadAt(b, 7)
	ok(t, err)
	equal(t, string(b[:n]), "world")
	n, err = f.ReadAt(b, 9)
	is(t, err, io.EOF)
	equal(t, string(b[:n]), "rld")
	info, err := f.Stat()
	ok(t, err)
	equal(t, info.Name, "f")
	equal(t, info.Size, 12)
	f.DropCache(0, 12)
	ok(t, f.Sync())
	ok(t, f.Close())
	is(t, f.Close(), fs.ErrClosed)
	_, err = f.Write([]byte("x"))
	is(t, err, fs.ErrClosed)
	equal(t, read(t, d, "f"), "hello, world")

	r, err := d.Open("f")
	ok(t, err)
	if _, err := r.Write([]byte("x")); err == nil {
		t.Error("a file opened for reading was written")
	}
	ok(t, d.Remove("f"))
	got, err := io.ReadAll(r)
	ok(t, err)
	equal(t, string(got), "hello, world") // an open file outlives its name
	ok(t, r.Close())
}

func testAppend(t *testing.T, d vfs.Dir) {
	for _, s := range []string{"one ", "two ", "three"} {
		f, err := d.Append("f")
		ok(t, err)
		write(t, f, s)
		ok(t, f.Close())
	}
	equal(t, read(t, d, "f"), "one two three")

	a, err := d.Append("f")
	ok(t, err)
	b, err := d.Append("f")
	ok(t, err)
	write(t, a, "A")
	write(t, b, "B")
	write(t, a, "A")
	got := make([]byte, 3)
	_, err = a.ReadAt(got, 13)
	ok(t, err)
	equal(t, string(got), "ABA")
	ok(t, a.Close())
	ok(t, b.Close())
}

func testTruncate(t *testing.T, d vfs.Dir) {
	f, err := d.Append("f")
	ok(t, err)
	write(t, f, "0123456789")
	ok(t, f.Sync())
	ok(t, f.Truncate(4))
	write(t, f, "x")
	equal(t, read(t, d, "f"), "0123x")
	ok(t, f.Truncate(7))
	equal(t, read(t, d, "f"), "0123x\x00\x00")
	if f.Truncate(-1) == nil {
		t.Error("truncated to a negative size")
	}
	ok(t, f.Close())
}

func testOpen(t *testing.T, d vfs.Dir) {
	ok(t, d.Mkdir("dir"))
	_, err := d.Open("dir")
	is(t, err, vfs.ErrNotRegular)
	_, err = d.Open(".")
	is(t, err, vfs.ErrNotRegular)
	_, err = d.Append("dir")
	is(t, err, vfs.ErrNotRegular)
	_, err = d.Open("absent")
	is(t, err, fs.ErrNotExist)
	_, err = d.Open("absent/f")
	is(t, err, fs.ErrNotExist)
	var pathErr *fs.PathError
	if !errors.As(err, &pathErr) {
		t.Errorf("error %#v is no *fs.PathError", err)
	}
	put(t, d, "file", "")
	if _, err := d.Open("file/f"); err == nil {
		t.Error("a file served as a directory")
	}
}

func testCreate(t *testing.T, d vfs.Dir) {
	put(t, d, "f", "kept")
	_, err := d.Create("f")
	is(t, err, fs.ErrExist)
	equal(t, read(t, d, "f"), "kept")
	ok(t, d.Mkdir("dir"))
	_, err = d.Create("dir")
	is(t, err, fs.ErrExist)
	_, err = d.Create("absent/f")
	is(t, err, fs.ErrNotExist)
}

func testStat(t *testing.T, d vfs.Dir) {
	put(t, d, "f", "four")
	info, err := d.Stat("f")
	ok(t, err)
	equal(t, info.Name, "f")
	equal(t, info.Size, 4)
	equal(t, info.Regular(), true)
	if info.Inode == 0 || info.ModTime == 0 {
		t.Errorf("stat %+v lacks an inode or a time", info)
	}
	r, err := d.Open("f")
	ok(t, err)
	ok(t, d.Rename("f", "g"))
	open, err := r.Stat()
	ok(t, err)
	equal(t, open.Stat, info.Stat)
	ok(t, r.Close())
	moved, err := d.Stat("g")
	ok(t, err)
	equal(t, moved.Stat, info.Stat)
	put(t, d, "f", "four")
	other, err := d.Stat("f")
	ok(t, err)
	if other.Inode == info.Inode {
		t.Error("two files have one inode")
	}
	_, err = d.Stat("absent")
	is(t, err, fs.ErrNotExist)
}

func testList(t *testing.T, d vfs.Dir) {
	equal(t, names(t, d, "."), "")
	for i := range 300 {
		put(t, d, fmt.Sprintf("%03d", i*7%300), "")
	}
	ok(t, d.Mkdir("dir"))
	put(t, d, "dir/inner", "12345")
	infos, err := d.List(".")
	ok(t, err)
	equal(t, len(infos), 301)
	for i, info := range infos[:300] {
		equal(t, info.Name, fmt.Sprintf("%03d", i))
	}
	equal(t, infos[300].Mode.IsDir(), true)
	all, err := d.Names(".")
	ok(t, err)
	equal(t, len(all), len(infos))
	for i, info := range infos {
		equal(t, all[i], info.Name)
	}
	infos, err = d.List("dir")
	ok(t, err)
	want, err := d.Stat("dir/inner")
	ok(t, err)
	equal(t, infos[0], want)
	_, err = d.List("absent")
	is(t, err, fs.ErrNotExist)
	_, err = d.Names("absent")
	is(t, err, fs.ErrNotExist)
	if _, err := d.List("000"); err == nil {
		t.Error("a file was listed")
	}
	if _, err := d.Names("000"); err == nil {
		t.Error("the names in a file were listed")
	}
}

func testDirectories(t *testing.T, d vfs.Dir) {
	ok(t, d.Mkdir("a"))
	ok(t, d.Mkdir("a/b"))
	is(t, d.Mkdir("a"), fs.ErrExist)
	is(t, d.Mkdir("x/y"), fs.ErrNotExist)
	put(t, d, "a/b/f", "deep")
	equal(t, read(t, d, "a/b/f"), "deep")
	is(t, d.Mkdir("a/b/f"), fs.ErrExist)
}

func testRename(t *testing.T, d vfs.Dir) {
	put(t, d, "f", "f")
	put(t, d, "g", "g")
	ok(t, d.Mkdir("dir"))
	is(t, d.Rename("f", "g"), fs.ErrExist)
	is(t, d.Rename("f", "dir"), fs.ErrExist)
	is(t, d.Rename("f", "f"), fs.ErrExist)
	is(t, d.Rename("absent", "h"), fs.ErrNotExist)
	is(t, d.Rename("f", "absent/h"), fs.ErrNotExist)
	equal(t, read(t, d, "f")+read(t, d, "g"), "fg")
	ok(t, d.Rename("f", "dir/f"))
	ok(t, d.Rename("g", "h"))
	equal(t, names(t, d, ".")+names(t, d, "dir"), "dir h f ")
	for _, rename := range []func(from, to string) error{d.Rename, d.Replace} {
		if rename("dir", "dir/dir") == nil {
			t.Error("a directory was moved into itself")
		}
	}
}

func testReplace(t *testing.T, d vfs.Dir) {
	put(t, d, "f", "old")
	put(t, d, "g", "new")
	r, err := d.Open("f")
	ok(t, err)
	ok(t, d.Replace("g", "f"))
	equal(t, read(t, d, "f"), "new")
	got, err := io.ReadAll(r)
	ok(t, err)
	equal(t, string(got), "old") // who has opened the old file keeps it
	ok(t, r.Close())
	ok(t, d.Replace("f", "h"))
	ok(t, d.Replace("h", "h"))
	equal(t, names(t, d, "."), "h ")
	is(t, d.Replace("absent", "h"), fs.ErrNotExist)
	ok(t, d.Mkdir("dir"))
	if d.Replace("h", "dir") == nil {
		t.Error("a file replaced a directory")
	}
}

func testLink(t *testing.T, d vfs.Dir) {
	put(t, d, "f", "old")
	put(t, d, "g", "new")
	ok(t, d.Mkdir("dir"))
	is(t, d.Link("f", "g"), fs.ErrExist)
	is(t, d.Link("f", "f"), fs.ErrExist)
	is(t, d.Link("f", "dir"), fs.ErrExist)
	is(t, d.Link("absent", "h"), fs.ErrNotExist)
	is(t, d.Link("f", "absent/h"), fs.ErrNotExist)
	is(t, d.Link("dir", "h"), vfs.ErrNotRegular)
	ok(t, d.Link("f", "dir/kept"))
	equal(t, names(t, d, ".")+names(t, d, "dir"), "dir f g kept ")
	ok(t, d.Replace("g", "f"))
	equal(t, read(t, d, "f")+read(t, d, "dir/kept"), "newold")
	ok(t, d.Remove("f"))
	equal(t, read(t, d, "dir/kept"), "old")
}

func testRemove(t *testing.T, d vfs.Dir) {
	ok(t, d.Mkdir("dir"))
	put(t, d, "dir/f", "")
	if d.Remove("dir") == nil {
		t.Error("a directory with a file was removed")
	}
	if d.RemoveDir("dir") == nil {
		t.Error("a directory with a file was removed")
	}
	if d.RemoveDir("dir/f") == nil {
		t.Error("RemoveDir removed a file")
	}
	ok(t, d.Remove("dir/f"))
	ok(t, d.Remove("dir"))
	is(t, d.Remove("dir"), fs.ErrNotExist)
	is(t, d.RemoveDir("dir"), fs.ErrNotExist)
	ok(t, d.Mkdir("dir"))
	ok(t, d.RemoveDir("dir"))
	equal(t, names(t, d, "."), "")
	ok(t, d.Mkdir("dir"))
	ok(t, d.Remove("dir"))
	is(t, d.Remove("dir/f"), fs.ErrNotExist)
	if d.Remove(".") == nil {
		t.Error("the directory itself was removed")
	}
}

func testSync(t *testing.T, d vfs.Dir) {
	ok(t, d.Mkdir("dir"))
	put(t, d, "dir/f", "")
	ok(t, d.Sync("."))
	ok(t, d.Sync("dir"))
	is(t, d.Sync("absent"), fs.ErrNotExist)
	if d.Sync("dir/f") == nil {
		t.Error("a file was synced as a directory")
	}
}

func testNames(t *testing.T, d vfs.Dir) {
	ok(t, d.Mkdir("dir"))
	put(t, d, "dir/f", "")
	for _, name := range []string{
		"", "..", "../f", "dir/../dir/f", "/etc/passwd", "dir//f", "dir/", "./dir", "dir/./f",
		"di\x00r",
	} {
		for op, err := range map[string]error{
			"open":         second(d.Open(name)),
			"create":       second(d.Create(name)),
			"append":       second(d.Append(name)),
			"stat":         second(d.Stat(name)),
			"list":         second(d.List(name)),
			"sub":          second(d.Sub(name)),
			"mkdir":        d.Mkdir(name),
			"remove":       d.Remove(name),
			"remove dir":   d.RemoveDir(name),
			"sync":         d.Sync(name),
			"rename from":  d.Rename(name, "x"),
			"rename to":    d.Rename("dir/f", name),
			"replace from": d.Replace(name, "x"),
			"replace to":   d.Replace("dir/f", name),
			"link from":    d.Link(name, "x"),
			"link to":      d.Link("dir/f", name),
		} {
			if !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("%s of %q: error %v, want %v", op, name, err, fs.ErrInvalid)
			}
		}
	}
	equal(t, names(t, d, ".")+names(t, d, "dir"), "dir f ")
}

func testSub(t *testing.T, d vfs.Dir) {
	ok(t, d.Mkdir("a"))
	ok(t, d.Mkdir("a/b"))
	sub, err := d.Sub("a/b")
	ok(t, err)
	put(t, sub, "f", "through sub")
	equal(t, read(t, d, "a/b/f"), "through sub")
	ok(t, d.Rename("a", "z")) // an open directory outlives its name, too
	equal(t, read(t, sub, "f"), "through sub")
	ok(t, sub.Remove("f"))
	ok(t, d.Remove("z/b"))
	_, err = sub.Create("f")
	is(t, err, fs.ErrNotExist)
	ok(t, sub.Close())
	put(t, d, "file", "")
	if _, err := d.Sub("file"); err == nil {
		t.Error("a file was opened as a directory")
	}
	_, err = d.Sub("absent")
	is(t, err, fs.ErrNotExist)
}

func testConcurrent(t *testing.T, d vfs.Dir) {
	var group sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		group.Go(func() {
			for j := range 20 {
				name := fmt.Sprintf("%d-%d", i, j)
				f, err := d.Create(name)
				if err != nil {
					errs[i] = err
					return
				}
				_, err = f.Write([]byte(name))
				errs[i] = errors.Join(errs[i], err, f.Close(), d.Rename(name, name+"!"),
					second(d.List(".")), second(d.Stat(name+"!")))
			}
		})
	}
	group.Wait()
	ok(t, errors.Join(errs...))
	infos, err := d.List(".")
	ok(t, err)
	equal(t, len(infos), 160)
}

func testLinks(t *testing.T, d vfs.Dir, symlink func(target, name string) error) {
	ok(t, d.Mkdir("dir"))
	put(t, d, "dir/f", "secret")
	ok(t, symlink("dir/f", "file"))
	ok(t, symlink("dir", "way"))
	ok(t, symlink("absent", "dangling"))
	ok(t, symlink("/", "out"))
	for _, name := range []string{"file", "way/f", "dangling", "out/etc/passwd", "way"} {
		_, err := d.Open(name)
		is(t, err, vfs.ErrNotRegular)
		_, err = d.Append(name)
		is(t, err, vfs.ErrNotRegular)
	}
	for _, name := range []string{"way", "out"} {
		for op, err := range map[string]error{
			"list":       second(d.List(name)),
			"sub":        second(d.Sub(name)),
			"sync":       d.Sync(name),
			"stat below": second(d.Stat(name + "/f")),
			"create":     second(d.Create(name + "/new")),
			"mkdir":      d.Mkdir(name + "/new"),
			"remove":     d.Remove(name + "/f"),
			"rename":     d.Rename("dir/f", name+"/new"),
			"replace":    d.Replace("dir/f", name+"/new"),
			"link":       d.Link("dir/f", name+"/new"),
			"link of it": d.Link(name, "new"),
		} {
			if !errors.Is(err, vfs.ErrNotRegular) {
				t.Errorf("%s through link %s: error %v", op, name, err)
			}
		}
	}
	_, err := d.Create("dangling")
	is(t, err, fs.ErrExist)
	info, err := d.Stat("file")
	ok(t, err)
	equal(t, info.Mode.Type(), fs.ModeSymlink)
	equal(t, info.Regular(), false)
	infos, err := d.List(".")
	ok(t, err)
	dir, err := d.Stat("dir")
	ok(t, err)
	for _, i := range infos {
		info, err := d.Stat(i.Name)
		ok(t, err)
		if want := i.Name == "way"; i.Name != "out" && (i.ToDir() != want || info.ToDir() != want) {
			t.Errorf("%s leads to a directory: %v, and %v to List", i.Name, info.ToDir(), i.ToDir())
		}
		if i.Dir != info.Dir || i.Name == "way" && i.Dir != dir.Dir {
			t.Errorf("%s is the directory %v, and %v to List; dir is %v", i.Name, info.Dir, i.Dir,
				dir.Dir)
		}
	}

	// What moves or goes is the link itself.
	ok(t, d.Rename("file", "moved"))
	ok(t, d.Remove("moved"))
	if d.RemoveDir("way") == nil {
		t.Error("RemoveDir removed a link")
	}
	ok(t, d.Remove("way"))
	put(t, d, "g", "new")
	ok(t, d.Replace("g", "out"))
	equal(t, read(t, d, "out")+read(t, d, "dir/f"), "newsecret")
}

func put(t *testing.T, d vfs.Dir, name, content string) {
	t.Helper()
	f, err := d.Create(name)
	ok(t, err)
	write(t, f, content)
	ok(t, f.Close())
}

func write(t *testing.T, f vfs.File, content string) {
	t.Helper()
	n, err := f.Write([]byte(content))
	ok(t, err)
	equal(t, n, len(content))
}

func read(t *testing.T, d vfs.Dir, name string) string {
	t.Helper()
	f, err := d.Open(name)
	ok(t, err)
	b, err := io.ReadAll(f)
	ok(t, err)
	ok(t, f.Close())
	return string(b)
}

// names gives the names in a directory, each followed by a space.
func names(t *testing.T, d vfs.Dir, name string) (all string) {
	t.Helper()
	infos, err := d.List(name)
	ok(t, err)
	for _, info := range infos {
		all += info.Name + " "
	}
	return all
}

func second[T any](_ T, err error) error { return err }

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

func equal[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
