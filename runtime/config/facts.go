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
			{"kafka", placed(d, "kafka", &f.source, text)},
			{"groups", d.readGroups(&f.Groups)},
			{"max_age", value(d, "max_age", &f.MaxAge, duration(time.Millisecond))},
		})
		f.Kafka = f.source.value
		d.require(n, where, seen, "name", "max_age")
		d.checkOrigin(n, seen)
		for _, other := range *facts {
			if other.Name == f.Name && f.Name != "" {
				d.problem(n, "keep one of them", "the fact %q stands twice, first in line %d",
					f.Name, other.Place.Line)
			}
		}
		*facts = append(*facts, f)
	})
}

// checkOrigin says that a fact comes from a file or from a broker.
func (d *decoder) checkOrigin(n *yaml.Node, seen map[string]*yaml.Node) {
	file, kafka, groups := seen["path"], seen["kafka"], seen["groups"]
	switch {
	case n.Kind != yaml.MappingNode:
	case file != nil && kafka != nil:
		d.problem(kafka, "keep one of them", "a fact has both path and kafka")
	case file == nil && kafka == nil:
		d.problem(n, "add the path of a file, or kafka and groups",
			`the key "path" or "kafka" is missing in a fact`)
	case file != nil && groups != nil:
		d.problem(groups, "remove it", "groups: they belong to kafka, and this fact has a path")
	case kafka != nil:
		d.require(n, " in a fact with kafka", seen, "groups")
	}
}

// factGroupsMax bounds the groups of one fact.
const factGroupsMax = 100

// readGroups reads the names of consumer groups.
func (d *decoder) readGroups(groups *[]string) func(*yaml.Node) {
	read := d.list("groups", func(_ int, n *yaml.Node) {
		var group string
		before := len(d.problems)
		value(d, "groups", &group, text)(n)
		switch {
		case len(d.problems) > before:
		case slices.Contains(*groups, group):
			d.problem(n, "keep one of them", "the group %q stands twice", group)
		default:
			*groups = append(*groups, group)
		}
	})
	return func(n *yaml.Node) {
		read(n)
		if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
			d.problem(n, "", "groups: want at least one group, got an empty list")
		}
		if len(n.Content) > factGroupsMax {
			d.problem(n, "make several facts of them", "groups: want at most %d, got %d",
				factGroupsMax, len(n.Content))
		}
	}
}

// checkFacts says whether the sources of facts have a broker.
func (d *decoder) checkFacts(c *Config) {
	for _, f := range c.Facts {
		i := slices.IndexFunc(c.Sources, func(s Source) bool { return s.Name == f.Kafka })
		switch {
		case f.Kafka == "":
		case i < 0:
			names := make([]string, len(c.Sources))
			for i, s := range c.Sources {
				names[i] = s.Name
			}
			d.problemAt(f.source.place, didYouMean(f.Kafka, names), "kafka: there is no source %q",
				f.Kafka)
		case c.Sources[i].Kafka.Bootstrap == "":
			d.problemAt(f.source.place, `add kafka: {bootstrap: "host:port"} to it`,
				"kafka: the source %q does not say where its broker is", f.Kafka)
		}
	}
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

// FactFields are the fields of the facts whose fields are known: the groups of those that a broker
// knows.
func (c *Config) FactFields() map[string][]string {
	fields := map[string][]string{}
	for _, f := range c.Facts {
		if f.Kafka != "" {
			fields[f.Name] = f.Groups
		}
	}
	return fields
}

// printFacts gives the facts as the file has them; nil where there are none.
func (c *Config) printFacts() *yaml.Node {
	if len(c.Facts) == 0 {
		return nil
	}
	out := &yaml.Node{Kind: yaml.SequenceNode}
	for _, f := range c.Facts {
		var groups *yaml.Node
		if f.Kafka != "" {
			groups = texts(f.Groups)
		}
		out.Content = append(out.Content, mapping("name", scalar(f.Name), "path", optional(f.Path),
			"kafka", optional(f.Kafka), "groups", groups, "max_age", durationNode(f.MaxAge)))
	}
	return out
}
