# What must never happen.
package tierd.sim

violation contains msg if {
	input.table.name == "payroll"
	msg := sprintf("%s is on hold, and goes", [input.log.id])
}
