package tier

import "testing"

func TestCount(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"0 segments":      Count(0, "segment"),
		"1 segment":       Count(int64(1), "segment"),
		"2 more segments": Count(uint64(2), "more segment"),
		"1 copy":          Count(1, "copy"),
		"3 copies":        Count(3, "copy"),
		"4 days":          Count(4, "day"),
		"1 crash":         Count(1, "crash"),
		"0 crashes":       Count(0, "crash"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
