package rego

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// unavailable names the built-in functions that policies cannot have although OPA does not mark
// them as non-deterministic, or that need a word on what to use instead: they depend on more than
// their arguments, or reach for the network or for files.
var unavailable = map[string]string{
	"bits.lsh":               "one call can need more memory than there is; multiply instead",
	"http.send":              "policies cannot use the network; put the facts into a data file",
	"io.jwt.decode_verify":   "it depends on the clock",
	"io.jwt.encode_sign":     "it is not deterministic",
	"io.jwt.encode_sign_raw": "it is not deterministic",
	"json.match_schema":      "a schema may refer to files and to the network",
	"json.verify_schema":     "a schema may refer to files and to the network",
	"net.lookup_ip_addr":     "policies cannot use the network; put the facts into a data file",
	"opa.runtime":            "it depends on the machine",
	"rand.intn":              "it is not deterministic",
	"time.now_ns":            "use input.now_ns",
	"uuid.rfc4122":           "it is not deterministic",
}

// capabilities is what OPA offers, without what is not a function of its arguments.
func capabilities() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	c.Builtins = slices.DeleteFunc(slices.Clone(c.Builtins), func(b *ast.Builtin) bool {
		return b.Nondeterministic || unavailable[b.Name] != "" || strings.HasPrefix(b.Name, "http.")
	})
	c.AllowNet = []string{} // not nil, which would allow every host
	return c
}
