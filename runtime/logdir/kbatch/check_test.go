package kbatch_test

import (
	"errors"
	"testing"

	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/logdir/kbatch/kbatchtest"
	"github.com/tierd/tierd/runtime/tier"
)

// TestCheck alters each single byte that a checksum covers.
func TestCheck(t *testing.T) {
	t.Parallel()
	for magic, p := range map[int8][]byte{
		0: kbatchtest.V01(nil, 0, kbatchtest.Spec{Last: 7, Body: 20}),
		1: kbatchtest.V01(nil, 1, kbatchtest.Spec{Last: 7, Body: 20}),
		2: kbatchtest.V2(nil, kbatchtest.Spec{Last: 7, Body: 20}),
	} {
		b, err := kbatch.Parse(p, 0, int64(len(p)))
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Check(append(p, 1, 2, 3)); err != nil {
			t.Errorf("magic %d, with more behind it: %v", magic, err)
		}
		if err := b.Check(p[:len(p)-1]); !errors.Is(err, kbatch.ErrTorn) {
			t.Errorf("magic %d, cut: %v", magic, err)
		}
		from := 16
		if magic == 2 {
			from = 21
		}
		for i := from; i < len(p); i++ {
			p[i] ^= 1
			if err := b.Check(p); !errors.Is(err, tier.ErrDamaged) {
				t.Errorf("magic %d, byte %d: %v", magic, i, err)
			}
			p[i] ^= 1
		}
	}
}
