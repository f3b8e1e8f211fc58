package tierd.business_hours_test

import data.tierd.business_hours

hours := {
	"timezone": "Europe/Berlin", "days": ["Monday", "Thursday"], "from": 9, "to": 17,
	"holidays": ["2027-05-06"],
}

asked(action, state, text) := {
	"action": action, "now_ns": time.parse_rfc3339_ns(text),
	"log": {"tier_state": state},
}

# Thursdays in winter and in summer, when Berlin is one hour and two ahead of UTC.
test_hours[text] if {
	some text, want in {
		"2027-01-14T07:59:59Z": 1,
		"2027-01-14T08:00:00Z": 0,
		"2027-01-14T15:59:59Z": 0,
		"2027-01-14T16:00:00Z": 1,
		"2027-07-15T07:00:00Z": 0,
		"2027-07-15T15:00:00Z": 1,
	}
	count(business_hours.deny) == want with data.business_hours as hours
		with input as asked("delete_remote", "ENABLED", text)
}

test_other_days_and_holidays[text] if {
	some text in ["2027-01-15T12:00:00Z", "2027-01-16T12:00:00Z", "2027-05-06T12:00:00Z"]
	business_hours.deny == {
		"the last copy goes only on Monday, Thursday from 9:00 to 17:00, Europe/Berlin",
	} with data.business_hours as hours with input as asked("delete_remote", "ENABLED", text)
}

test_local_segments_go_at_any_time if {
	count(business_hours.deny) == 0 with data.business_hours as hours
		with input as asked("delete_local", "ENABLED", "2027-01-16T12:00:00Z")
}

test_but_not_where_they_are_the_last_copy if {
	count(business_hours.deny) == 1 with data.business_hours as hours
		with input as asked("delete_local", "DISABLED", "2027-01-16T12:00:00Z")
}

test_a_holiday_needs_no_quotes if {
	unquoted := object.union(hours, {"holidays": ["2027-01-14T00:00:00Z"]})
	count(business_hours.deny) == 1 with data.business_hours as unquoted
		with input as asked("delete_remote", "ENABLED", "2027-01-14T12:00:00Z")
}

test_hours_that_are_no_numbers_are_never[note] if {
	some note, wrong in {"a text": {"to": "17"}, "nothing": {"from": null}}
	count(business_hours.deny) == 1 with data.business_hours as object.union(hours, wrong)
		with input as asked("delete_remote", "ENABLED", "2027-01-14T12:00:00Z")
}
