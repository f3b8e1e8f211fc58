package document

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// yamlLine is how the YAML library says where something is wrong.
var yamlLine = regexp.MustCompile(`^yaml: (?:unmarshal errors:\n  )?(?:line (\d+): )?([^\n]*)`)

// What the library says of the second of its layers. The lines that it gives of these count from 0.
var yamlParser = regexp.MustCompile(`^did not find expected (<|node content|'-'|key|',')` +
	`|^found (undefined tag|duplicate|incompatible YAML)`)

// The characters that the library says no more of than their line, and often not the right one.
var (
	tabIndents = regexp.MustCompile(`(?m)^ *\t`)
	noToken    = regexp.MustCompile("(?m)^ *\\t|(?:^|[:,?{\\[-])[ \\t]*[@`%]")
	control    = regexp.MustCompile(`[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]`)
)

// NoYAML tells where content is no YAML, and what is wrong there, of an error of the YAML library.
// That gives no column and, where it is the first line or the error is of single characters, no
// line either.
func NoYAML(content []byte, err error) (Place, string) {
	line, text := 1, err.Error()
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		text = m[2]
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
			if yamlParser.MatchString(text) {
				line = min(line+1, End(content).Line)
			}
		}
	}
	from := lineStart(content, line)
	if at, known := charOf(content, from, text); known {
		if at < len(content) && content[at] == '\t' {
			text = "a tab stands here, and YAML is indented by spaces alone"
		}
		return At(content, at), text
	}
	return Place{Line: line}, text
}

// charOf is the offset of the character that is wrong, at from or behind it.
func charOf(content []byte, from int, text string) (offset int, known bool) {
	var find *regexp.Regexp
	switch name, anchor := strings.CutPrefix(text, "unknown anchor '"); {
	case anchor:
		alias := "*" + strings.TrimSuffix(name, "' referenced")
		written := regexp.MustCompile(`(?m)^[^#\n]*` + regexp.QuoteMeta(alias))
		if m := written.FindIndex(content); m != nil {
			return m[1] - len(alias), true
		}
		return 0, false
	case strings.Contains(text, "UTF-8"):
		return firstInvalid(content), true
	case strings.HasPrefix(text, "control characters"):
		find, from = control, 0
	case strings.HasPrefix(text, "found a tab character"):
		find = tabIndents
	case text == "found character that cannot start any token":
		find = noToken
	default:
		return 0, false
	}
	m := find.FindIndex(content[from:])
	if m == nil {
		return 0, false
	}
	return from + m[1] - 1, true
}

// lineStart is the offset at which the line begins.
func lineStart(content []byte, line int) int {
	at := 0
	for ; line > 1; line-- {
		i := bytes.IndexByte(content[at:], '\n')
		if i < 0 {
			break
		}
		at += i + 1
	}
	return at
}
