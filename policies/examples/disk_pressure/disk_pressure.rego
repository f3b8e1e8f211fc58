# METADATA
# title: Disk pressure
# description: |
#   Lets local segments go before their TTL while the disk is nearly full: oldest first, and only
#   once they are proved to be in the store. Tables that must be read fast keep theirs, by the label
#   disk_pressure: keep.
# scope: package
package tierd.disk_pressure

# METADATA
# title: Less than a tenth of the disk is free
# description: What was written in the last hour is read most, and stays.
# custom:
#   code: disk-pressure
expire contains reason if {
	total := input.node.disk_used_bytes + input.node.disk_free_bytes
	input.node.disk_free_bytes * 10 < total
	input.segment.age_ns > 3600000000000
	not input.table.labels.disk_pressure == "keep"
	reason := sprintf("%d of %d bytes are free", [input.node.disk_free_bytes, total])
}
