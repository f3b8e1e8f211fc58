package filesystem_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/thanos-io/objstore"

	"github.com/tierd/tierd/objstore/providers/filesystem"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// newMem has a clock that goes on by one nanosecond each time it is read.
func newMem() *vfs.Mem {
	var now tier.Time = 1000
	return vfs.NewMem(func() tier.Time {
		now++
		return now
	})
}

func onMem(*testing.T) objstore.Bucket { return filesystem.New(newMem(), "mem", "p") }

func onDisk(t *testing.T) objstore.Bucket {
	dir, err := vfs.OpenOS(t.TempDir())
	check(t, err)
	b := filesystem.New(dir, "disk", "p")
	t.Cleanup(func() { check(t, b.Close()) })
	return b
}

// TestConformance holds what every bucket does, ours and, as the reference, the one in memory that
// comes with thanos objstore.
func TestConformance(t *testing.T) {
	t.Parallel()
	buckets := map[string]func(*testing.T) objstore.Bucket{
		"disk":      onDisk,
		"mem":       onMem,
		"reference": func(*testing.T) objstore.Bucket { return objstore.NewInMemBucket() },
		"prefixed disk": func(t *testing.T) objstore.Bucket {
			return objstore.NewPrefixedBucket(onDisk(t), "some/prefix")
		},
	}
	tests := map[string]func(*testing.T, objstore.Bucket){
		"absent":   testAbsent,
		"read":     testRead,
		"overlong": testLargerThanBuffer,
		"list":     testList,
		"times":    testTimes,
		"delete":   testDelete,
		"failing":  testFailingReader,
	}
	for bucketName, newBucket := range buckets {
		for testName, test := range tests {
			t.Run(bucketName+"/"+testName, func(t *testing.T) {
				t.Parallel()
				test(t, newBucket(t))
			})
		}
	}
}

var ctx = context.Background()

func testAbsent(t *testing.T, b objstore.Bucket) {
	_, err := b.Get(ctx, "")
	if err == nil || b.IsObjNotFoundErr(err) {
		t.Errorf("get without a key: error %v, want one that is not 'not found'", err)
	}
	for _, key := range []string{"absent", "absent/absent", "dir"} {
		put(t, b, "dir/object", "x")
		_, getErr := b.Get(ctx, key)
		_, rangeErr := b.GetRange(ctx, key, 0, 1)
		_, attrErr := b.Attributes(ctx, key)
		for _, err := range []error{getErr, rangeErr, attrErr, b.Delete(ctx, key)} {
			if !b.IsObjNotFoundErr(err) || b.IsAccessDeniedErr(err) {
				t.Errorf("%s: error %v, want not found", key, err)
			}
		}
		ok, err := b.Exists(ctx, key)
		check(t, err)
		equal(t, ok, false)
	}
	equal(t, list(t, b, "absent"), "")
	equal(t, list(t, b, "absent/absent/"), "")
}

func testRead(t *testing.T, b objstore.Bucket) {
	put(t, b, "dir/object", "0123456789")
	equal(t, get(t, b, "dir/object"), "0123456789")
	ok, err := b.Exists(ctx, "dir/object")
	check(t, err)
	equal(t, ok, true)
	attrs, err := b.Attributes(ctx, "dir/object")
	check(t, err)
	equal(t, attrs.Size, 10)
	for _, r := range []struct {
		off, length int64
		want        string
	}{
		{0, -1, "0123456789"}, {3, -1, "3456789"}, {1, 3, "123"}, {8, 9999, "89"}, {10, -1, ""},
	} {
		rc, err := b.GetRange(ctx, "dir/object", r.off, r.length)
		check(t, err)
		size, err := objstore.TryToGetSize(rc)
		check(t, err)
		equal(t, size, int64(len(r.want)))
		equal(t, readAll(t, rc), r.want)
	}

	// An upload again replaces; who reads the old one goes on.
	old, err := b.Get(ctx, "dir/object")
	check(t, err)
	put(t, b, "dir/object", "new")
	equal(t, get(t, b, "dir/object"), "new")
	equal(t, readAll(t, old), "0123456789")
	put(t, b, "dir/object", "")
	equal(t, get(t, b, "dir/object"), "")
}

func testLargerThanBuffer(t *testing.T, b objstore.Bucket) {
	content := bytes.Repeat([]byte("0123456789abcde"), 200_000) // 3 MB, no power of two
	check(t, b.Upload(ctx, "large", oneByteShort{bytes.NewReader(content)}))
	equal(t, get(t, b, "large") == string(content), true)
	rc, err := b.GetRange(ctx, "large", 2_000_000, 17)
	check(t, err)
	equal(t, readAll(t, rc), string(content[2_000_000:2_000_017]))
}

// oneByteShort gives less than it is asked for.
type oneByteShort struct{ r io.Reader }

func (o oneByteShort) Read(p []byte) (int, error) { return o.r.Read(p[:max(1, len(p)-1)]) }

