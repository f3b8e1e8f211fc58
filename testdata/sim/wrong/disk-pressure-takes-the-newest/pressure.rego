package tierd.pressure

expire contains "the disk is nearly full" if {
	input.node.disk_free_bytes * 10 < input.node.disk_used_bytes + input.node.disk_free_bytes
}
