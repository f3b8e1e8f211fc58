package tier

import "testing"

func TestBytes(t *testing.T) {
	t.Parallel()
	for b, want := range map[Bytes]string{0: "0B", 1500: "1500B", 1024: "1KiB", 100 << 30: "100GiB",
		100<<30 + 1: "107374182401B", 1 << 60: "1024PiB"} {
		if got := b.String(); got != want {
			t.Errorf("%d: %s, want %s", int64(b), got, want)
		}
	}
}
