# Nothing of a class that nobody defined goes, and nothing of tracking in its first 30 days that no
# other tier has.
package tierd.sim

violation contains msg if {
	input.table.name == "misspelt"
	msg := sprintf("%s goes, and its class is not defined", [input.log.id])
}

violation contains msg if {
	input.final
	input.table.labels.personal_data == "tracking"
	input.segment.age_ns < time.parse_duration_ns("720h")
	msg := sprintf("the last copy of %s@%d goes too early", [input.log.id, input.segment.base])
}
