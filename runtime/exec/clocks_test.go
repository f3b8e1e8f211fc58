package exec

import (
	"context"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// TestClocksAreComparedOnceAMinute: an answer counts for so long, and no answer for no time.
func TestClocksAreComparedOnceAMinute(t *testing.T) {
	t.Parallel()
	var c Clocks
	for i, s := range []struct {
		at      time.Duration
		is      tier.Truth // by a comparison then
		want    tier.Truth
		compare bool
	}{
		{0, tier.Unknown, tier.Unknown, true},
		{0, tier.Yes, tier.Yes, true},
		{clocksValid - 1, tier.No, tier.Yes, false},
		{clocksValid, tier.No, tier.No, true},
		{clocksValid + time.Second, tier.Yes, tier.No, false},
		{2 * clocksValid, tier.Yes, tier.Yes, true},
	} {
		compared := false
		got, text := c.Agree(t.Context(), func() time.Duration { return s.at },
			func(context.Context) (tier.Truth, string) {
				compared = true
				return s.is, string(rune('a' + i))
			})
		if got != s.want || compared != s.compare || compared && text != string(rune('a'+i)) {
			t.Errorf("%d, at %s: %s, %q, compared: %t; want %s, %t", i, s.at, got, text, compared,
				s.want, s.compare)
		}
	}
}
