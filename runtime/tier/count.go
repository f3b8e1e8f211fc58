package tier

import (
	"strconv"
	"strings"
)

// Count gives a number of things for people: "no" is never said, so 0 and 2 are "0 copies" and "2
// copies", and 1 is "1 copy". The noun is one that takes an s, ies for a y that follows no a, or es
// after sh.
func Count[N ~int | ~int64 | ~uint64](n N, noun string) string {
	if n != 1 {
		if stem, y := strings.CutSuffix(noun, "y"); y && !strings.HasSuffix(stem, "a") {
			noun = stem + "ie"
		} else if strings.HasSuffix(noun, "sh") {
			noun += "e"
		}
		noun += "s"
	}
	return strconv.FormatInt(int64(n), 10) + " " + noun
}
