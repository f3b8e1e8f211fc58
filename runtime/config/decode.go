package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// decoder walks the nodes of one file and collects every problem it meets; it never stops at the
// first.
type decoder struct {
	file     string // as given, for places
	dir      string // absolute; relative paths start here
	host     Host
	problems Problems
	warnings Problems
	places   map[string]Place // of values that others check, by key
}

// noted keeps the place of a value that others check.
func (d *decoder) noted(key string, read func(*yaml.Node)) func(*yaml.Node) {
	return func(n *yaml.Node) {
		d.places[key] = d.at(n)
		read(n)
	}
}

// field is a key of a mapping and what reads its value.
type field struct {
	name string
	read func(v *yaml.Node)
}

// at is the place of a node.
func (d *decoder) at(n *yaml.Node) Place { return Place{d.file, n.Line, n.Column} }

func (d *decoder) problem(n *yaml.Node, hint, format string, args ...any) {
	d.problemAt(d.at(n), hint, format, args...)
}

func (d *decoder) problemAt(p Place, hint, format string, args ...any) {
	d.problems = append(d.problems, Problem{p, fmt.Sprintf(format, args...), hint})
}

func (d *decoder) warn(p Place, hint, format string, args ...any) {
	d.warnings = append(d.warnings, Problem{p, fmt.Sprintf(format, args...), hint})
}

// object reads a mapping strictly and returns its keys: each must be one of known and stand once.
// where completes "unknown key ...", such as "in copy"; it is empty for the file itself.
func (d *decoder) object(n *yaml.Node, where string, known []field) map[string]*yaml.Node {
	seen := map[string]*yaml.Node{}
	if n.Kind != yaml.MappingNode {
		d.problem(n, "", "want a mapping%s, got %s", where, describe(n))
		return seen
	}
	d.pairs(n, func(key, value *yaml.Node) {
		seen[key.Value] = key
		for _, f := range known {
			if f.name == key.Value {
				f.read(value)
				return
			}
		}
		d.problem(key, keyHint(key.Value, known), "unknown key %q%s", key.Value, where)
	})
	return seen
}

// pairs visits the entries of a mapping whose keys are plain and stand once, and reports the
// others.
func (d *decoder) pairs(n *yaml.Node, visit func(key, value *yaml.Node)) {
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		first, twice := seen[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge":
			d.problem(key, "write the keys out", "want a plain key, got %s", describe(key))
		case twice:
			d.problem(key, "keep one of them", "the key %q stands twice, first in line %d",
				key.Value, first.Line)
		default:
			seen[key.Value] = key
			visit(key, value)
		}
	}
}

// keyHint says what was probably meant by an unknown key.
func keyHint(key string, known []field) string {
	names := make([]string, len(known))
	for i, f := range known {
		names[i] = f.name
	}
	if hint := didYouMean(key, names); hint != "" {
		return hint
	}
	if slices.Contains(settingKeys, key) {
		return `it belongs into "defaults" or an entry of "tables"`
	}
	if near := nearest(key, settingKeys); near != "" && strings.Contains(key, ".") {
		return fmt.Sprintf(`did you mean %q, in "defaults" or an entry of "tables"?`, near)
	}
	return "the keys here are " + strings.Join(names, ", ")
}

// require reports each of the names that is not among the keys seen.
func (d *decoder) require(n *yaml.Node, where string, seen map[string]*yaml.Node, names ...string) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for _, name := range names {
		if seen[name] == nil {
			d.problem(n, "", "the key %q is missing%s", name, where)
		}
	}
}

// list reads a sequence.
func (d *decoder) list(what string, read func(i int, v *yaml.Node)) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.SequenceNode {
			d.problem(n, "", "%s: want a list, got %s", what, describe(n))
			return
		}
		for i, v := range n.Content {
			read(i, v)
		}
	}
}

// setting is a value and where it was set; the zero Place is the built-in default.
type setting[T any] struct {
	value T
	place Place
}

func (s setting[T]) set() bool { return s.place != Place{} }

// value reads a scalar into dst by parse; what names it in problems.
func value[T any](d *decoder, what string, dst *T, parse parser[T]) func(*yaml.Node) {
	return func(n *yaml.Node) {
		v, err := parse(n)
		if err != nil {
			hint := ""
			if h := (*hinted)(nil); errors.As(err, &h) {
				hint = h.hint
			}
			d.problem(n, hint, "%s: %v", what, err)
			return
		}
		*dst = v
	}
}

