package main

import (
	"os"
	"testing"
)

// mistaken is a stream behind which the program has a mistake.
type mistaken struct{}

// Write implements io.Writer.
func (mistaken) Write([]byte) (int, error) { panic("a mistake of the program") }

// TestPanicIsNoSuccess: a command that panics ends as Go ends it, with its stack, and not without a
// word, with exit code 0.
func TestPanicIsNoSuccess(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("nothing is left of the panic")
		}
	}()
	sys := system{stdout: mistaken{}, stderr: mistaken{}, lookupEnv: os.LookupEnv}
	t.Errorf("exit code %d", run(t.Context(), []string{"version"}, sys))
}
