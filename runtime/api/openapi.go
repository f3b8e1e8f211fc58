package api

import (
	"encoding"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
)

// param is a parameter of a request.
type param struct {
	name, kind, text string // kind is a type of JSON Schema
	required         bool
}

// route is one kind of request. The path has {log} or {table} where the handler takes them.
type route struct {
	method, path, text string
	params             []param
	answer             any // a value of the type of the JSON; nil for bytes
}

var (
	offsetParam = param{"offset", "integer", "an offset of the log", true}
	baseParam   = param{"base", "integer", "the base offset of a copied segment", true}
)

// routes are all requests of the JSON contract, in the order of docs/json.md.
var routes = []route{
	{"get", "/-/healthy", "whether the daemon works; 503 where not", nil, Health{}},
	{"get", "/-/ready", "whether it copies and deletes; 503 where not", nil, Health{}},
	{"post", "/-/reload", "load configuration, policies and data as one",
		[]param{{"accept", "string", "digest of the remote data that may go by it", false}},
		Generation{}},
	{"get", "/api/v1/status", "where everything stands",
		[]param{{"table", "string", "one table alone", false}}, Status{}},
	{"get", "/api/v1/logs", "all logs, and what of them can be read", nil, ReadableLogs{}},
	{"get", "/api/v1/logs/{log}/segments", "the segments of a log in both tiers", nil, Listing{}},
	{"get", "/api/v1/logs/{log}/segment",
		"a file of a copied segment; ranges, and its SHA-256 as ETag",
		[]param{baseParam, {"file", "string", "its name; the records where absent", false}}, nil},
	{"get", "/api/v1/logs/{log}/records",
		"the log from a place on, as it was written: whole record batches; " +
			"with format=json decoded, as here",
		[]param{{"offset", "integer", "where to begin; the log start where absent", false},
			{"timestamp", "integer", "begin with the first record at or after it, " +
				"milliseconds since the Unix epoch", false},
			{"max_bytes", "integer", "of batches, 1 MiB where absent, at most 64 MiB; " +
				"at least one batch is given. In json also of what they hold, but at least one record",
				false},
			{"format", "string", "raw or json", false}}, Records{}},
	{"get", "/api/v1/logs/{log}/copies", "what the ledger holds of a log",
		[]param{{"from", "integer", "a manifest position", false}}, Copies{}},
	{"get", "/api/v1/logs/{log}/explain", "where an offset lies, why, and until when",
		[]param{offsetParam}, Explanation{}},
	{"get", "/api/v1/logs/{log}/policy-input", "what policies would be asked about a segment",
		[]param{offsetParam, {"action", "string", "delete_local or delete_remote; the local segment " +
			"goes first where absent", false}}, PolicyInput{}},
	{"post", "/api/v1/logs/{log}/accept-loss", "accept that a damaged segment is lost",
		[]param{offsetParam}, AcceptedLoss{}},
	{"post", "/api/v1/tables/{table}/resume", "let the deletions of a table go on", nil, struct{}{}},
	{"get", "/api/v1/plan", "what would be deleted now", nil, Plan{}},
	{"post", "/api/v1/plan/compare",
		"the same by other policies or for a later moment; the body is a WhatIf", nil, Plan{}},
	{"post", "/api/v1/clock/accept", "take the clock for right after a step", nil, struct{}{}},
	{"get", "/api/v1/tables/{table}/drop", "what would go if the table were dropped", nil, Removal{}},
	{"post", "/api/v1/tables/{table}/drop", "delete all that the table has in the store",
		[]param{{"accept", "string", "digest of just that", true}}, Removal{}},
}

// OpenAPI is the document that describes the contract: OpenAPI 3.1, in JSON. Its schemas are made
// of the very types that are sent.
func OpenAPI() map[string]any {
	s := schemas{}
	failed := map[string]any{"description": "an error", "content": content(s.of(
		reflect.TypeFor[failure]()))}
	paths := map[string]any{}
	for _, r := range routes {
		media := map[string]any{"application/octet-stream": map[string]any{}}
		if r.answer != nil {
			media = content(s.of(reflect.TypeOf(r.answer)))
		}
		if strings.HasSuffix(r.path, "/records") {
			media["application/octet-stream"] = map[string]any{}
		}
		item, _ := paths[r.path].(map[string]any)
		if item == nil {
			item = map[string]any{}
			paths[r.path] = item
		}
		item[r.method] = map[string]any{"summary": r.text, "parameters": r.parameters(),
			"responses": map[string]any{"default": failed,
				"200": map[string]any{"description": r.text, "content": media}}}
	}
	return map[string]any{"openapi": "3.1.0",
		"info": map[string]any{"title": "tierd", "version": "v1", "description": "See docs/json.md. " +
			"A log is table/name; its slashes may stand as they are or as %2F."},
		"paths": paths, "components": map[string]any{"schemas": s}}
}

func openAPI(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, OpenAPI()) }

func content(schema any) map[string]any {
	return map[string]any{"application/json": map[string]any{"schema": schema}}
}

// parameters lists those of the path and of the query.
func (r *route) parameters() []any {
	out := []any{}
	for _, name := range []string{"log", "table"} {
		if strings.Contains(r.path, "{"+name+"}") {
			out = append(out, map[string]any{"name": name, "in": "path", "required": true,
				"schema": map[string]any{"type": "string"}})
		}
	}
	for _, p := range r.params {
		out = append(out, map[string]any{"name": p.name, "in": "query", "required": p.required,
			"description": p.text, "schema": map[string]any{"type": p.kind}})
	}
	return out
}

// schemas are those of named structs, by name.
type schemas map[string]any

// of returns the schema of a type as encoding/json writes it.
func (s schemas) of(t reflect.Type) any {
	text := reflect.TypeFor[encoding.TextMarshaler]()
	switch {
	case t == reflect.TypeFor[Time]():
		return map[string]any{"type": []string{"string", "null"}, "format": "date-time"}
	case t == reflect.TypeFor[json.RawMessage]():
		return map[string]any{"type": "object"}
	case t.Implements(text) || reflect.PointerTo(t).Implements(text):
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return map[string]any{"anyOf": []any{s.of(t.Elem()), map[string]any{"type": "null"}}}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": []string{"string", "null"}, "contentEncoding": "base64"}
		}
		return map[string]any{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Struct:
		if t.Name() == "" {
			return s.object(t)
		}
		name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
		if t.PkgPath() != reflect.TypeFor[Health]().PkgPath() {
			name = t.String() // with its package: both have a Hole
		}
		if _, done := s[name]; !done {
			s[name] = nil // it may contain itself
			s[name] = s.object(t)
		}
		return map[string]any{"$ref": "#/components/schemas/" + name}
	default:
		return map[string]any{"type": "integer"}
	}
}

func (s schemas) object(t reflect.Type) any {
	properties, required := map[string]any{}, []string{}
	var add func(reflect.Type)
	add = func(t reflect.Type) {
		for i := range t.NumField() {
			f := t.Field(i)
			tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case tag == "-" || !f.IsExported() && !f.Anonymous:
			case f.Anonymous && tag == "":
				add(f.Type)
			default:
				properties[tag] = s.of(f.Type)
				if !strings.Contains(options, "omitempty") {
					required = append(required, tag)
				}
			}
		}
	}
	add(t)
	return map[string]any{"type": "object", "properties": properties, "required": required}
}
