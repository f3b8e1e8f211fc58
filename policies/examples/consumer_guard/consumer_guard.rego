# METADATA
# title: Consumer guard
# description: |
#   Keeps what a consumer group has not read yet. Which groups a table waits for is data, as in
#   consumer_guards.yaml; how far each has come is the fact offsets, which a cluster is asked for or
#   something else writes. A group or a log that it does not name has read nothing.
# scope: package
package tierd.consumer_guard

# METADATA
# title: Not read yet
# description: The committed offset is the next one that the group will read.
# custom:
#   code: not-consumed
deny contains reason if {
	some group in data.consumer_guards[input.table.name]
	committed(group) < input.segment.next
	reason := sprintf("group %s has read up to %d, the segment ends at %d", [
		group,
		committed(group),
		input.segment.next,
	])
}

# METADATA
# title: No offset is known
# custom:
#   code: not-consumed
deny contains reason if {
	some group in data.consumer_guards[input.table.name]
	not committed(group)
	reason := sprintf("no offset of group %s is known for %s", [group, input.log.id])
}

# Undefined where the fact does not say.
committed(group) := offset if {
	offset := input.facts.offsets[group][input.log.id]
	is_number(offset)
}
