package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// typeFilesystem is the provider whose bucket is a local directory.
const typeFilesystem = "FILESYSTEM"

// SingleClock reports whether the store has no clock but this machine's: then nothing shows that it
// is wrong, but that it leaps.
func (b *Bucket) SingleClock() bool { return b.Type == typeFilesystem }

// bucketDepthMax bounds how deep the provider's part may be nested.
const bucketDepthMax = 8

// readBucket reads the bucket: type and prefix here, config by the provider's own rules.
func (d *decoder) readBucket(b *Bucket) func(*yaml.Node) {
	return func(n *yaml.Node) {
		const where = " in bucket"
		b.place, b.node = d.at(n), n
		own := &yaml.Node{Kind: yaml.MappingNode}
		seen := d.object(n, where, []field{
			{"type", value(d, "type", &b.Type, bucketType)},
			{"config", func(v *yaml.Node) { own = v }},
			{"prefix", value(d, "prefix", &b.Prefix, prefix)},
		})
		d.require(n, where, seen, "type")
		if own.Kind != yaml.MappingNode {
			d.problem(own, "", "config: want a mapping, got %s", describe(own))
			return
		}
		if !d.plain(own, 0) || b.Type == "" {
			return
		}
		if d.host.CheckBucket != nil {
			for _, p := range d.host.CheckBucket(b.Type, own) {
				at := p.Node
				if at == nil {
					at = n
				}
				d.problem(at, p.Hint, "%s", p.Text)
			}
		}
		d.bucketYAML(b, own)
	}
}

func bucketType(n *yaml.Node) (string, error) {
	s, err := text(n)
	if err == nil && s != strings.ToUpper(s) {
		return "", &hinted{fmt.Sprintf("want a provider in upper case, got %q", s),
			fmt.Sprintf("did you mean %q?", strings.ToUpper(s))}
	}
	return s, err
}

func prefix(n *yaml.Node) (string, error) {
	s, err := raw(n, "a text", "!!str")
	if err == nil && slices.ContainsFunc(strings.Split(s, "/"), func(step string) bool {
		return step == "." || step == ".."
	}) {
		return "", fmt.Errorf("want a prefix without the steps . and .., got %q", s)
	}
	return s, err
}

// plain reports what no part of the file may have: aliases, anchors, tags of its own, a key twice.
func (d *decoder) plain(n *yaml.Node, depth int) bool {
	before := len(d.problems)
	switch {
	case depth > bucketDepthMax:
		d.problem(n, "", "nested deeper than %d", bucketDepthMax)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		d.problem(n, "", "got %s", describe(n))
	case n.Kind == yaml.MappingNode:
		d.pairs(n, func(_, v *yaml.Node) { d.plain(v, depth+1) })
	case n.Kind == yaml.SequenceNode:
		for _, v := range n.Content {
			d.plain(v, depth+1)
		}
	case !strings.HasPrefix(n.ShortTag(), "!!"):
		d.problem(n, "", "got %s", describe(n))
	}
	return len(d.problems) == before
}

// bucketYAML makes the document for the provider: references to the environment replaced, and the
// directory of a FILESYSTEM bucket absolute.
func (d *decoder) bucketYAML(b *Bucket, own *yaml.Node) {
	expanded := d.expand(own)
	for i := 0; b.Type == typeFilesystem && i+1 < len(expanded.Content); i += 2 {
		if k, v := expanded.Content[i], expanded.Content[i+1]; k.Value == "directory" {
			if v.Value == "" {
				d.problem(own.Content[i+1], "", "directory: want a path, got nothing")
				return
			}
			v.SetString(d.abs(v.Value))
			b.Directory = v.Value
		}
	}
	doc := mapping("type", scalar(b.Type), "config", expanded, "prefix", scalar(b.Prefix))
	out, err := yaml.Marshal(doc)
	if err != nil {
		d.problemAt(b.place, "", "the bucket cannot be written as YAML: %v", err)
		return
	}
	b.YAML = out
}

// envReference is ${NAME}, the only form that is replaced; $${NAME} stands for a literal ${NAME}.
var envReference = regexp.MustCompile(`\$?\$\{[^}]*\}?`)

var envName = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

// expand copies the node with references to the environment in texts replaced.
func (d *decoder) expand(n *yaml.Node) *yaml.Node {
	out := *n
	out.Content = make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			out.Content[i] = c
			continue
		}
		out.Content[i] = d.expand(c)
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || !strings.Contains(n.Value, "${") {
		return &out
	}
	out.SetString(envReference.ReplaceAllStringFunc(n.Value, func(ref string) string {
		if strings.HasPrefix(ref, "$$") {
			return ref[1:]
		}
		m := envName.FindStringSubmatch(ref)
		if m == nil {
			d.problem(n, "write ${NAME}, or $${ for a literal ${", "%q names no variable", ref)
			return ""
		}
		v, ok := d.host.LookupEnv(m[1])
		if !ok {
			d.problem(n, "set it, or write $${ for a literal ${",
				"the environment variable %s is not set", m[1])
		}
		return v
	}))
	return &out
}

// shownKeys are the keys of providers whose texts are no secrets. Every other text is redacted, so
// that a key that nobody thought of is not printed.
var shownKeys = []string{
	"directory", "bucket", "endpoint", "region", "container", "container_name", "prefix",
	"storage_account", "signature_version", "bucket_lookup_type", "storage_class", "auth_url",
	"project_name", "user_domain_name", "project_domain_name", "idle_conn_timeout",
	"response_header_timeout", "tls_handshake_timeout", "ca_file", "cert_file", "key_file",
	"server_name", "provider",
}

// secretKey matches keys whose values are secrets even where they are written as numbers.
var secretKey = regexp.MustCompile(`(?i)secret|passw|key|token|account|credential`)

const redacted = "<redacted>"

// redact copies the node with secrets replaced; key is the one that it is the value of. A text that
// is nothing but a reference to the environment is shown as that reference.
func redact(n *yaml.Node, key string) *yaml.Node {
	switch n.Kind {
	case yaml.MappingNode:
		out := &yaml.Node{Kind: yaml.MappingNode}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			out.Content = append(out.Content, scalar(k.Value), redact(n.Content[i+1], k.Value))
		}
		return out
	case yaml.SequenceNode:
		out := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, v := range n.Content {
			out.Content = append(out.Content, redact(v, key))
		}
		return out
	}
	if n.ShortTag() == "!!str" {
		if n.Value == "" || slices.Contains(shownKeys, key) || envName.MatchString(n.Value) {
			return scalar(n.Value)
		}
		return scalar(redacted)
	}
	if secretKey.MatchString(key) {
		return scalar(redacted)
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: n.ShortTag(), Value: n.Value}
}
