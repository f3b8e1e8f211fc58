# The last copy goes while somebody is in the office in Berlin.
package tierd.sim

violation contains msg if {
	input.action == "delete_remote"
	[hour, minute, _] := time.clock([input.now_ns, "Europe/Berlin"])
	not hour in {9, 10, 11, 12, 13, 14, 15, 16}
	msg := sprintf("%s goes at %d:%02d in Berlin", [input.log.id, hour, minute])
}
