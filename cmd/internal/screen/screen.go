// Package screen makes texts of others fit for a terminal. Reasons of policies, lines of plugins,
// names of files and answers of servers may hold anything; a terminal acts upon some of it, and
// what it does not show could make one text look like another.
package screen

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Text gives s with everything as an escape, such as \x1b, that is no visible character, space,
// tab or end of a line.
func Text(s string) string { return escaped(s, "\t\n") }

// Line gives s as Text does, and on one line: a text that goes on below looks like another.
func Line(s string) string { return escaped(s, "") }

func escaped(s, but string) string {
	clean := true
	for _, r := range s {
		clean = clean && r != unicode.ReplacementChar && (unicode.IsGraphic(r) ||
			strings.ContainsRune(but, r))
	}
	if clean {
		return s
	}
	var b strings.Builder
	for at, r := range s {
		switch {
		case r == unicode.ReplacementChar && !strings.HasPrefix(s[at:], string(r)):
			fmt.Fprintf(&b, `\x%02x`, s[at]) // a byte that is no UTF-8
		case unicode.IsGraphic(r), strings.ContainsRune(but, r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}
