package config

import (
	"path"
	"strings"
)

// matcher finds the first of a list of names and globs that matches a name. It looks a literal one
// up, and tries a glob only on names that begin as it does, so that thousands of entries are loaded
// and asked at the price of a few.
type matcher struct {
	literal map[string]int // the first entry of the name
	globs   map[string][]glob
	longest int // bytes of the longest key of globs
}

// glob is an entry whose name is a pattern.
type glob struct {
	pattern string
	entry   int
}

// add adds the entry with the next number.
func (m *matcher) add(name string, entry int) {
	if m.literal == nil {
		m.literal, m.globs = map[string]int{}, map[string][]glob{}
	}
	if _, taken := m.literal[name]; !taken {
		m.literal[name] = entry // a glob is the literal name of its own too
	}
	if i := strings.IndexAny(name, globChars); i >= 0 {
		m.globs[name[:i]] = append(m.globs[name[:i]], glob{name, entry})
		m.longest = max(m.longest, i)
	}
}

// find gives the first entry that matches, or that has the very name.
func (m *matcher) find(name string) (entry int, ok bool) {
	entry, ok = m.literal[name]
	for i := 0; i <= min(len(name), m.longest); i++ {
		for _, g := range m.globs[name[:i]] {
			if ok && g.entry >= entry {
				break
			}
			if matches, _ := path.Match(g.pattern, name); matches {
				entry, ok = g.entry, true
				break
			}
		}
	}
	return entry, ok
}
