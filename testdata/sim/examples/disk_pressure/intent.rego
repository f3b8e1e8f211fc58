# What was written in the last hour is on disk.
package tierd.sim

violation contains msg if {
	input.action == "delete_local"
	input.segment.age_ns < 3600000000000
	msg := sprintf("%s@%d leaves the disk within the hour", [input.log.id, input.segment.base])
}
