package rego

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tierd/tierd/policies"
)

// schemaNode is the part of a JSON schema that the input's schema uses.
type schemaNode struct {
	Type       string                 `json:"type"`
	Enum       []string               `json:"enum"`
	Properties map[string]*schemaNode `json:"properties"`
	Additional json.RawMessage        `json:"additionalProperties"`
	Required   []string               `json:"required"`
	Minimum    *int64                 `json:"minimum"`
}

// closed reports whether the node has exactly its Properties.
func (n *schemaNode) closed() bool { return string(n.Additional) == "false" }

// values is the schema of the fields that Properties does not name; nil where it says nothing.
func (n *schemaNode) values() *schemaNode {
	var out schemaNode
	if err := json.Unmarshal(n.Additional, &out); err != nil || out.Type == "" {
		return nil
	}
	return &out
}

// names are the fields that the node has, ascending.
func (n *schemaNode) names() []string {
	names := slices.Sorted(maps.Keys(n.Properties))
	if len(names) > 0 && names[0] == "" {
		return names[1:]
	}
	return names
}

// at follows field names from n. It returns the node, or nil where the schema says nothing about
// it; missing is the number of steps that lead to a field which cannot be there, 0 if none does.
func (n *schemaNode) at(path []string) (node *schemaNode, missing int) {
	for i, name := range path {
		next := n.Properties[name]
		if next == nil {
			if n.closed() {
				return nil, i + 1
			}
			return nil, 0
		}
		n = next
	}
	return n, 0
}

// inputSchema is the embedded schema of the input, as ours and as OPA's. It is constant.
var inputSchema = sync.OnceValues(func() (*schemaNode, *ast.SchemaSet) {
	var raw map[string]any
	if err := json.Unmarshal(policies.InputSchema, &raw); err != nil {
		panic(fmt.Sprintf("policies/schema/input.json: %v", err))
	}
	return schemaOf(raw)
})

// schemaFor is inputSchema for a configuration that has facts of these names and no others; nil
// stands for facts of any name. Those in fields have exactly these fields.
func schemaFor(facts []string, fields map[string][]string) (*schemaNode, *ast.SchemaSet) {
	if facts == nil {
		return inputSchema()
	}
	var raw map[string]any
	if err := json.Unmarshal(policies.InputSchema, &raw); err != nil {
		panic(fmt.Sprintf("policies/schema/input.json: %v", err))
	}
	properties := map[string]any{}
	for _, name := range facts {
		properties[name] = map[string]any{} // of any shape
		if len(fields[name]) == 0 {
			continue
		}
		known := map[string]any{}
		for _, field := range fields[name] {
			known[field] = map[string]any{}
		}
		properties[name] = exactly(known)
	}
	raw["properties"].(map[string]any)["facts"] = exactly(properties)
	return schemaOf(raw)
}

// exactly is the schema of an object with these properties and no others. OPA takes an object
// without any for one that may have all; no fact and no field of one is called "".
func exactly(properties map[string]any) map[string]any {
	properties[""] = map[string]any{}
	return map[string]any{
		"type": "object", "additionalProperties": false, "properties": properties,
	}
}

func schemaOf(raw map[string]any) (*schemaNode, *ast.SchemaSet) {
	text, err := json.Marshal(raw)
	var root schemaNode
	if err == nil {
		err = json.Unmarshal(text, &root)
	}
	if err != nil {
		panic(fmt.Sprintf("policies/schema/input.json: %v", err))
	}
	set := ast.NewSchemaSet()
	set.Put(ast.SchemaRootRef, raw)
	return &root, set
}

// words are the enumerations of the input, by dotted path.
var words = sync.OnceValue(func() map[string][]string {
	root, _ := inputSchema()
	out := map[string][]string{}
	for name, n := range root.Properties {
		if len(n.Enum) > 0 {
			out[name] = n.Enum
		}
		for sub, m := range n.Properties {
			if len(m.Enum) > 0 {
				out[name+"."+sub] = m.Enum
			}
		}
	}
	return out
})
