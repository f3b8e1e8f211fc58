package objstore

import (
	"context"
	"fmt"

	"github.com/tierd/tierd/runtime/tier"
)

// ReadFile reads the bytes from off on of one file of a segment into the buffers, one after the
// other until all are full, by one request. A missing object is tier.ErrVanished; one that ends
// before, or gives more than was asked for, is tier.ErrDamaged. Nothing of the buffers counts after
// an error.
func (s *Store) ReadFile(ctx context.Context, k tier.ObjectKey, off int64, bufs ...[]byte) error {
	key, err := s.keys.File(k)
	if err != nil {
		return err
	}
	size := int64(0)
	for _, b := range bufs {
		size += int64(len(b))
	}
	if off < 0 {
		return fmt.Errorf("get %s: from byte %d", key, off)
	}
	if size == 0 {
		return nil // stores refuse the empty range
	}
	r := tier.Range{Base: tier.Offset(off), Next: tier.Offset(off + size)}
	at := 0 // in bufs[0]
	return s.stream(ctx, key, r, func(got []byte) error {
		for len(got) > 0 {
			n := copy(bufs[0][at:], got)
			got, at = got[n:], at+n
			if at == len(bufs[0]) {
				bufs, at = bufs[1:], 0
			}
		}
		return nil
	})
}
