package tierd.hold

deny contains "on hold" if {
	input.action == "delete_local"
	input.table.name == "payroll"
}
