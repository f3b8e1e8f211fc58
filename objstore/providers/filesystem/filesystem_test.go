package filesystem_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/thanos-io/objstore"

	"github.com/tierd/tierd/objstore/providers/filesystem"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

func TestKeysAreConfined(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	check(t, os.Mkdir(filepath.Join(root, "bucket"), 0o700))
	check(t, os.WriteFile(filepath.Join(root, "secret"), []byte("s"), 0o600))
	dir, err := vfs.OpenOS(filepath.Join(root, "bucket"))
	check(t, err)
	b := filesystem.New(dir, "b", "p")
	for _, key := range []string{
		"", ".", "..", "../secret", "a/../../secret", "/secret", "a//b", "a/", "./a", "a\x00b",
		".tierd-tmp/x", ".tierd-tmp", ".TIERD-tmp/x",
	} {
		_, getErr := b.Get(ctx, key)
		_, attrErr := b.Attributes(ctx, key)
		_, existsErr := b.Exists(ctx, key)
		uploadErr := b.Upload(ctx, key, strings.NewReader("x"))
		for op, err := range map[string]error{
			"get": getErr, "attributes": attrErr, "exists": existsErr, "upload": uploadErr,
			"delete": b.Delete(ctx, key),
		} {
			if err == nil || b.IsObjNotFoundErr(err) {
				t.Errorf("%s of %q: error %v, want a refusal", op, key, err)
			}
		}
	}
	for _, dir := range []string{"..", "../bucket", "a/../..", "/", "/etc", ".tierd-tmp"} {
		err := b.Iter(ctx, dir, func(name string) error {
			t.Errorf("listed %q", name)
			return nil
		})
		if err == nil && strings.Trim(dir, "/") != "" {
			t.Errorf("list of %q: no error", dir)
		}
	}
	got, err := os.ReadFile(filepath.Join(root, "secret"))
	check(t, err)
	equal(t, string(got), "s")
}

func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	mem := newMem()
	b := filesystem.New(mem, "b", "p")
	put(t, b, "dir/object", "kept")
	check(t, mem.Symlink("dir", "way"))
	check(t, mem.Symlink("dir/object", "link"))
	_, getErr := b.Get(ctx, "link")
	_, wayErr := b.Get(ctx, "way/object")
	_, existsErr := b.Exists(ctx, "link")
	for op, err := range map[string]error{
		"get": getErr, "get through": wayErr, "exists": existsErr,
		"upload through": b.Upload(ctx, "way/new", strings.NewReader("x")),
		"delete":         b.Delete(ctx, "link"),
		"delete through": b.Delete(ctx, "way/object"),
	} {
		if !errors.Is(err, vfs.ErrNotRegular) || b.IsObjNotFoundErr(err) {
			t.Errorf("%s: error %v", op, err)
		}
	}
	equal(t, list(t, b, "", objstore.WithRecursiveIter()), "dir/object")
	put(t, b, "link", "takes the link's place")
	equal(t, get(t, b, "dir/object"), "kept")
}

func TestAnObjectIsNoDirectory(t *testing.T) {
	t.Parallel()
	b := onDisk(t)
	put(t, b, "a", "object")
	err := b.Upload(ctx, "a/b", strings.NewReader("x"))
	if err == nil || !strings.Contains(err.Error(), "a is an object") {
		t.Errorf("upload below an object: error %v", err)
	}
	if err := b.Delete(ctx, "a/b"); !b.IsObjNotFoundErr(err) {
		t.Errorf("delete below an object: error %v, want not found", err)
	}
	equal(t, get(t, b, "a"), "object") // the deletion did not take it for an empty directory
	put(t, b, "d/e", "x")
	err = b.Upload(ctx, "d", strings.NewReader("x"))
	if err == nil || !strings.Contains(err.Error(), "keys that begin with d/") {
		t.Errorf("upload over a directory: error %v", err)
	}
	equal(t, list(t, b, "", objstore.WithRecursiveIter()), "a d/e")
}

func TestListOrder(t *testing.T) {
	t.Parallel()
	b := onDisk(t)
	for _, key := range []string{"a/x", "a.b", "a0", "a-/y"} {
		put(t, b, key, "")
	}
	equal(t, list(t, b, ""), "a-/ a.b a/ a0") // list checks the order itself
	equal(t, list(t, b, "", objstore.WithRecursiveIter()), "a-/y a.b a/x a0")
}

func TestEmptyDirectoriesAreNotListed(t *testing.T) {
	t.Parallel()
	mem := newMem()
	for _, dir := range []string{"a", "a/b", "a/b/c", "d", "d/e"} {
		check(t, mem.Mkdir(dir))
	}
	b := filesystem.New(mem, "b", "p")
	put(t, b, "d/e/object", "")
	equal(t, list(t, b, ""), "d/")
	equal(t, list(t, b, "", objstore.WithRecursiveIter()), "d/e/object")
	check(t, b.Delete(ctx, "d/e/object"))
	infos, err := mem.List(".")
	check(t, err)
	equal(t, len(infos), 2) // the temporary directory, and "a", which no deletion touched
}

