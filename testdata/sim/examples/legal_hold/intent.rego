# Nothing of payroll, or of a table of hr, goes.
package tierd.sim

violation contains msg if {
	regex.match("^(payroll|hr-.*)$", input.table.name)
	msg := sprintf("%s is on hold, and goes", [input.log.id])
}
