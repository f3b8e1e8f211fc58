package objstore

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/tier"
)

// TestReadFileGivesExactlyWhatIsThere, in as many buffers as one likes, or an error.
func TestReadFileGivesExactlyWhatIsThere(t *testing.T) {
	t.Parallel()
	content := noise(1 << 20)
	k := file(0, "f")
	b := newBench(t)
	b.mem.Put(fileKey(t, b.Store, k), content)
	for _, r := range [][]int{{0, 1 << 20}, {0, 1}, {5, 300_000, 0, 17, 700_000}, {1<<20 - 1, 1},
		{9}} {
		var bufs [][]byte
		for _, n := range r[1:] {
			bufs = append(bufs, make([]byte, n))
		}
		if err := b.ReadFile(t.Context(), k, int64(r[0]), bufs...); err != nil {
			t.Errorf("%v: %v", r, err)
		}
		got := bytes.Join(bufs, nil)
		if !bytes.Equal(got, content[r[0]:r[0]+len(got)]) {
			t.Errorf("%v: wrong bytes", r)
		}
	}
	buf := make([]byte, 100)
	if err := b.ReadFile(t.Context(), k, 1<<20-50, buf); err == nil {
		t.Error("bytes beyond the end were read")
	}
	if err := b.ReadFile(t.Context(), k, -1, buf); err == nil {
		t.Error("bytes before the beginning were read")
	}
	if err := b.ReadFile(t.Context(), file(0, "g"), 0, buf); !errors.Is(err, tier.ErrVanished) {
		t.Errorf("a missing object: %v", err)
	}
	for name, mangle := range map[string]func([]byte) []byte{"short": fault.Cut(99),
		"long": fault.Pad(1)} {
		b.faults.SetHook(fault.On(fault.OpGetRange, fault.Effect{Mangle: mangle}))
		if err := b.ReadFile(t.Context(), k, 0, buf); !errors.Is(err, tier.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
