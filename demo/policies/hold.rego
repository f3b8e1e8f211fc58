# METADATA
# title: Legal hold
# description: Nothing of a table with the label "hold" is deleted, wherever it lies.
# scope: package
package tierd.hold

deny contains {"msg": sprintf("legal hold: %s", [reason]), "code": "legal-hold"} if {
	reason := input.table.labels.hold
}
