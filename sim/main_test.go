package sim

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets chance write the same histories each time, so that a change is judged by itself and
// not by what it met. `make histories` tries others, as -rapid.seed=0 does.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.seed", "1"); err != nil {
		panic(err)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // as cmd/tiersim does
	}
	os.Exit(m.Run())
}
