# What must never happen, in words of its own: tiersim asks these rules about each deletion that it
# simulates, and tierd does not read them.
package tierd.sim

# METADATA
# title: Nothing of a table on hold goes
violation contains msg if {
	hold := data.holds[input.table.name]
	msg := sprintf("%s goes, and is held for case %s", [input.log.id, hold.case])
}

# METADATA
# title: The last copy is at least 30 days old when it leaves the store
violation contains msg if {
	input.action != "delete_local" # what is local and below the start of its log is no part of it
	input.final
	input.segment.age_ns < time.parse_duration_ns("720h")
	msg := sprintf("the last copy of %s goes %d seconds after it was written", [
		input.log.id,
		floor(input.segment.age_ns / 1000000000),
	])
}
