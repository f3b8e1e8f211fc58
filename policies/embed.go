// Package policies carries the built-in retention policy and the schema of the policies' input.
// They are files, so that they can be read, tested and linted as any user's policy is.
package policies

import _ "embed"

// Builtin is the source of package data.tierd.builtin, which decides TTLs, sizes and counts.
//
//go:embed builtin.rego
var Builtin []byte

// InputSchema is the JSON schema (draft 7) of the policies' input.
//
//go:embed schema/input.json
var InputSchema []byte

// DeletionSchema is the JSON schema (draft 7) of the input of tiersim's properties.
//
//go:embed schema/deletion.json
var DeletionSchema []byte