func TestCancelledUpload(t *testing.T) {
	t.Parallel()
	mem := newMem()
	b := filesystem.New(mem, "b", "p")
	cancelled, cancel := context.WithCancel(ctx)
	endless := readerFunc(func(p []byte) (int, error) {
		cancel()
		return len(p), nil
	})
	if err := b.Upload(cancelled, "object", endless); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	stuck := readerFunc(func([]byte) (int, error) { return 0, nil })
	if err := b.Upload(ctx, "object", stuck); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("error %v, want %v", err, io.ErrNoProgress)
	}
	equal(t, list(t, b, ""), "")
	equal(t, temps(t, mem), 0)
	if _, err := b.Get(cancelled, "object"); !errors.Is(err, context.Canceled) {
		t.Errorf("get: error %v, want %v", err, context.Canceled)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestAccessDenied(t *testing.T) {
	t.Parallel()
	mem := newMem()
	b := filesystem.New(mem, "b", "p")
	put(t, b, "dir/object", "")
	check(t, mem.Chmod("dir/object", 0))
	_, err := b.Get(ctx, "dir/object")
	if !b.IsAccessDeniedErr(err) || b.IsObjNotFoundErr(err) {
		t.Errorf("get: error %v, want access denied", err)
	}
	check(t, mem.Chmod("dir", 0o500))
	err = b.Upload(ctx, "dir/other", strings.NewReader(""))
	if !b.IsAccessDeniedErr(err) {
		t.Errorf("upload: error %v, want access denied", err)
	}
	if err := b.Delete(ctx, "dir/object"); !b.IsAccessDeniedErr(err) {
		t.Errorf("delete: error %v, want access denied", err)
	}
}

// TestReadingWritesNothing is for archives that are mounted read-only.
func TestReadingWritesNothing(t *testing.T) {
	t.Parallel()
	mem := newMem()
	put(t, filesystem.New(mem, "b", "p"), "dir/object", "x")
	mem.SetFault(func(op vfs.Op) (vfs.Effect, error) {
		switch op.Kind {
		case vfs.OpOpen, vfs.OpStat, vfs.OpList, vfs.OpRead:
		default:
			t.Errorf("reading does %s", op.Kind)
		}
		return vfs.Proceed, nil
	})
	reader := filesystem.New(mem, "b", "reader")
	equal(t, get(t, reader, "dir/object"), "x")
	equal(t, list(t, reader, ""), "dir/")
	_, err := reader.Attributes(ctx, "dir/object")
	check(t, err)
}

func TestSweep(t *testing.T) {
	t.Parallel()
	now := tier.TimeOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	mem := vfs.NewMem(func() tier.Time { return now })
	leave := func(name string) {
		f, err := mem.Create(".tierd-tmp/" + name)
		check(t, err)
		check(t, f.Close())
	}
	put(t, filesystem.New(mem, "b", "first"), "object", "x")
	leave("old")
	now = now.Add(30 * time.Minute)
	leave("young")
	now = now.Add(30 * time.Minute)
	equal(t, temps(t, mem), 2)
	b := filesystem.New(mem, "b", "second")
	put(t, b, "other", "x")
	equal(t, temps(t, mem), 1)
	equal(t, list(t, b, "", objstore.WithRecursiveIter()), "object other")
}

// TestSweptUpload checks that an upload whose temporary file another process swept fails, and that
// nothing else gets its key.
func TestSweptUpload(t *testing.T) {
	t.Parallel()
	mem := newMem()
	b := filesystem.New(mem, "b", "p")
	content := strings.NewReader("content")
	err := b.Upload(ctx, "object", readerFunc(func(p []byte) (int, error) {
		if content.Len() == 7 {
			check(t, mem.Remove(".tierd-tmp/p-1"))
		}
		return content.Read(p)
	}))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want %v", err, fs.ErrNotExist)
	}
	equal(t, list(t, b, ""), "")
}

// TestUploadsAndDeletionsRace has neighbours come and go in the same directories.
func TestUploadsAndDeletionsRace(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	open := func(process string) *filesystem.Bucket {
		dir, err := vfs.OpenOS(root)
		check(t, err)
		return filesystem.New(dir, root, process)
	}
	// Two buckets on one directory are as two processes: their locks do not know of each other.
	buckets := []*filesystem.Bucket{open("p"), open("q")}
	var group sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		group.Go(func() {
			b := buckets[i%2]
			for j := range 10 {
				key := fmt.Sprintf("a/b/%d/%d", j%2, i)
				err := b.Upload(ctx, key, strings.NewReader(key))
				rc, getErr := b.Get(ctx, key)
				errs[i] = errors.Join(errs[i], err, getErr)
				if getErr != nil {
					return
				}
				content, err := io.ReadAll(rc)
				if string(content) != key {
					err = fmt.Errorf("%s holds %q", key, content)
				}
				errs[i] = errors.Join(errs[i], err, rc.Close(), b.Delete(ctx, key))
			}
		})
	}
	group.Wait()
	check(t, errors.Join(errs...))
	equal(t, list(t, buckets[0], "", objstore.WithRecursiveIter()), "")
	entries, err := os.ReadDir(root)
	check(t, err)
	equal(t, len(entries), 1) // the temporary directory; all others are pruned
	for _, b := range buckets {
		check(t, errors.Join(b.Close(), b.Close()))
	}
}

func BenchmarkUpload(b *testing.B) {
	for _, size := range []int{4 << 10, 1 << 20, 64 << 20} {
		b.Run(fmt.Sprintf("%d KiB", size>>10), func(b *testing.B) {
			dir, err := vfs.OpenOS(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			bucket := filesystem.New(dir, "bench", "p")
			content := bytes.Repeat([]byte("x"), size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n++
				key := fmt.Sprintf("ledger/table/log/%d/%d", n/1000, n)
				if err := bucket.Upload(ctx, key, bytes.NewReader(content)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// temps counts the temporary files.
func temps(t *testing.T, dir vfs.Dir) int {
	t.Helper()
	infos, err := dir.List(".tierd-tmp")
	check(t, err)
	return len(infos)
}
