package read

import "testing"

// TestUnzeroed: the bytes are those of one place, all of them, and can be written.
func TestUnzeroed(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{0, 1, 7, 4096, ChunkBytes} {
		p, q := unzeroed(n), unzeroed(n)
		if int64(len(p)) != n || int64(cap(p)) != n {
			t.Fatalf("%d bytes, room for %d, want %d", len(p), cap(p), n)
		}
		for i := range p {
			p[i], q[i] = 1, 2
		}
		for i := range p {
			if p[i] != 1 || q[i] != 2 {
				t.Fatalf("byte %d of %d is another's", i, n)
			}
		}
	}
}
