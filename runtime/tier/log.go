package tier

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// LogID names one log: the table it belongs to and its name within the table. Its text is
// "table/name"; the last slash separates the two, so a table may contain slashes and a name may
// not.
type LogID struct {
	Table string
	Name  string
}

// ParseLogID splits s at its last slash and checks it.
func ParseLogID(s string) (LogID, error) {
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return LogID{}, fmt.Errorf("log id %q: want table/name, such as orders/0", s)
	}
	id := LogID{Table: s[:i], Name: s[i+1:]}
	return id, id.Validate()
}

// Validate reports what is wrong with the id: an empty part, a path step of "." or "..", a control
// character, or text that is not UTF-8.
func (id LogID) Validate() error {
	if why := id.wrong(); why != "" {
		return fmt.Errorf("log id %q: %s", id.String(), why)
	}
	return nil
}

// wrong is what is wrong with the id; "" is nothing. It is asked of every key, and makes nothing.
func (id LogID) wrong() string {
	switch {
	case id.Table == "" || id.Name == "":
		return "table and name must not be empty"
	case strings.Contains(id.Name, "/"):
		return "the name must not contain a slash"
	case !utf8.ValidString(id.Table) || !utf8.ValidString(id.Name):
		return "not valid UTF-8"
	case strings.ContainsFunc(id.Table, unicode.IsControl),
		strings.ContainsFunc(id.Name, unicode.IsControl):
		return "contains a control character"
	}
	for _, part := range []string{id.Table, id.Name} {
		for step := range strings.SplitSeq(part, "/") {
			if step == "" || step == "." || step == ".." {
				return "empty, . and .. are no path steps"
			}
		}
	}
	return ""
}

// String gives "table/name".
func (id LogID) String() string { return id.Table + "/" + id.Name }

// Compare orders ids by table, then by name.
func (id LogID) Compare(other LogID) int {
	if c := strings.Compare(id.Table, other.Table); c != 0 {
		return c
	}
	return strings.Compare(id.Name, other.Name)
}

// Layout is how a source keeps its logs on disk.
type Layout string

// The layouts that a source can have.
const (
	LayoutKafka Layout = "kafka"
	LayoutPlain Layout = "plain"
	LayoutFluss Layout = "fluss"
)

// TierState is where a table's tiering stands. A table begins ENABLED or DISABLED, and moves
// ENABLED -> DISABLING -> DISABLED -> ENABLED only (KIP-950).
type TierState string

// The tier states.
const (
	Enabled   TierState = "ENABLED"
	Disabling TierState = "DISABLING"
	Disabled  TierState = "DISABLED"
)

// TopicBytesMax is how long the name of a Kafka topic may be.
const TopicBytesMax = 249

// LegalTopic reports whether a Kafka broker could have a topic of the name: it has letters and
// digits of ASCII, dots, underscores and dashes, and is neither . nor .., as a broker checks when
// one is made.
func LegalTopic(name string) bool {
	if name == "" || name == "." || name == ".." || len(name) > TopicBytesMax {
		return false
	}
	for _, r := range name {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9',
			r == '.', r == '_', r == '-':
		default:
			return false
		}
	}
	return true
}
