package tierd.consumer_guard_test

import data.tierd.consumer_guard

guards := {"orders": ["billing", "search"]}

asked(table, offsets) := {
	"table": {"name": table},
	"log": {"id": sprintf("%s/0", [table])},
	"segment": {"base": 100, "next": 200},
	"facts": {"offsets": offsets},
}

test_read_by_all if {
	offsets := {"billing": {"orders/0": 200}, "search": {"orders/0": 250}}
	count(consumer_guard.deny) == 0 with data.consumer_guards as guards
		with input as asked("orders", offsets)
}

test_the_slowest_decides if {
	offsets := {"billing": {"orders/0": 199}, "search": {"orders/0": 250}}
	consumer_guard.deny == {"group billing has read up to 199, the segment ends at 200"}
		with data.consumer_guards as guards
		with input as asked("orders", offsets)
}

test_an_unknown_group_has_read_nothing if {
	offsets := {"search": {"orders/0": 250}}
	consumer_guard.deny == {"no offset of group billing is known for orders/0"}
		with data.consumer_guards as guards
		with input as asked("orders", offsets)
}

test_an_unknown_log_has_not_been_read if {
	offsets := {"billing": {"orders/1": 250}, "search": {"orders/0": null}}
	count(consumer_guard.deny) == 2 with data.consumer_guards as guards
		with input as asked("orders", offsets)
}

test_without_the_fact if {
	count(consumer_guard.deny) == 2 with data.consumer_guards as guards
		with input as asked("orders", {})
		with input.facts as {}
}

test_other_tables_wait_for_nobody if {
	count(consumer_guard.deny) == 0 with data.consumer_guards as guards
		with input as asked("clicks", {})
}
