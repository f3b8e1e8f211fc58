package rego

import (
	"fmt"
	"strings"
)

// suggest ends an error message: with the known word nearest to the wrong one if there is a near
// one, else with all of them.
func suggest(wrong string, known []string) string {
	if near := nearest(wrong, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	if len(known) == 0 {
		return ""
	}
	return "; it has " + strings.Join(known, ", ")
}

// NoFact says that there is no fact of the name, and which one may have been meant.
func NoFact(name string, known []string) string {
	if near := nearest(name, known); near != "" {
		return fmt.Sprintf("%s: no fact %s; did you mean %s?", name, name, near)
	}
	if len(known) == 0 {
		return fmt.Sprintf("%s: no fact %s; the configuration has no facts", name, name)
	}
	return fmt.Sprintf("%s: no fact %s; there are %s", name, name, strings.Join(known, ", "))
}

// nearest returns the first word of known that wrong is the beginning of, as age is of age_ns; else
// the first within a third of its length in edits of wrong, at least two; "" if there is none.
func nearest(wrong string, known []string) string {
	best, bestDistance := "", 0
	for _, k := range known {
		if wrong != "" && strings.HasPrefix(k, wrong+"_") {
			return k
		}
	}
	for _, k := range known {
		d := editDistance(strings.ToLower(wrong), strings.ToLower(k))
		if d <= max(2, len(k)/3) && d < len(k) && (best == "" || d < bestDistance) {
			best, bestDistance = k, d
		}
	}
	return best
}

// editDistance is Levenshtein's, in bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substituted := diagonal
			if a[i] != b[j] {
				substituted++
			}
			diagonal = row[j+1]
			row[j+1] = min(substituted, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
