package filesystem_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/thanos-io/objstore"

	"github.com/tierd/tierd/objstore/providers/filesystem"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
	"github.com/tierd/tierd/runtime/vfs/vfstest"
)

// absent is the content of an object that is not there.
const absent = "(absent)"

// step uploads the content, or deletes where the content is absent.
type step struct{ key, content string }

// history makes and removes directories, replaces, and uses a directory again that was pruned.
var history = []step{
	{"a/b/x", "first"}, {"a/b/y", "second"}, {"a/b/x", "third"},
	{"a/b/y", absent}, {"a/b/x", absent}, {"a/z", "fourth"}, {"a/b/x", "fifth"},
}

// expected says for each key what a reader may find.
type expected map[string][]string

// run does the steps. A step that reports success settles what is there; one that fails leaves
// both possible.
func run(b objstore.Bucket, steps []step) expected {
	e := expected{}
	for _, s := range steps {
		var err error
		if s.content == absent {
			err = b.Delete(ctx, s.key)
		} else {
			err = b.Upload(ctx, s.key, strings.NewReader(s.content))
		}
		switch {
		case err == nil || s.content == absent && b.IsObjNotFoundErr(err):
			e[s.key] = []string{s.content}
		case e[s.key] == nil:
			e[s.key] = []string{absent, s.content}
		default:
			e[s.key] = append(e[s.key], s.content)
		}
	}
	return e
}

// verify compares what is in the bucket with what may be.
func (e expected) verify(b objstore.Bucket) error {
	found := map[string]string{}
	err := b.Iter(ctx, "", func(key string) error {
		rc, err := b.Get(ctx, key)
		if err != nil {
			return err
		}
		content, err := io.ReadAll(rc)
		found[key] = string(content)
		return errors.Join(err, rc.Close())
	}, objstore.WithRecursiveIter())
	if err != nil {
		return err
	}
	for key, content := range found {
		if !slices.Contains(e[key], content) {
			err = errors.Join(err, fmt.Errorf("%s holds %q, may hold %q", key, content, e[key]))
		}
	}
	for key, contents := range e {
		if _, ok := found[key]; !ok && !slices.Contains(contents, absent) {
			err = errors.Join(err, fmt.Errorf("%s is lost, may hold %q", key, contents))
		}
	}
	return err
}

// TestCrash stops the machine before and after every single operation, and looks at everything
// that it can leave: an upload that returned is there whole, one that did not is there whole or
// not at all, and what was deleted stays away.
func TestCrash(t *testing.T) {
	t.Parallel()
	for _, effect := range []vfs.Effect{vfs.CrashBefore, vfs.CrashAfter} {
		for n := 0; ; n++ {
			mem, now := newTimedMem()
			fired := false
			mem.SetFault(func(op vfs.Op) (vfs.Effect, error) {
				if op.Count != n {
					return vfs.Proceed, nil
				}
				fired = true
				return effect, nil
			})
			e := run(filesystem.New(mem, "b", "p"), history)
			vfstest.EachCrash(t, mem, func(disk *vfs.Mem) {
				b := filesystem.New(disk, "b", "q")
				if err := e.verify(b); err != nil {
					t.Errorf("effect %d on operation %d: %v", effect, n, err)
				}
			})
			if t.Failed() {
				return
			}
			if !fired {
				break
			}
			checkRecovery(t, mem.Crash(func(string, int) int { return 1 }), now)
		}
	}
}

// checkRecovery checks that the bucket is of use after a crash, and that nothing remains of it.
func checkRecovery(t *testing.T, disk *vfs.Mem, now *tier.Time) {
	t.Helper()
	*now = now.Add(2 * time.Hour)
	b := filesystem.New(disk, "b", "q")
	check(t, run(b, history).verify(b))
	equal(t, temps(t, disk), 0)
}

// newTimedMem has a clock that goes on by one nanosecond each time it is read, and further where
// the test moves it.
func newTimedMem() (*vfs.Mem, *tier.Time) {
	now := tier.TimeOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return vfs.NewMem(func() tier.Time {
		now++
		return now
	}), &now
}

// TestFailures fails every single operation, with and without effect.
func TestFailures(t *testing.T) {
	t.Parallel()
	for _, effect := range []vfs.Effect{vfs.Fail, vfs.FailAfter} {
		for n := 0; ; n++ {
			mem, now := newTimedMem()
			fired := false
			mem.SetFault(func(op vfs.Op) (vfs.Effect, error) {
				if op.Count != n {
					return vfs.Proceed, nil
				}
				fired = true
				return effect, nil
			})
			b := filesystem.New(mem, "b", "p")
			e := run(b, history)
			mem.SetFault(nil)
			if err := e.verify(b); err != nil {
				t.Fatalf("effect %d on operation %d: %v", effect, n, err)
			}
			if err := e.verify(filesystem.New(mem.Clone().Crash(nil), "b", "q")); err != nil {
				t.Fatalf("effect %d on operation %d, then a crash: %v", effect, n, err)
			}
			if !fired {
				break
			}
			checkRecovery(t, mem, now)
		}
	}
}

