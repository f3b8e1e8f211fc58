package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tierd/tierd/runtime/tier"
)

// defaultPattern is the pattern of a plain source that has none.
const defaultPattern = `(?P<base>\d+)\.log`

// groupBase is the group of a plain source's pattern that holds the base offset.
const groupBase = "base"

// readSources reads the list of sources.
func (d *decoder) readSources(c *Config) func(*yaml.Node) {
	return func(n *yaml.Node) {
		d.list("sources", func(_ int, v *yaml.Node) {
			if s, ok := d.source(v); ok {
				d.checkSource(c.Sources, s)
				c.Sources = append(c.Sources, s)
			}
		})(n)
		if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
			d.problem(n, "", "sources: want at least one source, got an empty list")
		}
	}
}

// source reads one source. ok is false where name, layout or path are missing or wrong, so that
// nothing else can be said of it.
func (d *decoder) source(n *yaml.Node) (s Source, ok bool) {
	const where = " in a source"
	s.Place = d.at(n)
	var del setting[tier.LocalDelete]
	seen := d.object(n, where, []field{
		{"name", value(d, "name", &s.Name, sourceName)},
		{"layout", value(d, "layout", &s.Layout, layout)},
		{"path", value(d, "path", &s.Path, d.path)},
		{"local_delete", placed(d, "local_delete", &del, localDelete)},
		{"kafka", d.readBroker(&s.Kafka)},
		{"pattern", value(d, "pattern", &s.Pattern, pattern)},
		{"next", value(d, "next", &s.Next, oneOf(NextFollowing, NextBasePlus1, NextBaseSize))},
		{"closed_after", value(d, "closed_after", &s.ClosedAfter, duration(time.Second))},
	})
	d.require(n, where, seen, "name", "layout", "path")
	s.LocalDelete = del.value
	if s.LocalDelete == "" {
		s.LocalDelete = tier.LocalDeleteNever
		if s.Layout == tier.LayoutPlain {
			s.LocalDelete = tier.LocalDeleteUnlink
		}
	}
	d.checkPlain(n, &s, seen)
	d.checkBroker(&s, del.place, seen)
	return s, s.Name != "" && s.Layout != "" && s.Path != ""
}

// checkPlain checks the keys that only some plain sources may have.
func (d *decoder) checkPlain(n *yaml.Node, s *Source, seen map[string]*yaml.Node) {
	if s.Layout == "" {
		return
	}
	if s.Layout != tier.LayoutPlain {
		for _, key := range []string{"pattern", "next", "closed_after"} {
			if k := seen[key]; k != nil {
				d.problem(k, "remove it", "%s: only plain sources have it, and this one is %s",
					key, s.Layout)
			}
		}
		return
	}
	if seen["pattern"] == nil {
		s.Pattern = defaultPattern
	}
	if seen["next"] == nil {
		s.Next = NextFollowing
	}
	if k := seen["closed_after"]; k != nil && s.Next == NextFollowing {
		d.problem(k, "set next to base+1 or base+size, or remove it",
			"closed_after: with next: following the end of the last segment is not known")
	}
}

// sourceNamePattern keeps names usable as labels of metrics and in messages.
var sourceNamePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

func sourceName(n *yaml.Node) (string, error) {
	s, err := text(n)
	if err == nil && !sourceNamePattern.MatchString(s) {
		err = fmt.Errorf("want letters, digits, dot, dash and underscore, at most 100, got %q", s)
	}
	return s, err
}

// layout reads a layout.
var layout = oneOf(tier.LayoutKafka, tier.LayoutFluss, tier.LayoutPlain)

// localDelete reads a way to delete local segments.
var localDelete = oneOf(tier.LocalDeleteNever, tier.LocalDeleteUnlink, tier.LocalDeleteRecords)

// pattern reads the regular expression of a plain source.
func pattern(n *yaml.Node) (string, error) {
	s, err := text(n)
	if err != nil {
		return "", err
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return "", fmt.Errorf("not a regular expression: %w", err)
	}
	if !slices.Contains(re.SubexpNames(), groupBase) {
		return "", &hinted{fmt.Sprintf("%q has no group %q for the base offset", s, groupBase),
			`such as (?P<base>\d+)\.log`}
	}
	return s, nil
}

// checkSource checks a source against those before it.
func (d *decoder) checkSource(before []Source, s Source) {
	real := d.host.RealPath(s.Path)
	for _, b := range before {
		if b.Name == s.Name {
			d.problemAt(s.Place, "give it another name",
				"the source name %q stands twice, first in line %d", s.Name, b.Place.Line)
		}
		switch other := d.host.RealPath(b.Path); {
		case other == real:
			d.problemAt(s.Place, "one directory is one source",
				"the sources %q and %q have the same path %s", b.Name, s.Name, real)
			return
		case within(other, real) || within(real, other):
			d.problemAt(s.Place, "one log must not lie in two sources",
				"the directories of the sources %q and %q lie in one another", b.Name, s.Name)
			return
		}
	}
}

// checkApart reports a bucket or data directory that shares files with a source, or one another.
func (d *decoder) checkApart(c *Config, dataDir setting[string]) {
	data := d.host.RealPath(c.DataDir)
	dataPlace := dataDir.place
	if !dataDir.set() {
		dataPlace = Place{File: d.file}
	}
	bucket := ""
	if c.Bucket.Directory != "" {
		bucket = d.host.RealPath(c.Bucket.Directory)
	}
	for _, s := range c.Sources {
		source := d.host.RealPath(s.Path)
		if bucket != "" && (within(bucket, source) || within(source, bucket)) {
			d.problemAt(c.Bucket.place, "keep them apart",
				"the bucket's directory and that of the source %q are the same or lie in one "+
					"another", s.Name)
		}
		if within(data, source) {
			d.problemAt(dataPlace, "keep them apart", "data_dir lies in the source %q", s.Name)
		}
	}
	if bucket != "" && within(data, bucket) {
		d.problemAt(dataPlace, "keep them apart", "data_dir lies in the bucket's directory")
	}
}

// Apart reports why files that are none of tierd's must not be written to a directory: it shares
// them with a source, the bucket or data_dir; nil where it does not. A source's own directory is
// apart: what it lost comes back there.
func (c *Config) Apart(h *Host, dir string) error {
	real := h.RealPath(dir)
	shares := func(path string) bool {
		other := h.RealPath(path)
		return within(real, other) || within(other, real)
	}
	for _, s := range c.Sources {
		if shares(s.Path) && real != h.RealPath(s.Path) {
			return fmt.Errorf("it shares files with the source %q (%s), which takes them for logs", s.Name,
				s.Path)
		}
	}
	switch {
	case c.Bucket.Directory != "" && shares(c.Bucket.Directory):
		return fmt.Errorf("it shares files with the bucket's directory %s", c.Bucket.Directory)
	case shares(c.DataDir):
		return fmt.Errorf("it shares files with data_dir, %s", c.DataDir)
	}
	return nil
}

// within reports whether the path is dir or lies below it. Both are absolute and clean.
func within(path, dir string) bool {
	const separator = string(filepath.Separator)
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, separator)+separator)
}
