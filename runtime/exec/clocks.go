package exec

import (
	"context"
	"sync"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// clocksValid is how long a comparison with the store's clock counts.
const clocksValid = time.Minute

// Clocks keeps what the last comparison of the machine's clock with the store's came to: one is
// several calls of the store, and a pass asks for each deletion that leaves no copy. The zero value
// has compared nothing. It is safe for concurrent use; who asks meanwhile waits for the comparison
// that is under way.
type Clocks struct {
	mu     sync.Mutex
	judged time.Duration
	agree  tier.Truth
	text   string
}

// Agree is the last comparison's answer, or that of a new one where it is as old as clocksValid, or
// came to nothing. now is a time that only ever passes, from wherever it began.
func (c *Clocks) Agree(ctx context.Context, now func() time.Duration,
	compare func(context.Context) (tier.Truth, string)) (tier.Truth, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.agree != tier.Unknown && now()-c.judged < clocksValid {
		return c.agree, c.text
	}
	c.agree, c.text = compare(ctx)
	c.judged = now()
	return c.agree, c.text
}
