package tierd.hours

deny contains "nobody is there" if {
	input.action != "delete_local"
	[hour, _, _] := time.clock(input.now_ns)
	not hour in {9, 10, 11, 12, 13, 14, 15, 16}
}
