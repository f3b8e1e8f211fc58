package exec

import (
	"fmt"

	"github.com/tierd/tierd/runtime/planted"
)

// overtaken says that another configuration has come into force since the facts of a deletion were
// gathered. Whoever changed it, to hold something perhaps, was told that it is in force: so nothing
// goes on the word of the old one whose removal has not begun. The error is errGivenUp.
func (x *Executor) overtaken(g *Generation) error {
	if now := x.c.Generation().Number; now != g.Number && !planted.Is(planted.NotDrained) {
		return fmt.Errorf("%w: configuration %d came into force, and %d had been asked", errGivenUp,
			now, g.Number)
	}
	return nil
}
