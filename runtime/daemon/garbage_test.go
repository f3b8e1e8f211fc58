package daemon

import "testing"

func TestGarbagePercent(t *testing.T) {
	t.Parallel()
	for alive, want := range map[uint64]int{0: 300, 10 << 20: 300, 128 << 20: 200, 256 << 20: 100,
		4 << 30: 100} {
		if got := garbagePercent(alive); got != want {
			t.Errorf("%d MiB alive: %d, want %d", alive>>20, got, want)
		}
	}
}
