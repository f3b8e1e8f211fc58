package providers

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"
	"github.com/prometheus/common/model"
	"github.com/thanos-io/objstore/providers/s3"
	"go.yaml.in/yaml/v3"
)

// Problem is something wrong with a bucket's own part: where, what, and what would be right.
type Problem struct {
	Node *yaml.Node // nil where the fault is not in one place of the part
	Text string     // never holds a value: it may be a secret
	Hint string
}

// Error gives "line:column: what; what would be right".
func (p Problem) Error() string {
	text := p.Text
	if p.Hint != "" {
		text += "; " + p.Hint
	}
	if p.Node == nil || p.Node.Line == 0 {
		return text
	}
	return fmt.Sprintf("%d:%d: %s", p.Node.Line, p.Node.Column, text)
}

// Check says what is wrong with the own part of a bucket of this kind, as far as can be told
// without the store: keys that the provider does not know, at any depth; values of the wrong type;
// and missing keys. Some providers of thanos ignore unknown keys, so a misspelt one would be taken
// for its default.
func Check(kind string, config *yaml.Node) []Problem {
	p, ok := lookup(kind)
	if !ok {
		var kinds []string
		for _, p := range all() {
			kinds = append(kinds, string(p.kind))
		}
		return []Problem{{
			Text: fmt.Sprintf("type: there is no provider %q", kind),
			Hint: hint(strings.ToUpper(kind), kinds),
		}}
	}
	c := checker{where: fmt.Sprintf("in the config of a bucket of type %s", p.kind)}
	config = resolve(config)
	c.check(config, "config", p.config)
	if !c.unknown && config.Kind == yaml.MappingNode || len(c.problems) == 0 {
		// An unknown one may be the missing one, misspelt.
		c.require(config, p.required)
	}
	return c.problems
}

type checker struct {
	where    string
	problems []Problem
	unknown  bool // one of the keys is
}

func (c *checker) problem(n *yaml.Node, hint, format string, args ...any) {
	c.problems = append(c.problems, Problem{n, fmt.Sprintf(format, args...), hint})
}

// check compares the value of key with the Go type that it will be decoded into.
func (c *checker) check(n *yaml.Node, key string, t reflect.Type) {
	n = resolve(n)
	switch {
	case isNull(n), refersToEnvironment(n): // the default, or not known yet
	case t.Kind() == reflect.Struct && n.Kind == yaml.MappingNode:
		c.checkMapping(n, fields(t))
	case n.Decode(reflect.New(t).Interface()) != nil:
		// Not the decoder's error: it quotes the value.
		c.problem(n, "", "%s: want %s", key, describe(t))
	}
}

func (c *checker) checkMapping(n *yaml.Node, known map[string]reflect.Type) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		t, ok := known[key.Value]
		switch {
		case !ok:
			c.unknown = true
			c.problem(key, hint(key.Value, slices.Sorted(maps.Keys(known))),
				"unknown key %q %s", key.Value, c.where)
		case seen[key.Value]:
			c.problem(key, "", "key %q twice %s", key.Value, c.where)
		default:
			c.check(value, key.Value, t)
		}
		seen[key.Value] = true
	}
}

func (c *checker) require(n *yaml.Node, keys []string) {
	set := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		value := resolve(n.Content[i+1])
		set[n.Content[i].Value] = !isNull(value) && (value.Kind != yaml.ScalarNode || value.Value != "")
	}
	for _, key := range keys {
		if !set[key] {
			c.problem(nil, "", "missing key %q %s", key, c.where)
		}
	}
}

// fields returns the keys that YAML may set in a struct of type t.
func fields(t reflect.Type) map[string]reflect.Type {
	known := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		known[name] = f.Type
	}
	return known
}

func describe(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[model.Duration](), reflect.TypeFor[time.Duration]():
		return "a duration such as 90s"
	case reflect.TypeFor[s3.BucketLookupType]():
		return "auto, virtual-hosted or path"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Struct, reflect.Map:
		return "a mapping"
	case reflect.String:
		return "a text"
	default:
		return "a whole number that fits"
	}
}

// resolve returns what an alias stands for, or what a document holds. A chain of them is not
// followed without end: YAML has none.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.IsZero() || n.ShortTag() == "!!null" }

func refersToEnvironment(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "${")
}

// hint names the known word that is nearest, if one is near, and all of them.
func hint(word string, known []string) string {
	all := "known are " + strings.Join(known, ", ")
	best := slices.MinFunc(known, func(a, b string) int {
		return levenshtein.ComputeDistance(word, a) - levenshtein.ComputeDistance(word, b)
	})
	if levenshtein.ComputeDistance(word, best) > max(1, len(word)/3) {
		return all
	}
	return fmt.Sprintf("did you mean %q? %s", best, all)
}

// secretKeys matches the keys whose values are secrets.
var secretKeys = regexp.MustCompile(
	`secret|password|passphrase|key|token|connection_string|service_account`)

// secretBytesMin is the shortest value that is taken out of texts: shorter ones are no secrets,
// and would take letters out of words.
const secretBytesMin = 4

// withoutSecrets returns err with the secrets of the bucket's own part blotted out of its text.
func withoutSecrets(err error, config *yaml.Node) error {
	text := err.Error()
	found := secrets(resolve(config), "")
	slices.SortFunc(found, func(a, b string) int { return len(b) - len(a) }) // one may hold another
	for _, secret := range found {
		text = strings.ReplaceAll(text, secret, "<redacted>")
	}
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

// secrets returns the secret texts in the value of key.
func secrets(n *yaml.Node, key string) (all []string) {
	switch {
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			all = append(all, secrets(resolve(n.Content[i+1]), n.Content[i].Value)...)
		}
	case secretKeys.MatchString(key) && len(n.Value) >= secretBytesMin:
		all = append(all, n.Value)
	}
	return all
}