// TestCrashBesideAnUpload has an upload into directories that another one has made, but not yet
// synced: it must not rely on them.
func TestCrashBesideAnUpload(t *testing.T) {
	t.Parallel()
	mem := newMem()
	b := filesystem.New(mem, "b", "p")
	beside := 0
	mem.SetFault(func(op vfs.Op) (vfs.Effect, error) {
		if op.Kind != vfs.OpSyncDir || beside > 0 {
			return vfs.Proceed, nil
		}
		beside++
		put(t, b, "a/b/beside", "whole")
		return vfs.CrashBefore, nil
	})
	if err := b.Upload(ctx, "a/b/x", strings.NewReader("x")); !errors.Is(err, vfs.ErrCrashed) {
		t.Fatalf("error %v, want %v", err, vfs.ErrCrashed)
	}
	equal(t, beside, 1)
	e := expected{"a/b/x": {absent, "x"}, "a/b/beside": {"whole"}}
	vfstest.EachCrash(t, mem, func(disk *vfs.Mem) {
		if err := e.verify(filesystem.New(disk, "b", "q")); err != nil {
			t.Error(err)
		}
	})
}

// TestReadersSeeWholeObjects reads at every single operation of an upload that replaces.
func TestReadersSeeWholeObjects(t *testing.T) {
	t.Parallel()
	mem := newMem()
	b := filesystem.New(mem, "b", "p")
	put(t, b, "a/x", "old content")
	reader, reading := filesystem.New(mem, "b", "q"), false
	seen := map[string]int{}
	mem.SetFault(func(op vfs.Op) (vfs.Effect, error) {
		if !reading {
			reading = true
			seen[get(t, reader, "a/x")]++
			equal(t, list(t, reader, "", objstore.WithRecursiveIter()), "a/x")
			reading = false
		}
		return vfs.Proceed, nil
	})
	put(t, b, "a/x", "new")
	if seen["old content"] == 0 || seen["new"] == 0 || len(seen) != 2 {
		t.Errorf("readers saw %v", seen)
	}
}

// TestDeletionAgain has a deletion that could not be made durable repeated: "not found" is durable,
// too.
func TestDeletionAgain(t *testing.T) {
	t.Parallel()
	mem := newMem()
	b := filesystem.New(mem, "b", "p")
	put(t, b, "a/x", "x")
	put(t, b, "a/y", "y")
	mem.SetFault(func(op vfs.Op) (vfs.Effect, error) {
		if op.Kind == vfs.OpSyncDir {
			return vfs.Fail, nil
		}
		return vfs.Proceed, nil
	})
	for range 2 {
		if err := b.Delete(ctx, "a/x"); err == nil || b.IsObjNotFoundErr(err) {
			t.Fatalf("error %v, want that of the sync", err)
		}
	}
	mem.SetFault(nil)
	if err := b.Delete(ctx, "a/x"); !b.IsObjNotFoundErr(err) {
		t.Fatalf("error %v, want not found", err)
	}
	check(t, expected{"a/y": {"y"}}.verify(filesystem.New(mem.Crash(nil), "b", "q")))
}

// TestSyncsOfAnUpload counts what costs most: an upload into directories that are known to be
// durable syncs the file and its directory, and not the directories above.
func TestSyncsOfAnUpload(t *testing.T) {
	t.Parallel()
	mem := newMem()
	b := filesystem.New(mem, "b", "p")
	files, dirs := 0, 0
	mem.SetFault(func(op vfs.Op) (vfs.Effect, error) {
		switch op.Kind {
		case vfs.OpSync:
			files++
		case vfs.OpSyncDir:
			dirs++
		}
		return vfs.Proceed, nil
	})
	for i, want := range []int{4, 1, 1} { // first a/b/c, a/b, a and the root
		files, dirs = 0, 0
		put(t, b, fmt.Sprintf("a/b/c/%d", i), "x")
		equal(t, files, 1)
		equal(t, dirs, want)
	}
}

// TestAFullDisk: an upload that does not fit says which file did not, why, and what to do; what was
// there stays, nothing of it is left, and with room it succeeds.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	mem := newMem()
	b := filesystem.New(mem, "b", "p")
	check(t, b.Upload(ctx, "a/x", strings.NewReader("first")))
	mem.SetCapacity(8)
	for _, key := range []string{"a/y", "a/x"} {
		err := b.Upload(ctx, key, strings.NewReader("second"))
		if !vfs.IsFull(err) {
			t.Fatalf("%v, want %v", err, vfs.ErrFull)
		}
		for _, want := range []string{"upload " + key, ".tierd-tmp/p-", "no space left on device",
			"make room on it"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
	}
	equal(t, temps(t, mem), 0)
	check(t, expected{"a/x": {"first"}}.verify(b))
	mem.SetCapacity(0)
	check(t, b.Upload(ctx, "a/y", strings.NewReader("second")))
	check(t, expected{"a/x": {"first"}, "a/y": {"second"}}.verify(b))
}
