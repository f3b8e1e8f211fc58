package offsets_test

import (
	"testing"

	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/offsets/offsetstest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	offsetstest.Run(t, func(*testing.T) offsetstest.Disk {
		m := offsets.NewMemory([16]byte{1, 2, 3})
		return func() (offsets.Medium, error) {
			m = m.Crash()
			return m, nil
		}
	})
}
