// Package verbatimtest has what the tests of texts read by package verbatim share.
package verbatimtest

import (
	"iter"
	"slices"
)

// Near gives all texts that are near the text: with another byte in some place, with one more or
// one less, and cut off. The bytes are those that mean something in JSON, or are none of it.
func Near(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := range text {
			for _, b := range []byte(`"\{}[]:,-+01aA. ` + "\x00\x80") {
				other := slices.Clone(text)
				other[i] = b
				if !yield(other) || !yield(slices.Insert(slices.Clone(text), i, b)) {
					return
				}
			}
			if !yield(text[:i]) || !yield(slices.Delete(slices.Clone(text), i, i+1)) ||
				!yield(slices.Insert(slices.Clone(text), i, text[i])) {
				return
			}
		}
	}
}
