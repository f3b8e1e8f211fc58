package tier

import "fmt"

// Bytes is a number of bytes that prints as it would stand in a configuration: in the largest unit
// that leaves a whole number, 100GiB or 1500B.
type Bytes int64

// String gives the number with its unit.
func (b Bytes) String() string {
	unit := "B"
	for _, larger := range [...]string{"KiB", "MiB", "GiB", "TiB", "PiB"} {
		if b == 0 || b%1024 != 0 {
			break
		}
		b, unit = b/1024, larger
	}
	return fmt.Sprintf("%d%s", int64(b), unit)
}
