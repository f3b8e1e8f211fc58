// Package screen makes texts of others fit for a terminal. Reasons of policies, lines of plugins,
// names of files and answers of servers may hold anything; a terminal acts upon some of it, what it
// does not show could make one text look like another, and continuous integration acts upon some
// lines of what a command prints.
package screen

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// Text gives s as Visible does, and with no line of it a command to continuous integration.
func Text(s string) string { return inert(Visible(s)) }

// Line gives s as Text does, and on one line: a text that goes on below looks like another.
func Line(s string) string { return inert(escaped(s, "")) }

// Visible gives s with everything as an escape, such as \x1b, that is no visible character, space,
// tab or end of a line. It is for files, and for lines that are meant to be commands.
func Visible(s string) string { return escaped(s, "\t\n") }

// GitHub's commands, ::name::, begin a line; ##[name] and ##name[ of GitHub, Azure and TeamCity may
// stand in the middle of one.
var (
	commands = regexp.MustCompile(`(?m)^([\t\p{Zs}]*):(:[A-Za-z-]+(?: .*)?::)`)
	inside   = regexp.MustCompile(`#(#[A-Za-z]*\[)`)
)

// inert gives s with an escape in each command.
func inert(s string) string {
	if !strings.Contains(s, "::") && !strings.Contains(s, "##") {
		return s
	}
	s = commands.ReplaceAllString(s, `${1}\x3a$2`)
	return inside.ReplaceAllString(s, `\x23$1`)
}

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
