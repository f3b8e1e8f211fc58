//go:build !wasip1

package tierd

import (
	"fmt"
	"os"
)

// Log writes a line to the standard error where the plugin runs in a native test.
func Log(text string) { fmt.Fprintln(os.Stderr, text) }
