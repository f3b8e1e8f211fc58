package main

import "testing"

// TestGarbagePercent: a small search has room, and a large one does not take more than it always
// did.
func TestGarbagePercent(t *testing.T) {
	t.Parallel()
	for alive, want := range map[uint64]int{0: 1600, 1 << 20: 1600, 32 << 20: 1200, 96 << 20: 400,
		1 << 30: 400, 1 << 40: 400} {
		if got := garbagePercent(alive); got != want {
			t.Errorf("%d bytes alive: %d per cent, want %d", alive, got, want)
		}
	}
}
