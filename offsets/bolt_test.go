package offsets_test

import (
	"path/filepath"
	"testing"

	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/offsets/offsetstest"
)

func newID() [16]byte { return [16]byte{0xB0, 0x17} }

func TestBolt(t *testing.T) {
	t.Parallel()
	offsetstest.Run(t, func(t *testing.T) offsetstest.Disk {
		path := filepath.Join(t.TempDir(), "ledger.db")
		return func() (offsets.Medium, error) {
			return offsets.OpenBolt(path, offsets.BoltOptions{NewID: newID})
		}
	})
}
