package tier_test

import (
	"testing"

	"github.com/tierd/tierd/runtime/tier"
)

// TestParseTime: an instant is read back as it is written, and one that 64 bits cannot hold is
// refused rather than taken for another.
func TestParseTime(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"2026-03-01T12:00:00Z", "2026-03-01T12:00:00.000000001Z",
		"1678-01-01T00:00:00Z", "2261-12-31T23:59:59Z"} {
		if at, err := tier.ParseTime(s); err != nil || at.String() != s {
			t.Errorf("%s: %s, %v", s, at, err)
		}
	}
	if at, err := tier.ParseTime("2026-03-01T14:00:00+02:00"); err != nil ||
		at.String() != "2026-03-01T12:00:00Z" {
		t.Errorf("of another zone: %s, %v", at, err)
	}
	for _, s := range []string{"", "2026-03-01", "1677-12-31T23:59:59Z", "2262-01-01T00:00:00Z",
		"9999-01-01T00:00:00Z", "0001-01-01T00:00:00Z"} {
		if at, err := tier.ParseTime(s); err == nil {
			t.Errorf("%q is taken for %s", s, at)
		}
	}
}
