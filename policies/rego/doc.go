// Package rego asks retention policies written in Rego v1, for gate.Policies. It alone imports OPA.
//
// # The contract
//
// A policy is any package below data.tierd, but for data.tierd.builtin, which is tierd's own and
// always there. It answers by sets of reasons:
//
//	package tierd.legal_hold
//
//	# METADATA
//	# title: Legal hold
//	# custom:
//	#   code: legal-hold
//	deny contains reason if {
//		some hold in data.holds
//		hold.table == input.table.name
//		reason := sprintf("held for case %s", [hold.case])
//	}
//
//	expire contains "the disk is nearly full" if input.node.disk_free_bytes < 1000000000
//
// deny keeps; expire asks for a local deletion before its TTL is over, and expire_remote for a
// remote one. A reason is a string or {"msg": ..., "code": ...}; its code is that, or custom.code
// of the rule's annotations, or "denied" or "expire". A deletion needs a reason of a TTL, size or
// count limit of the built-in policy or of an expire rule, no reason of a deny rule, and no error.
// An evaluation error, a reason of the wrong type, too many steps or a time-out all keep.
//
// The names data.tierd.lib and below are for helpers; data.tierd.sim belongs to tiersim, and files
// that end in _test.rego to the tests: neither is loaded here.
//
// # What is refused at load
//
// Rego is undefined where a name is wrong, and a deny rule that is undefined denies nothing. So
// Load refuses, with file:line:column and what would be right: a field that the input does not have
// (policies/schema/input.json), also through object.get with constants; a constant that a field
// can never equal; data and rules that are not there; a package without any rule of the contract,
// a rule whose name nearly is one; built-ins that are not functions of their arguments, such as
// http.send, rand.intn and time.now_ns; and a value that is put into itself again and again, until
// nobody can read it to its end. It does not follow other values through function arguments.
//
// # Determinism
//
// A decision depends on policies, data and facts alone. The time is that of the facts. Work is
// bounded by a count of evaluation steps, the same on every machine; the time-out stands behind it
// and can be turned off, as the simulator does. Neither ends a single expression: of one that takes
// for ever a Watch tells, and its policies decide nothing from then on.
package rego
