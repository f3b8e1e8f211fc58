package read

import (
	"bytes"
	"io"
	"testing"

	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/tier"
)

// batchesOf are the headers of Fluss's batches in p.
func batchesOf(t *testing.T, p []byte) (out []kbatch.Batch) {
	t.Helper()
	for pos := int64(0); ; {
		b, err := kbatch.Fluss.Next(bytes.NewReader(p), pos, int64(len(p)))
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
		pos += b.Size
	}
}

// TestBucketsAreReadBack reads a real tablet server's directory from either tier, and from both,
// and compares every byte with the files. From each offset the first batch is the one that has it,
// and each timestamp leads to the first batch that is as late.
func TestBucketsAreReadBack(t *testing.T) {
	t.Parallel()
	for _, set := range []string{"v0", "v1-live"} {
		w := flussWorld(t, set)
		logs := w.Logs()
		if len(logs) < 10 {
			t.Fatalf("%s: %d logs", set, len(logs))
		}
		for _, id := range logs {
			raw := w.raw(id)
			compare := func(tiers string) {
				t.Helper()
				for _, maxBytes := range []int64{1, 5000, 1 << 20} {
					if got := w.readAll(id, 0, maxBytes); !bytes.Equal(got, raw) {
						t.Errorf("%s %s by %d: %d bytes, want %d", id, tiers, maxBytes, len(got), len(raw))
					}
				}
				compareBatches(t, w, id, batchesOf(t, raw), tiers)
			}
			compare("local")
			copied := len(w.archive(id))
			compare("both")
			w.drop(id, copied)
			compare("gone since the scan")
			w.scan()
			compare("scanned anew")
		}
	}
}

func compareBatches(t *testing.T, w *world, id tier.LogID, all []kbatch.Batch, tiers string) {
	t.Helper()
	latest := int64(-1)
	for _, b := range all {
		for _, o := range []tier.Offset{b.Base, b.Last} {
			w.reader.hints = hints{}
			c, err := w.reader.Read(t.Context(), id, o, 1)
			if err != nil || c.Base != b.Base || c.Next != b.Next() || int64(len(c.Batches)) != b.Size {
				t.Errorf("%s %s from %d: %d bytes of [%d, %d), %v; want %d of [%d, %d)", id, tiers, o,
					len(c.Batches), c.Base, c.Next, err, b.Size, b.Base, b.Next())
			}
		}
		if b.MaxTimestamp <= latest {
			continue
		}
		o, at, ok, err := w.reader.ForTime(t.Context(), id, latest+1)
		if o != b.Base || at != b.MaxTimestamp || !ok || err != nil {
			t.Errorf("%s %s after %d: %d at %d, %v %v; want %d at %d", id, tiers, latest, o, at, ok, err,
				b.Base, b.MaxTimestamp)
		}
		latest = b.MaxTimestamp
	}
	if _, _, ok, err := w.reader.ForTime(t.Context(), id, latest+1); ok || err != nil {
		t.Errorf("%s %s after the latest: %v %v", id, tiers, ok, err)
	}
}
