package config

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tierd/tierd/runtime/tier"
)

// scalar is a text, quoted where it would read as something else.
func scalar(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

// word is a scalar as it stands: a number, true or false.
func word(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

// mapping makes a mapping of keys and nodes, in turn. Nil nodes are left out.
func mapping(pairs ...any) *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i+1 < len(pairs); i += 2 {
		v, ok := pairs[i+1].(*yaml.Node)
		if !ok || v == nil {
			continue
		}
		out.Content = append(out.Content, scalar(pairs[i].(string)), v)
	}
	return out
}

func texts(list []string) *yaml.Node {
	out := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, s := range list {
		out.Content = append(out.Content, scalar(s))
	}
	return out
}

func number(n int64) *yaml.Node               { return word(strconv.FormatInt(n, 10)) }
func bytesNode(n int64) *yaml.Node            { return word(FormatBytes(n)) }
func durationNode(d time.Duration) *yaml.Node { return word(FormatDuration(d)) }

func optional(s string) *yaml.Node {
	if s == "" {
		return nil
	}
	return scalar(s)
}

// Redacted gives the whole effective configuration as YAML: every default filled in, every path
// absolute, the secrets of the bucket replaced. Parsing it gives a configuration that prints the
// same.
func (c *Config) Redacted() ([]byte, error) {
	sources := &yaml.Node{Kind: yaml.SequenceNode}
	for _, s := range c.Sources {
		sources.Content = append(sources.Content, s.print())
	}
	plugins, err := c.printPlugins()
	if err != nil {
		return nil, err
	}
	root := mapping(
		"data_dir", scalar(c.DataDir),
		"interval", durationNode(c.Interval),
		keySystem, word(strconv.FormatBool(c.SystemEnable)),
		"sources", sources,
		"bucket", c.Bucket.print(),
		"defaults", mapping(c.defaults.settings()...),
		"tables", c.printTables(),
		"policies", mapping(
			"paths", texts(c.Policies.Paths),
			"data", texts(c.Policies.Data),
			"max_policy_age", durationNode(c.Policies.MaxAge)),
		"facts", c.printFacts(),
		"plugins", plugins,
		"copy", mapping(
			"verify", scalar(string(c.Copy.Verify)),
			"workers", number(int64(c.Copy.Workers)),
			"bytes_per_second", bytesNode(c.Copy.BytesPerSecond),
			"timeout", durationNode(c.Copy.Timeout),
			"hold_max", durationNode(c.Copy.HoldMax)),
		"limits", c.Limits.print(),
		"http", c.HTTP.print(),
		"read", c.Read.print(),
		"scrub", c.Scrub.print(),
		"kafka", c.Kafka.print(),
	)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("print the configuration: %w", err)
	}
	return out.Bytes(), nil
}

func (s Source) print() *yaml.Node {
	closed := (*yaml.Node)(nil)
	if s.ClosedAfter > 0 {
		closed = durationNode(s.ClosedAfter)
	}
	return mapping(
		"name", scalar(s.Name), "layout", scalar(string(s.Layout)), "path", scalar(s.Path),
		"local_delete", scalar(string(s.LocalDelete)), "pattern", optional(s.Pattern),
		"next", optional(string(s.Next)), "closed_after", closed, "kafka", s.Kafka.print())
}

func (b Bucket) print() *yaml.Node {
	own := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i+1 < len(b.node.Content); i += 2 {
		if b.node.Content[i].Value == "config" {
			own = redact(b.node.Content[i+1], "")
		}
	}
	for i := 0; b.Directory != "" && i+1 < len(own.Content); i += 2 {
		if own.Content[i].Value == "directory" && !envName.MatchString(own.Content[i+1].Value) {
			own.Content[i+1] = scalar(b.Directory)
		}
	}
	return mapping("type", scalar(b.Type), "config", own, "prefix", scalar(b.Prefix))
}

func (l Limits) print() *yaml.Node {
	return mapping(
		"max_delete_segments", number(l.MaxDeleteSegments),
		"max_delete_bytes", bytesNode(l.MaxDeleteBytes),
		"per", durationNode(l.Per),
		"remote_delete_grace", durationNode(l.RemoteDeleteGrace),
		"remote_delete_workers", number(int64(l.RemoteDeleteWorkers)),
		"orphan_age", durationNode(l.OrphanAge),
		"max_clock_step", durationNode(l.MaxClockStep),
		"clock_tolerance", durationNode(l.ClockTolerance),
		"pause_file", scalar(l.PauseFile))
}

func (h HTTP) print() *yaml.Node {
	listen := h.Listen
	if listen == "" {
		listen = "off"
	}
	return mapping("listen", scalar(listen), "web_config", optional(h.WebConfig))
}

func (c *Config) printTables() *yaml.Node {
	if c.anyTable {
		return nil
	}
	out := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, e := range c.tables {
		out.Style = 0
		labels := &yaml.Node{Kind: yaml.MappingNode}
		for _, k := range slices.Sorted(maps.Keys(e.labels)) {
			labels.Content = append(labels.Content, scalar(k), scalar(e.labels[k]))
		}
		pairs := []any{"name", scalar(e.name.value)}
		if e.compacted.set() {
			pairs = append(pairs, keyCompacted, word(strconv.FormatBool(e.compacted.value)))
		}
		if len(labels.Content) > 0 {
			pairs = append(pairs, "labels", labels)
		}
		out.Content = append(out.Content, mapping(append(pairs, e.settings()...)...))
	}
	return out
}

// settings are the keys and nodes of all settings that are set, and of those that have a default.
func (e entry) settings() []any {
	out := []any{keyTTL, durationNode(e.ttl.value)}
	limit := func(key string, s setting[tier.Limit], format func(int64) *yaml.Node) {
		switch {
		case s.set() && s.value.Set:
			out = append(out, key, format(s.value.Value))
		case s.set():
			out = append(out, key, scalar(wordUnset))
		}
	}
	limit(keyLocalTTL, e.localTTL, func(n int64) *yaml.Node {
		return durationNode(time.Duration(n))
	})
	limit(keyLocalSegments, e.localSegments, number)
	limit(keyBytes, e.bytes, bytesNode)
	limit(keyLocalBytes, e.localBytes, bytesNode)
	if e.tiering.set() {
		out = append(out, keyTiering, word(strconv.FormatBool(e.tiering.value)))
	}
	return append(out, keyDisable, scalar(string(e.disable.value)))
}
