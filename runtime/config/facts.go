package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// factName is what a fact may be called: policies write input.facts.NAME.
var factName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// factNameBytesMax bounds a name.
const factNameBytesMax = 64

// readFacts reads the list of facts.
func (d *decoder) readFacts(facts *[]Fact) func(*yaml.Node) {
	return d.list("facts", func(_ int, n *yaml.Node) {
		const where = " in a fact"
		f := Fact{Place: d.at(n)}
		seen := d.object(n, where, []field{
			{"name", value(d, "name", &f.Name, parseFactName)},
			{"path", value(d, "path", &f.Path, d.factPath)},
			{"max_age", value(d, "max_age", &f.MaxAge, duration(time.Millisecond))},
		})
		d.require(n, where, seen, "name", "path", "max_age")
		for _, other := range *facts {
			if other.Name == f.Name && f.Name != "" {
				d.problem(n, "keep one of them", "the fact %q stands twice, first in line %d",
					f.Name, other.Place.Line)
			}
		}
		*facts = append(*facts, f)
	})
}

func parseFactName(n *yaml.Node) (string, error) {
	s, err := text(n)
	if err == nil && (!factName.MatchString(s) || len(s) > factNameBytesMax) {
		return "", &hinted{fmt.Sprintf("want a name such as offsets, got %q", s), "lower case, " +
			"digits and _, after a letter: policies write input.facts.NAME"}
	}
	return s, err
}

// factPath reads a path whose extension says how to read the file.
func (d *decoder) factPath(n *yaml.Node) (string, error) {
	path, err := d.path(n)
	if err == nil && !slices.Contains(dataExt, filepath.Ext(path)) {
		return "", fmt.Errorf("want a file that ends in %s, got %q", strings.Join(dataExt, ", "),
			n.Value)
	}
	return path, err
}

// FactNames are the names of the facts. It is never nil.
func (c *Config) FactNames() []string {
	names := make([]string, len(c.Facts))
	for i, f := range c.Facts {
		names[i] = f.Name
	}
	return names
}

// printFacts gives the facts as the file has them; nil where there are none.
func (c *Config) printFacts() *yaml.Node {
	if len(c.Facts) == 0 {
		return nil
	}
	out := &yaml.Node{Kind: yaml.SequenceNode}
	for _, f := range c.Facts {
		out.Content = append(out.Content, mapping("name", scalar(f.Name), "path", scalar(f.Path),
			"max_age", durationNode(f.MaxAge)))
	}
	return out
}
