package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tierd/tierd/runtime/document"
)

// Plugin is one WebAssembly plugin. It is pinned: a file with another content refuses the whole
// generation.
type Plugin struct {
	Name   string
	Path   string // absolute
	SHA256 string // of the file, 64 lower-case hexadecimal digits
	// Config is handed to the plugin; never empty, {} where the file has none.
	Config json.RawMessage
	Place  Place

	sha256Place Place
}

// ModuleBytesMax bounds the file of a plugin.
const ModuleBytesMax = 32 << 20

const seeInspect = "see: tierd plugin inspect FILE"

// sha256Digits is a digest as sha256sum and "tierd plugin inspect" print it.
var sha256Digits = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

// readPlugins reads the list of plugins.
func (d *decoder) readPlugins(plugins *[]Plugin) func(*yaml.Node) {
	return d.list("plugins", func(_ int, n *yaml.Node) {
		const where = " in a plugin"
		p := Plugin{Config: json.RawMessage("{}"), Place: d.at(n)}
		sum := setting[string]{}
		seen := d.object(n, where, []field{
			{"name", value(d, "name", &p.Name, sourceName)},
			{"path", value(d, "path", &p.Path, d.path)},
			{"sha256", placed(d, "sha256", &sum, parseSHA256)},
			{"config", func(v *yaml.Node) { p.Config = d.json(v) }},
		})
		d.require(n, where, seen, "name", "path")
		if n.Kind == yaml.MappingNode && seen["sha256"] == nil {
			d.problem(n, d.pinHint(p.Path), `the key "sha256" is missing%s: a plugin is pinned by it`,
				where)
		}
		for _, other := range *plugins {
			if other.Name == p.Name && p.Name != "" {
				d.problem(n, "give it another name", "the plugin %q stands twice, first in line %d",
					p.Name, other.Place.Line)
			}
		}
		p.SHA256, p.sha256Place = strings.ToLower(sum.value), sum.place
		*plugins = append(*plugins, p)
	})
}

// pinHint says what would be right for a file as it is now.
func (d *decoder) pinHint(path string) string {
	if path == "" {
		return seeInspect
	}
	content, err := d.host.ReadFile(path)
	if err != nil || len(content) > ModuleBytesMax {
		return seeInspect
	}
	return fmt.Sprintf("if you trust the file as it is: sha256: %q", digest(content))
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func parseSHA256(n *yaml.Node) (string, error) {
	const want = "the 64 hexadecimal digits of a SHA-256"
	s, err := raw(n, want, "!!str", "!!int", "!!float")
	if err == nil && n.ShortTag() != "!!str" {
		err = &hinted{fmt.Sprintf("want %s, got the number %s", want, s), "write it in quotes"}
	}
	if err == nil && !sha256Digits.MatchString(s) {
		return "", &hinted{fmt.Sprintf("want %s, got %q", want, s), seeInspect}
	}
	return s, err
}

// json makes JSON of a mapping in the file, with keys in order.
func (d *decoder) json(n *yaml.Node) json.RawMessage {
	if n.Kind != yaml.MappingNode || n.Anchor != "" {
		d.problem(n, "", "config: want a mapping, got %s", describe(n))
		return json.RawMessage("{}")
	}
	text, err := json.Marshal(d.jsonValue(n))
	if err != nil {
		d.problem(n, "", "config: it is no JSON: %v", err)
		return json.RawMessage("{}")
	}
	return text
}

// jsonValue is the value of a node as encoding/json wants it. What JSON has no word for, and what
// means one thing to some programs and another to others, is a problem.
func (d *decoder) jsonValue(n *yaml.Node) any {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		d.problem(n, "", "config: got %s", describe(n))
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		d.pairs(n, func(key, v *yaml.Node) { out[key.Value] = d.jsonValue(v) })
		return out
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i, v := range n.Content {
			out[i] = d.jsonValue(v)
		}
		return out
	}
	v, err := document.Scalar(n)
	if wrong := (*document.Error)(nil); errors.As(err, &wrong) {
		d.problem(n, wrong.Hint, "config: %s", wrong.Text)
	}
	return v
}

// modules reads the files of the plugins, in their order, and compares them with what pins them.
func (r *reader) modules(plugins []Plugin) [][]byte {
	out := make([][]byte, len(plugins))
	for i, p := range plugins {
		if p.Path == "" || p.SHA256 == "" {
			continue // what is wrong with it was said
		}
		r.place, r.what = p.Place, "plugin "+p.Name
		content, err := r.host.ReadFile(p.Path)
		if path := (*fs.PathError)(nil); errors.As(err, &path) {
			err = path.Err // the path is named already
		}
		switch {
		case err != nil:
			r.problem("", "%s cannot be read: %v", p.Path, err)
		case len(content) > ModuleBytesMax:
			r.problem("", "%s is larger than %s", p.Path, FormatBytes(ModuleBytesMax))
		case digest(content) != p.SHA256:
			r.place = p.sha256Place
			r.problem(fmt.Sprintf("if you trust the file as it is: sha256: %q", digest(content)),
				"%s is not the file that sha256 pins", p.Path)
		}
		out[i] = content
	}
	return out
}

// printPlugins gives the plugins as the file has them; nil where there are none.
func (c *Config) printPlugins() (*yaml.Node, error) {
	if len(c.Plugins) == 0 {
		return nil, nil
	}
	out := &yaml.Node{Kind: yaml.SequenceNode}
	for _, p := range c.Plugins {
		var own any
		decoder := json.NewDecoder(bytes.NewReader(p.Config))
		decoder.UseNumber()
		if err := decoder.Decode(&own); err != nil {
			return nil, fmt.Errorf("print the configuration of the plugin %s: %w", p.Name, err)
		}
		out.Content = append(out.Content, mapping("name", scalar(p.Name), "path", scalar(p.Path),
			"sha256", scalar(p.SHA256), "config", jsonNode(own)))
	}
	return out, nil
}

// jsonNode is a JSON value as YAML has it.
func jsonNode(v any) *yaml.Node {
	switch v := v.(type) {
	case map[string]any:
		out := &yaml.Node{Kind: yaml.MappingNode}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out.Content = append(out.Content, scalar(k), jsonNode(v[k]))
		}
		return out
	case []any:
		out := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, x := range v {
			out.Content = append(out.Content, jsonNode(x))
		}
		return out
	case string:
		return scalar(v)
	case json.Number:
		return word(v.String())
	case bool:
		return word(fmt.Sprint(v))
	default:
		return word("null")
	}
}

// PluginProblems gives each of the errors that err joins the place of its plugin, whose name nameOf
// takes from it. There is at least one plugin.
func (c *Config) PluginProblems(err error,
	nameOf func(error) (name string, cause error)) (out Problems) {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, err := range all {
		name, cause := nameOf(err)
		text := strings.ReplaceAll(cause.Error(), "\n", "; ")
		p := Problem{Place: c.Plugins[0].Place, Text: text}
		for _, plugin := range c.Plugins {
			if plugin.Name == name {
				p.Place, p.Text = plugin.Place, fmt.Sprintf("plugin %s: %s: %s", name, plugin.Path, text)
			}
		}
		out = append(out, p)
	}
	return out
}
