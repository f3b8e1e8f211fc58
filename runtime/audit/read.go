package audit

import (
	"fmt"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// Read checks a log as Verify does, and shows each announced deletion to visit, in order. What was
// shown before an error was whole and in its place. It changes nothing and may run beside a writer;
// a record that is just being written is left out.
func Read(dir vfs.Dir, visit func(tier.Intent)) error {
	numbers, err := listFiles(dir)
	if err != nil {
		return err
	}
	if len(numbers) == 0 {
		return fmt.Errorf("audit log: %s: %w", nameOf(1), tier.ErrVanished)
	}
	_, err = scan(dir, numbers, &chain{}, func(r record) {
		if r.Intent == nil {
			return
		}
		d, err := r.Intent.deletion()
		if err == nil { // the chain has read it already
			visit(tier.Intent{Seq: r.Seq, Deletion: d})
		}
	})
	return err
}
