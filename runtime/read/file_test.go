package read

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/tier"
)

// TestAFileIsWhatWasCopied, whole and in pieces.
func TestAFileIsWhatWasCopied(t *testing.T) {
	t.Parallel()
	w := remoteWorld(t, orders)
	for _, ext := range []string{".log", ".index"} {
		want, err := os.ReadFile(filepath.Join(fixtures, "v4", "orders-2024-1", name(0, ext)))
		w.must(err)
		f, err := w.reader.File(t.Context(), orders, 0, name(0, ext))
		w.must(err)
		for _, at := range []int64{0, 100, 0} {
			if _, err := f.Seek(at, io.SeekStart); err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, want[at:]) {
				t.Errorf("%s from %d: %d bytes of %d, %v", ext, at, len(got), len(want), err)
			}
		}
		if _, err := f.Seek(-1, io.SeekStart); err == nil {
			t.Error("a seek to before the beginning is no error")
		}
	}
}

// TestAFileThatWasAlteredHasNoEnd: a small one is refused at once, of a large one the last bytes
// are missing; and whoever tends the copies is told.
func TestAFileThatWasAlteredHasNoEnd(t *testing.T) {
	t.Parallel()
	for _, size := range []int{ChunkBytes / 2, 3 * ChunkBytes} {
		w, id, content := plainLog(t, logdir.NextBaseSize, size, 10)
		w.archive(id)
		w.dropPlain(1)
		w.scan()
		for _, alter := range []bool{false, true, false} {
			for _, key := range w.mem.Keys() {
				if data := bytes.Clone(content[:size]); strings.HasSuffix(key, name(0, ".log")) {
					if alter {
						data[size/2] ^= 1
					}
					w.mem.Put(key, data)
				}
			}
			w.useCache(nil)
			w.suspects = nil
			n := int64(0)
			f, err := w.reader.File(t.Context(), id, 0, "")
			if err == nil {
				n, err = io.Copy(io.Discard, f)
			}
			switch whole := n == int64(size); {
			case !alter && (err != nil || !whole):
				t.Errorf("%d bytes: %d are read, %v", size, n, err)
			case alter && (!errors.Is(err, tier.ErrDamaged) || whole || len(w.suspects) != 1):
				t.Errorf("%d bytes, altered: %d are read, %v, suspects %v", size, n, err, w.suspects)
			}
		}
	}
}
