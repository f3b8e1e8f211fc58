// Package suite runs the tests of policies by OPA's own runner, so that the same files mean the
// same to `opa test`.
//
// A test is a rule whose name begins with test_ in a file that ends in _test.rego; it passes if it
// is true. Beside the policies it sees the built-in one, as data.tierd.builtin, and the data. What
// the policies must not do is refused to tests too: a test that reads the clock or the network
// passes today and fails tomorrow.
package suite
