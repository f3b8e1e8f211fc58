package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decodeYAML walks the nodes by itself: the library makes floats of large numbers, or texts, and
// instants of dates.
func decodeYAML(content []byte) (*Document, error) {
	d := yaml.NewDecoder(bytes.NewReader(content))
	var root, next yaml.Node
	if err := d.Decode(&root); errors.Is(err, io.EOF) {
		return nil, &Error{Text: "the file is empty"}
	} else if err != nil {
		return nil, yamlError(content, err)
	}
	switch err := d.Decode(&next); {
	case err == nil:
		return nil, wrong(&next, "", "a second document starts here")
	case !errors.Is(err, io.EOF):
		return nil, yamlError(content, err)
	}
	r := &yamlReader{}
	top := root.Content[0]
	v, err := r.value(top, 0)
	if err != nil {
		return nil, err
	}
	doc := &Document{Value: v, Keys: map[string]Place{}}
	for i := 0; top.Kind == yaml.MappingNode && i+1 < len(top.Content); i += 2 {
		key := top.Content[i]
		doc.Keys[key.Value] = Place{key.Line, key.Column}
	}
	return doc, nil
}

func yamlError(content []byte, err error) error {
	place, text := NoYAML(content, err)
	return &Error{Place: place, Text: "no YAML: " + text}
}

// wrong says what is wrong at a node.
func wrong(n *yaml.Node, hint, format string, args ...any) error {
	return &Error{Place{n.Line, n.Column}, fmt.Sprintf(format, args...), hint}
}

// yamlReader makes values of nodes.
type yamlReader struct {
	aliases int // how many the value under way stands below
	aliased int // values that were below one
}

func (r *yamlReader) value(n *yaml.Node, depth int) (any, error) {
	if r.aliases > 0 {
		r.aliased++
	}
	if r.aliased > aliasedMax {
		return nil, wrong(n, "write them out", "the aliases stand for more than %d values", aliasedMax)
	}
	if depth > depthMax {
		return nil, wrong(n, "", "it nests deeper than %d", depthMax)
	}
	switch n.Kind {
	case yaml.AliasNode:
		r.aliases++
		v, err := r.value(n.Alias, depth+1)
		r.aliases--
		return v, err
	case yaml.SequenceNode:
		if n.ShortTag() != "!!seq" {
			return nil, wrong(n, "", "a list with the tag %s", n.ShortTag())
		}
		list := make([]any, len(n.Content))
		for i, x := range n.Content {
			v, err := r.value(x, depth+1)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		return list, nil
	case yaml.MappingNode:
		if n.ShortTag() != "!!map" {
			return nil, wrong(n, "", "a mapping with the tag %s", n.ShortTag())
		}
		return r.mapping(n, depth)
	}
	return Scalar(n)
}

func (r *yamlReader) mapping(n *yaml.Node, depth int) (any, error) {
	object := map[string]any{}
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, x := n.Content[i], n.Content[i+1]
		for key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		switch key.ShortTag() {
		case "!!merge":
			merges = append(merges, x)
			continue
		case "!!str":
		default:
			return nil, wrong(n.Content[i], "write it in quotes", "a key that is no text")
		}
		if _, twice := object[key.Value]; twice {
			return nil, wrong(n.Content[i], "keep one of them", "the key %q stands twice", key.Value)
		}
		v, err := r.value(x, depth+1)
		if err != nil {
			return nil, err
		}
		object[key.Value] = v
	}
	for _, x := range merges {
		if err := r.merge(object, x, depth); err != nil {
			return nil, err
		}
	}
	return object, nil
}

// merge adds the keys of a mapping, or of a list of them, that are not there yet.
func (r *yamlReader) merge(object map[string]any, x *yaml.Node, depth int) error {
	v, err := r.value(x, depth+1)
	if err != nil {
		return err
	}
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	for _, v := range list {
		from, isObject := v.(map[string]any)
		if !isObject {
			return wrong(x, "", "<< wants a mapping, or a list of them")
		}
		for key, v := range from {
			if _, has := object[key]; !has {
				object[key] = v
			}
		}
	}
	return nil
}

var (
	// ambiguous are the words that are truth values to some programs and texts to others.
	ambiguous = regexp.MustCompile(`^(yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF)$`)
	// decimal is a number, as JSON has it but for the sign; numeric is any.
	decimal = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
	numeric = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
)

// Scalar is the value of a node that is neither a mapping nor a list nor an alias, as in
// Document.Value. The error is an *Error.
func Scalar(n *yaml.Node) (any, error) {
	const plain = yaml.Style(0)
	switch tag := n.ShortTag(); tag {
	case "!!null":
		return nil, nil
	case "!!str":
		if n.Style == plain && ambiguous.MatchString(n.Value) {
			return nil, wrong(n, "write true or false, or quotes",
				"%s is a truth value to some programs, and a text to others", n.Value)
		}
		if n.Style == plain && numeric.MatchString(n.Value) {
			return nil, wrong(n, "write it in quotes if it is a text",
				"the number %.40s is too large", n.Value)
		}
		return n.Value, nil
	case "!!timestamp":
		return n.Value, nil
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return nil, wrong(n, "", "no YAML: %v", err)
		}
		return b, nil
	case "!!int", "!!float":
		return yamlNumber(n)
	default:
		return nil, wrong(n, "write it in quotes", "a value with the tag %s", tag)
	}
}

func yamlNumber(n *yaml.Node) (any, error) {
	text := strings.TrimPrefix(n.Value, "+")
	if !decimal.MatchString(n.Value) { // 0x1F, 1_000, 012, .5, .inf
		var v any
		if err := n.Decode(&v); err != nil {
			return nil, wrong(n, "", "no YAML: %v", err)
		}
		f, isFloat := v.(float64)
		if isFloat && (math.IsNaN(f) || math.IsInf(f, 0)) {
			return nil, wrong(n, "write it in quotes", "%s is no number in JSON", n.Value)
		}
		shown, err := json.Marshal(v)
		if err != nil {
			return nil, wrong(n, "", "the number %.40s: %v", n.Value, err)
		}
		text = string(shown)
	}
	v, err := number(text)
	if err != nil {
		return nil, wrong(n, "write it in quotes if it is a text", "%v", err)
	}
	return v, nil
}
