# The last copy of what is promised for 30 days is as old when it goes.
package tierd.sim

violation contains msg if {
	input.final
	input.table.labels.promised == "30d"
	input.segment.age_ns < time.parse_duration_ns("720h")
	msg := sprintf("the last copy of %s@%d goes too early", [input.log.id, input.segment.base])
}
