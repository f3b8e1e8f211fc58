# METADATA
# title: Legal hold
# scope: package
package tierd.hold

# METADATA
# title: Held
# custom:
#   code: legal-hold
deny contains reason if {
	hold := data.holds[input.table.name]
	reason := sprintf("held for case %s", [hold.case])
}
