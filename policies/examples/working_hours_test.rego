package tierd.working_hours_test

import data.tierd.working_hours

at(text) := {"now_ns": time.parse_rfc3339_ns(text)}

test_a_friday if {
	count(working_hours.deny) == 0 with input as at("2027-01-15T07:59:59Z")
	working_hours.deny == {
		"nothing is deleted on a Friday before 18:00 UTC",
	} with input as at("2027-01-15T08:00:00Z")
	count(working_hours.deny) == 1 with input as at("2027-01-15T17:59:59Z")
	count(working_hours.deny) == 0 with input as at("2027-01-15T18:00:00Z")
}

test_a_weekend if {
	count(working_hours.deny) == 0 with input as at("2027-01-16T12:00:00Z")
	count(working_hours.deny) == 0 with input as at("2027-01-17T12:00:00Z")
}
