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
# title: The last copy is at least 30 days old when it goes
violation contains msg if {
	input.final
	input.segment.age_ns < time.parse_duration_ns("720h")
	not left_before
	msg := sprintf("the last copy of %s goes %d seconds after it was written", [
		input.log.id,
		input.segment.age_ns / 1000000000,
	])
}

# What its owner writes once more where the log has begun later is no part of the log, and goes by
# the limits of local segments.
left_before if {
	some d in input.history
	d.action == "delete_remote"
	d.log == input.log.id
	d.next >= input.segment.next
}
