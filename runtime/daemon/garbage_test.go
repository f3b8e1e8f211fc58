package daemon

import (
	"context"
	"runtime"
	gometrics "runtime/metrics"
	"testing"
)

func TestGarbagePercent(t *testing.T) {
	t.Parallel()
	for alive, want := range map[uint64]int{0: 300, 10 << 20: 300, 64 << 20: 200, 128 << 20: 100,
		256 << 20: 50, 4 << 30: 50} {
		if got := garbagePercent(alive); got != want {
			t.Errorf("%d MiB alive: %d, want %d", alive>>20, got, want)
		}
	}
}

// TestGarbageIsPacedByWhatIsAlive holds more than the percentage of a small heap is made for.
func TestGarbageIsPacedByWhatIsAlive(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pace(ctx)
	held := make([]byte, 1<<30) // it is never touched, so that nothing backs it
	percent := []gometrics.Sample{{Name: "/gc/gogc:percent"}}
	for range 100 {
		runtime.GC()
		gometrics.Read(percent)
		if percent[0].Value.Uint64() == 50 {
			break
		}
	}
	if got := percent[0].Value.Uint64(); got != 50 {
		t.Errorf("%d%% with %d MiB alive, want 50", got, len(held)>>20)
	}
	runtime.KeepAlive(held)
}
