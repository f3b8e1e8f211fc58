package tierd.disk_pressure_test

import data.tierd.disk_pressure

hour := 3600000000000

asked(free, age_ns) := {
	"node": {"disk_used_bytes": 1000 - free, "disk_free_bytes": free},
	"segment": {"age_ns": age_ns},
	"table": {"labels": {}},
}

test_nearly_full if {
	disk_pressure.expire == {"99 of 1000 bytes are free"} with input as asked(99, 2 * hour)
}

test_a_tenth_is_enough if count(disk_pressure.expire) == 0 with input as asked(100, 2 * hour)

test_the_last_hour_stays if count(disk_pressure.expire) == 0 with input as asked(1, hour)

test_labelled_tables_stay if {
	count(disk_pressure.expire) == 0 with input as asked(1, 2 * hour)
		with input.table.labels as {"disk_pressure": "keep"}
}
