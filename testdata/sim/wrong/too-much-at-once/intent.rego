# At most a fifth of what was ever written to a table leaves the disk in a day.
package tierd.sim

day := 86400000000000

today := [d |
	some d in input.history
	d.table == input.table.name
	d.action == "delete_local"
	d.now_ns > input.now_ns - day
]

violation contains msg if {
	input.action == "delete_local"
	written := input.written[input.table.name].segments
	written >= 10
	gone := count(today) + 1
	gone * 5 > written
	msg := sprintf("%d of %d segments of %s left the disk in a day", [
		gone, written, input.table.name,
	])
}
