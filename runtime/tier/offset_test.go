package tier_test

import (
	"math"
	"testing"
	"time"

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

// TestTimeOf: no instant comes out as another one, however far it is.
func TestTimeOf(t *testing.T) {
	t.Parallel()
	day := func(year int) time.Time { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }
	for _, c := range []struct {
		at   time.Time
		want tier.Time
	}{
		{time.Time{}, 0},
		{day(2026), tier.Time(day(2026).UnixNano())},
		{day(1900), tier.Time(day(1900).UnixNano())},
		{day(2261), tier.Time(day(2261).UnixNano())},
		{day(2262), math.MaxInt64},
		{day(2600), math.MaxInt64},
		{day(9999), math.MaxInt64},
		{day(1678), tier.Time(day(1678).UnixNano())},
		{day(1600), -1 << 62},
	} {
		if got := tier.TimeOf(c.at); got != c.want {
			t.Errorf("%s is %d, want %d", c.at, got, c.want)
		}
	}
	if age := tier.TimeOf(day(2026)).Sub(tier.TimeOf(day(1600))); age < 0 {
		t.Errorf("what is older than can be said is %s old", age)
	}
}