// placed reads a scalar like value, and keeps its place.
func placed[T any](d *decoder, what string, dst *setting[T], parse parser[T]) func(*yaml.Node) {
	return func(n *yaml.Node) {
		before := len(d.problems)
		value(d, what, &dst.value, parse)(n)
		if len(d.problems) == before {
			dst.place = d.at(n)
		}
	}
}

// parser makes a value of a node, or says what it wants instead.
type parser[T any] func(*yaml.Node) (T, error)

// hinted is an error with what would be right.
type hinted struct {
	text string
	hint string
}

func (h *hinted) Error() string { return h.text }

// raw returns the text of a scalar that has one of the tags; want says what is wanted.
func raw(n *yaml.Node, want string, tags ...string) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Anchor != "" || !slices.Contains(tags, n.ShortTag()) {
		return "", fmt.Errorf("want %s, got %s", want, describe(n))
	}
	return n.Value, nil
}

// describe names what a node is, for people. It never shows the value of a tagged node.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.AliasNode:
		return "an alias, and aliases are not supported"
	case n.Anchor != "":
		return "an anchor, and anchors are not supported"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!int", "!!float":
		return "the number " + n.Value
	case "!!bool":
		return n.Value
	case "!!merge":
		return "a merge key, and merge keys are not supported"
	case "!!str":
		return strconv.Quote(n.Value)
	default:
		return "a value with the tag " + n.ShortTag()
	}
}

func text(n *yaml.Node) (string, error) {
	s, err := raw(n, "a text", "!!str")
	if n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!int" || n.ShortTag() == "!!bool") {
		return "", &hinted{err.Error(), "write it in quotes"}
	}
	if err == nil && s == "" {
		return "", errors.New("must not be empty")
	}
	return s, err
}

func boolean(n *yaml.Node) (bool, error) {
	s, err := raw(n, "true or false", "!!bool")
	return strings.EqualFold(s, "true"), err
}

// duration reads a duration of at least least.
func duration(least time.Duration) parser[time.Duration] {
	return func(n *yaml.Node) (time.Duration, error) {
		const want = "a duration such as 30s, 36h or 7d"
		s, err := raw(n, want, "!!str", "!!int", "!!float")
		if err != nil {
			return 0, err
		}
		v, err := parseDuration(s)
		if err != nil {
			hint := ""
			if span(s, "0123456789") == len(s) && s != "" {
				hint = fmt.Sprintf("did you mean %ss or %sd?", s, s)
			}
			return 0, &hinted{fmt.Sprintf("want %s, got %q: %v", want, s, err), hint}
		}
		if v < least {
			return 0, fmt.Errorf("want at least %s, got %q", FormatDuration(least), s)
		}
		return v, nil
	}
}

// size reads a number of bytes of at least least.
func size(least int64) parser[int64] {
	return func(n *yaml.Node) (int64, error) {
		const want = "a size such as 100GiB, 1MB or 4096"
		s, err := raw(n, want, "!!str", "!!int", "!!float")
		if err != nil {
			return 0, err
		}
		v, err := parseBytes(s)
		if err != nil {
			return 0, fmt.Errorf("want %s, got %q: %w", want, s, err)
		}
		if v < least {
			return 0, fmt.Errorf("want at least %d, got %q", least, s)
		}
		return v, nil
	}
}

// count reads a whole number in [least, most].
func count(least, most int64) parser[int64] {
	return func(n *yaml.Node) (int64, error) {
		s, err := raw(n, "a whole number", "!!int")
		if err != nil {
			return 0, err
		}
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil || v < least || v > most {
			return 0, fmt.Errorf("want a whole number from %d to %d, got %s", least, most, s)
		}
		return v, nil
	}
}

// oneOf reads one of the words.
func oneOf[T ~string](words ...T) parser[T] {
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = string(w)
	}
	return func(n *yaml.Node) (T, error) {
		want := "one of " + strings.Join(names, ", ")
		s, err := raw(n, want, "!!str")
		if err == nil && !slices.Contains(names, s) {
			return "", &hinted{fmt.Sprintf("want %s, got %q", want, s), didYouMean(s, names)}
		}
		return T(s), err
	}
}

// path reads a path and makes it absolute.
func (d *decoder) path(n *yaml.Node) (string, error) {
	s, err := text(n)
	if err != nil {
		return "", err
	}
	if strings.ContainsRune(s, 0) {
		return "", errors.New("want a path, got one with a zero byte")
	}
	return d.abs(s), nil
}

// abs resolves a path of the file against the file's directory.
func (d *decoder) abs(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(d.dir, name)
}