func testList(t *testing.T, b objstore.Bucket) {
	for _, key := range []string{
		"id1/obj_1", "id1/obj_2", "id1/sub/deep/obj_3", "id1/sub/obj_4", "id2/obj_5", "obj_6",
	} {
		put(t, b, key, key)
	}
	equal(t, list(t, b, ""), "id1/ id2/ obj_6")
	equal(t, list(t, b, "id1"), "id1/obj_1 id1/obj_2 id1/sub/")
	equal(t, list(t, b, "id1/"), "id1/obj_1 id1/obj_2 id1/sub/")
	equal(t, list(t, b, "id1/sub"), "id1/sub/deep/ id1/sub/obj_4")
	recursive := objstore.WithRecursiveIter()
	equal(t, list(t, b, "id1/", recursive),
		"id1/obj_1 id1/obj_2 id1/sub/deep/obj_3 id1/sub/obj_4")
	equal(t, list(t, b, "id1", recursive), list(t, b, "id1/", recursive))
	equal(t, list(t, b, "", recursive),
		"id1/obj_1 id1/obj_2 id1/sub/deep/obj_3 id1/sub/obj_4 id2/obj_5 obj_6")

	stop := errors.New("stop")
	calls := 0
	err := b.Iter(ctx, "", func(string) error {
		calls++
		return stop
	}, recursive)
	if !errors.Is(err, stop) || calls != 1 {
		t.Errorf("iter ended with %v after %d calls", err, calls)
	}
	unknown := objstore.IterOption{Type: 99, Apply: func(*objstore.IterParams) {}}
	nothing := func(objstore.IterObjectAttributes) error { return nil }
	err = b.IterWithAttributes(ctx, "", nothing, unknown)
	if !errors.Is(err, objstore.ErrOptionNotSupported) {
		t.Errorf("unknown option: error %v", err)
	}
}

func testTimes(t *testing.T, b objstore.Bucket) {
	put(t, b, "dir/object", "x")
	attrs, err := b.Attributes(ctx, "dir/object")
	check(t, err)
	if attrs.LastModified.IsZero() {
		t.Error("attributes without a time")
	}
	seen := 0
	err = b.IterWithAttributes(ctx, "", func(a objstore.IterObjectAttributes) error {
		seen++
		modified, ok := a.LastModified()
		equal(t, ok, true)
		equal(t, modified.Equal(attrs.LastModified), true)
		return nil
	}, objstore.WithRecursiveIter(), objstore.WithUpdatedAt())
	check(t, err)
	equal(t, seen, 1)
}

func testDelete(t *testing.T, b objstore.Bucket) {
	put(t, b, "dir/a", "a")
	put(t, b, "dir/sub/b", "b")
	check(t, b.Delete(ctx, "dir/a"))
	if err := b.Delete(ctx, "dir/a"); !b.IsObjNotFoundErr(err) {
		t.Errorf("second deletion: error %v, want not found", err)
	}
	if err := b.Delete(ctx, "dir/sub"); !b.IsObjNotFoundErr(err) {
		t.Errorf("deletion of a prefix: error %v, want not found", err)
	}
	equal(t, get(t, b, "dir/sub/b"), "b")
	check(t, b.Delete(ctx, "dir/sub/b"))
	equal(t, list(t, b, ""), "")
	put(t, b, "dir", "now an object")
	equal(t, get(t, b, "dir"), "now an object")
}

// testFailingReader checks that what could not be read to its end is not stored, whatever the
// error; io.ErrUnexpectedEOF is what a connection that breaks off gives.
func testFailingReader(t *testing.T, b objstore.Bucket) {
	put(t, b, "dir/object", "old")
	for _, cause := range []error{errors.New("broken"), io.ErrUnexpectedEOF} {
		err := b.Upload(ctx, "dir/object", io.MultiReader(strings.NewReader("new"), failing{cause}))
		if !errors.Is(err, cause) {
			t.Errorf("error %v, want %v", err, cause)
		}
		check(t, err2nil(b.Upload(ctx, "dir/other", failing{cause})))
	}
	equal(t, get(t, b, "dir/object"), "old")
	equal(t, list(t, b, "", objstore.WithRecursiveIter()), "dir/object")
}

// failing gives an error together with a byte, as readers may.
type failing struct{ err error }

func (f failing) Read(p []byte) (int, error) {
	p[0] = 'x'
	return 1, f.err
}

// err2nil turns an error that must be there into none.
func err2nil(err error) error {
	if err == nil {
		return errors.New("there is no error")
	}
	return nil
}

func put(t *testing.T, b objstore.Bucket, key, content string) {
	t.Helper()
	check(t, b.Upload(ctx, key, strings.NewReader(content)))
}

func get(t *testing.T, b objstore.Bucket, key string) string {
	t.Helper()
	rc, err := b.Get(ctx, key)
	check(t, err)
	return readAll(t, rc)
}

func readAll(t *testing.T, rc io.ReadCloser) string {
	t.Helper()
	content, err := io.ReadAll(rc)
	check(t, err)
	check(t, rc.Close())
	return string(content)
}

// list gives the names that Iter gives, and checks that they ascend but for the reference, which
// puts prefixes last.
func list(t *testing.T, b objstore.Bucket, dir string, options ...objstore.IterOption) string {
	t.Helper()
	var names []string
	check(t, b.Iter(ctx, dir, func(name string) error {
		names = append(names, name)
		return nil
	}, options...))
	if b.Provider() != objstore.MEMORY && !slices.IsSorted(names) {
		t.Errorf("names do not ascend: %q", names)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func equal[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
