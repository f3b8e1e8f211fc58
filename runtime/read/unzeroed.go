package read

import (
	"strings"
	"unsafe"
)

// unzeroed makes n bytes with whatever was in their memory before, for a caller who fills all of
// them before anybody sees one. To clear a chunk first costs as much as to check its checksums.
//
// A strings.Builder is the one way in the standard library to have such memory. The string that it
// stands for has no other holder, so that nobody sees it change.
func unzeroed(n int64) []byte {
	if n == 0 {
		return nil
	}
	var b strings.Builder
	b.Grow(int(n))
	b.WriteByte(0) // an empty string has no address
	return unsafe.Slice(unsafe.StringData(b.String()), n)
}
