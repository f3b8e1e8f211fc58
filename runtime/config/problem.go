package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Place is where something stands in a file. Line and Column count from 1; 0 is not known.
type Place struct {
	File   string
	Line   int
	Column int
}

// String gives file:line:column, as far as they are known.
func (p Place) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	default:
		return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	}
}

// Short gives file:line, the form that reasons and table entries carry.
func (p Place) Short() string {
	p.Column = 0
	return p.String()
}

// Problem is one thing that is wrong with a file: where, what, and what would be right.
type Problem struct {
	Place Place
	Text  string // what is wrong
	Hint  string // what would be right; may be empty
}

// Error gives "file:line:column: what; what would be right".
func (p Problem) Error() string {
	if p.Hint == "" {
		return fmt.Sprintf("%s: %s", p.Place, p.Text)
	}
	return fmt.Sprintf("%s: %s; %s", p.Place, p.Text, p.Hint)
}

// Problems is everything that is wrong with a generation, by place. As an error it is one problem
// a line.
type Problems []Problem

// Error gives one problem a line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, x := range p {
		lines[i] = x.Error()
	}
	return strings.Join(lines, "\n")
}

// sorted orders the problems by place, which is how a reader fixes them.
func (p Problems) sorted() Problems {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Place.File, b.Place.File), cmp.Compare(a.Place.Line, b.Place.Line),
			cmp.Compare(a.Place.Column, b.Place.Column))
	})
	return p
}

// didYouMean is a hint that names the candidate which is nearest to word; empty if none is near.
func didYouMean(word string, candidates []string) string {
	if best := nearest(word, candidates); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return ""
}

// nearest returns the candidate that a writer of word most likely meant: one that differs in case,
// in "_" for "-", or in a left-out prefix ("ttl" for "table.log.ttl"), or else the one within a
// third of the word's length of edits. It is empty if there is none.
func nearest(word string, candidates []string) string {
	if word == "" || len(word) > 100 {
		return ""
	}
	plain := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "_", "-") }
	w := plain(word)
	best, bestEdits := "", max(1, len(w)/3)+1
	for _, c := range candidates {
		p := plain(c)
		if p == w || strings.HasSuffix(p, "."+w) {
			return c
		}
		if n := edits(w, p); n < bestEdits {
			best, bestEdits = c, n
		}
	}
	return best
}

// edits is the number of bytes to insert, delete, replace or swap with a neighbour to make b of a.
func edits(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
