package filesystem

import (
	"context"
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// TestPrunedDirectoriesAreForgotten looks inside: a file system may give the inode of a directory
// that was removed to the next one, which must not be taken for durable.
func TestPrunedDirectoriesAreForgotten(t *testing.T) {
	t.Parallel()
	b := New(vfs.NewMem(func() tier.Time { return 1 }), "b", "p")
	known := func() (n int) {
		b.durable.Range(func(any, any) bool {
			n++
			return true
		})
		return n
	}
	for _, key := range []string{"a/b/x", "a/y"} {
		if err := b.Upload(context.Background(), key, strings.NewReader("")); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []struct {
		key  string
		want int
	}{{"a/b/x", 1}, {"a/y", 0}} {
		if err := b.Delete(context.Background(), s.key); err != nil {
			t.Fatal(err)
		}
		if got := known(); got != s.want {
			t.Errorf("%d directories known after deleting %s, want %d", got, s.key, s.want)
		}
	}
}
